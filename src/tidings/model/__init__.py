"""What users say, from text and tables to columns.

Everything that enters tidings is validated once, here, into typed objects; behind this room nothing guards again. Whatever cannot
be accepted raises one of `tidings.errors`: a sentence with the field, the value and what would be accepted. Evaluation is total:
what has no finite answer does not hold (a residue gives None, a number NaN), and the caller counts it.

Read `values` (what a value is), then `filter` (what a predicate means), then `door` (events and subscriptions coming in), then
`columns` (the same in bulk, as arrays). Each imports only those before it: columns > door > filter > values. The room stands on
`tidings.errors` and on nothing else of tidings.
"""
