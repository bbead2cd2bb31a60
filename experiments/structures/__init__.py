"""Structures of the papers that only the experiments and their tests use; the product goes other ways, named in each header."""
