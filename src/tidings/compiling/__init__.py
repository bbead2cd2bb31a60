"""How a kernel comes to be run: compiled once for every process of a user, and as plain Python until then.

Read `kernel` (what `@kernel` of `_jit` makes), `dispatching` (which way a call takes), `content_cache` (where compiled code is
kept, and by which name), `plain` (a kernel's source without a compiler), `beside` (processes that compile meanwhile), `pinned` and
`pinned_code` (arguments that are handed over as one address). It imports nothing else of tidings, and numba only when a kernel is
first called: `import tidings` does not pay for a compiler.
"""
