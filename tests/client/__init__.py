"""A topic that is elsewhere."""
