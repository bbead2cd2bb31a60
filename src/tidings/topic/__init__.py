"""The topic: what a program holds. It takes subscriptions and events in, commits them, and answers.

Read `topic` (the public calls), `asking` (those that change nothing), `subscribing` (those that concern subscriptions; `fitting`
says which a topic has a meaning for), `changing` (how a change is committed or undone), `publisher` (what publishing does;
`publications` is what comes, `ranked_matches` who it concerns), `live` (the live events), `gates` (paces), `relisting` (what a
changed subscription is told), `preview` (over `past_events`), `moving`, `journal` (where changes are committed; memory has nothing
to commit), `stats`. May import match, windows, boards and what is below them; knows nothing of disks.
"""
