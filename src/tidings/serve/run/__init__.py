"""Processes: what `tidings serve` starts. Read `server` (uvicorn, signals, logs). May import everything of `serve`."""
