"""Notifications as streams and pages."""
