"""The subscriber's k over a window: each subscription hears of the k most relevant publications of any last w, each once.

Knows neither match nor boards. May import `index`, `rank` and `model`.
"""
