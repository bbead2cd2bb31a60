"""Who hears of an event: matching in both senses of best, all of them or the publisher's k.

Read `store` first (where subscriptions stand and how they are found), then `answers` (what becomes of hits). May import `index`,
`rank` and `model`; knows neither windows nor boards.
"""
