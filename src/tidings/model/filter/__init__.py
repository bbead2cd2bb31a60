"""What a filter means: CQL2 becomes clauses, and a clause is asked of an event's values.

- `clause`: what a filter compiles to; `Clause.holds` is the definition of matching, by which every index is judged. Begin here.
- `compile`: from the tree to clauses; `normal_form` joins them, `conjunction` is the short way for the commonest filters.
- `syntax`: from text or JSON to the tree, by the `cql2` package; `templates` fills in texts of a known shape.
- `residue`: predicates as functions; `operands` (arithmetic, texts, times), `temporal`, `spatial` and `like` are what they compare.
- `linear`: scores that depend on the event. `geodesy`: circles and distances.

It imports `values`.
"""
