"""A topic that is kept: the registry is the record, segments and manifests are derived from it.

Read `opening` (a folder becomes a topic), `registry` and `registry_journal` (every change is one transaction), `recovery` and
`registry_cleanup`, `manifest` (which files make a snapshot), `leases` (what must stay), `manifest_view` (for
those who only match), `lake` (topics at a URL), `snapshots` (a folder's or a lake's), `places` (`open` and `pull`), `outbox` and
`hearing` (what deliveries need). May import
`topic` and what is below it.
"""
