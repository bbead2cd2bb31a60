"""The service over HTTP: FastAPI routes, one noun a file, and what they share.

Read `factory` (what an app is made of), `bodies` (what comes in: JSON, NDJSON, CloudEvents, GeoJSON, Arrow), `answers` (what goes
out), `problems` (why not), `documents` (what OpenAPI says), then the nouns: `topics`, `subscriptions`, `bulk`, `events`,
`questions`, `notifications`, `sinks`, `keys`, `running`. `watching` logs and measures, `forwarding` is what readers do with what is
the writer's, `direct` calls the routes that are asked most. Routes read the request, ask the service and write the answer; they
decide nothing.
"""
