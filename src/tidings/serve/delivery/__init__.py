"""Notifications for whoever does not listen but is called: sinks. May import `hearing` and `hosting`."""
