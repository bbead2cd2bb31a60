"""Processes: what `tidings serve` starts.

Read `server` (uvicorn, signals, logs) and `processes` (one writer, many readers). May import everything of `serve`.
"""
