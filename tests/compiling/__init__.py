"""How kernels are run: compiled, in plain Python, and which of the two a call takes."""
