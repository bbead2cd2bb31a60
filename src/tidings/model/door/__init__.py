"""Events and subscriptions coming in, one at a time.

- `event`: an event from a dict, CloudEvents, GeoJSON or JSON; `single_values` reads each of its values. Begin here.
- `subscription`: a subscription from arguments or JSON, and to and from the registry's records; `by` reads what it is ranked by.
- `event_record`: events as the registry keeps them.

It imports `filter` and `values`. Limits are asked here; `from_record` and `event_from_record` ask none.
"""
