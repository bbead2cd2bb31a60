"""The papers' structures and ours: one package a structure, each judged by a brute-force oracle (`tests/oracle`).

`packed` is the record format that all clause structures stand on; `blocks` what segments use; `motree`,
`rttree`, `scored`, `relaxed` and `points` the papers' structures under their own names. Packages know `packed`, `rank` and `model`,
never each other. Arrays in, arrays out; a *row*, *name* or *number* is the caller's integer, a *slot* the structure's own, NONE
neither.
"""
