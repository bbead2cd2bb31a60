"""Notifications for whoever listens: as streams that go on where they stopped, and as pages.

Read `notes` (a notification as it is delivered), `listening` (who listens, and the newest notes), `tail` (the end of a topic's
outbox, told to them), `streams` (Server-Sent
Events), `consumers` (named readers and how far they are). May import `hosting`.
"""
