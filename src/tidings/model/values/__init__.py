"""What a value is: attribute types, and the one form that a value of each takes inside.

- `schema`: the attribute types, and a topic's schema. Begin here.
- `times`: instants and days as integers; how far ahead of the clock an event may be.
- `text`: tokens of texts.
- `outline`: places that are more than a box.
- `vague`: ranges, and values that are one of several.
- `window`: durations and counts.
- `limits`: what is refused at the door and nowhere else.

It imports `tidings.errors` alone.
"""
