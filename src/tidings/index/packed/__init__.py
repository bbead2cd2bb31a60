"""The record format: clauses packed into a structure's slot order, tested exactly, and read back.

Read `protocol` (what a home is asked), `record` (the layout and the exact test), `packing` (in and out), `clauses` (what all homes
share), `sampling`, `groups` (arrays that kernels take together), `types`, `sentinels`, `hilbert`, `simd`. May import `model`.
"""
