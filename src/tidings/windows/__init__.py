"""The subscriber's k over a window: who hears of which publication, and when.

Read `windows` for the meaning and the calls by name, `slots` for the same by columns (Spark's way in), `memory` for the layout
and the invariants; then a publication's way down: `publishing` (event by event, and the clock), `lists` (one list hears, or
loses), `sorted_view` and `reserve` (its two parts). `near` has the one thing that ideal points have of their own: where their
candidates are found. `entries` is what comes out.

Knows relevances and not where they come from: it may import `model`, `rank` and `index`, neither `match` nor `boards`.
"""
