"""What people look at rather than programs: a filter while it is typed, events as they flow, the engine at work.

Read `checks`, `flows`, `engine`; each has routes of the public API, which the console (`tidings.console`) asks like anybody else.
May import what `app` may.
"""
