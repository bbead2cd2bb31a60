"""The commands that ask a topic, in a folder or at a service: `tidings subscribe`, `publish`, `match`, `listen` and the rest.

Read `target` (where the topic is), `inputs` (files and lines), `outputs` (tables, or JSON lines), then the commands by what they
concern: `topics`, `subscriptions`, `events`, `operating`. May import anything; only `cli` imports it.
"""
