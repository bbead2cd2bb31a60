"""Of the demo: its data, its map, and the page that it leaves, looked at in a real browser."""
