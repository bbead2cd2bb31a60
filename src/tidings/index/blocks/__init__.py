"""Block bitmaps, place blocks and word blocks: the homes of nearly every packed clause.

Read `bitmaps` with `layout`, `lines`, `bitmap_match`, `bitmap_topk`; then `places` with `lanes`, `place_match`, `place_topk`; then
`words` with `word_match`. May import `packed`.
"""
