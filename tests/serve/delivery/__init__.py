"""Sinks, with real receivers."""
