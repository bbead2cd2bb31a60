"""Processes that are started, stopped and killed."""
