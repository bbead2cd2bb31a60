"""A whole service under load, whose parts are killed at random: what was acknowledged is told to everyone concerned.

Read `world` (who runs, and who is killed), `children` (publishers, listeners, the receiver), `judging` (what must be heard).
"""
