"""Spark on topics at a URL, against a real S3 server."""
