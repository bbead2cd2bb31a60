"""The subscriber's k over changing objects: every watcher's list of the k best current objects, and each change of it.

Knows neither match nor windows. May import `index`, `rank` and `model`.
"""
