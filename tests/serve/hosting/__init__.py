"""Tests of `tidings.serve.hosting`."""
