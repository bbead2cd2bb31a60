"""Topics that are served: who opens them, and the threads in which their calls are made.

Read `lanes` (threads that take what waits together), `hosted_topic` (one topic: its writer, its readers, its owners), `writing`
(how publishes of many requests become one commit), `ledger` (the service's own record), `service` (a folder of them), `plain_json`
(events and subscriptions as users read them). May import `durable`, `topic` and what is below.
"""
