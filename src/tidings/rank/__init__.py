"""Scores and their bounds: which of two is better, how good an unseen one can be, how long a queue must be.

- `relevance`: a subscription's `by` as a number; `nearness` tells which subscriptions are nothing but an ideal point.
- `aggregates`: sum, max and min of weights, and what is still possible; relaxed matching stands on it.
- `similarity`: places and words compared in part.
- `bounded_heap`, `best_first_queue`: the k best so far, and the next node to open, for kernels.
- `queue_length`: how many candidates a bounded window queue must keep to err with a given probability.

It imports `tidings.model`; structures, windows and boards stand on it.
"""
