"""Scored intervals [ranked]: the k best of those that contain a point.

Read `constraint_graph` with `bitset` (the order), `packed_rtree` and `sopt_rtree` (static); `interval_skeleton`, `scored_blocks`,
`ir_tree` with `ir_tree_check` (updatable). May import `packed`.
"""
