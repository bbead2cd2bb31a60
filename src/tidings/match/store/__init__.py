"""Where subscriptions stand, how they change, and the one reader that finds who matches.

Read `reader` (the path of an event), `hits` (what it gives), `segment` and `live_segment` (what never changes, and who is gone),
`memtable` and `memtable_reader` (what is new), `planner` and `ranked_paths` (which way is cheapest), `similar`; then the writing
side: `store`, `housekeeping`, `merging`, `subscription_rows`, `array_files`. May import `index`, `rank` and `model`.
"""
