"""Notifications for whoever does not listen but is called: sinks.

Read `sinks` (what a sink is, and what is kept of it), `senders` (one a kind: webhooks, CloudEvents, Kafka, PostgreSQL), `addresses`
(which hosts may be called, checked when they are), `connections` (HTTP, kept and used again), `outcomes` (what an answer means, and
when to try again), `couriers` (who carries a sink's notes, in order for each subscription), `letters` (what no receiver took). May
import `hearing` and `hosting`.
"""
