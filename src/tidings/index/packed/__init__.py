"""The record format: clauses packed into a structure's slot order, tested exactly, and read back.

Read `record` (the layout and the exact test), `packing` (in and out), `protocol` (what a home is asked), `sampling`, `hilbert`,
`simd`. May import `model`.
"""
