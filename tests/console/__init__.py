"""The console: what serves it, and the page in a real Chromium."""
