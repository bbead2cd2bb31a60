"""Events and subscriptions in bulk: Arrow tables to the arrays that indexes see, without Python a row.

- `arrays`: clauses and events as arrays, every one of them by name, shape and meaning. Begin here.
- `tables`: tables of events, in and out; `event_columns` reads their columns, `written` writes rows of them.
- `subscription_tables`: tables of subscriptions; `predicates` and `rankings` read their columns.
- `arrow`: an Arrow column to a NumPy array, validated; `arrow_numbers` converts, `tokens` and `vocabulary` make codes of strings.
- `gather`: rows of clauses taken, joined and read back.

It imports `door`, `filter` and `values`. What is refused here is refused in the words of `door`.
"""
