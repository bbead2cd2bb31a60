"""A topic that is elsewhere: the calls of `Topic` over HTTP, waited for or awaited.

Read `wire` (what goes over the line), `calls` (each call as a request and how its answer is read), `problems` and `retrying`,
`listening`, then `connection`, `remote_topic`, `service` and `async_service`, which send them. May import the model, the answers of
match and a topic's preview.
"""
