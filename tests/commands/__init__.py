"""The commands that ask a topic."""
