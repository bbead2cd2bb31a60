"""A topic at a URL: immutable objects named by their content, and manifests that are put if absent.

Read `address` (paths and URLs), `objects` (what a bucket or a folder can do), `lake_manifest` (what makes a snapshot), `lake`
(how one becomes the newest, and what is cleaned up), `machine_cache` (objects as files that are mapped), `subscription_objects`
(rows as Parquet), `changing` (a snapshot and changes become the next), `push` and `pull` (between a registry's folder and a
lake). May import `durable`'s manifests and registry, and what is below.

    url/manifests/00000007.json     which objects make a snapshot
    url/objects/<sha256>.segment    packed subscriptions; .live who of them is left; .vocabulary codes; .parquet the rows
    url/pins/<reader>/<n>.json      which manifest somebody reads, and until when it must stay
"""
