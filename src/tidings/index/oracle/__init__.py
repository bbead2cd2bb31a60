"""Brute force from the definitions, in plain Python: the judge of every structure. One file a question."""
