"""Events and subscriptions coming in, one at a time.

- `event`: an event from a dict, CloudEvents, GeoJSON or JSON; `single_values` reads each of its values. Begin here.
- `subscription`: a subscription from arguments or JSON; `by` reads what it is ranked by.
- `event_record` and `subscription_record`: both as the registry keeps them.

It imports `filter` and `values`. Limits are asked here; `from_record` and `event_from_record` ask none.
"""
