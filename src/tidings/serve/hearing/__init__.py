"""Notifications for whoever listens: as streams that go on where they stopped, and as pages. May import `hosting`."""
