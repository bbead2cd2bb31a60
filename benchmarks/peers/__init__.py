"""Peers beside tidings: the same subscriptions and events in the same minutes, one thread, CPU time, answers compared first.

    make peers            or: python -m benchmarks.peers [--only NAME ...] [--sizes 1000 100000 ...]

| file        | peers                                                                                                |
|-------------|------------------------------------------------------------------------------------------------------|
| `peer`      | what a peer is asked, and tidings' own side                                                           |
| `libraries` | shapely's STRtree with argpartition, DuckDB, a NumPy scan: in this process                            |
| `jvm`       | Lucene Monitor and event-ruler, from Maven Central, driven by our `java/*.java`                       |
| `golang`    | quamina, from the Go module proxy, driven by our `go/quamina.go`                                     |
| `servers`   | PostgreSQL (GiST and GIN) and Tile38 (fences): started on loopback, asked over their sockets, their CPU time |

What cannot be had is left out with its reason; what answers differently is listed so. Nothing of a peer's code stands here.
A row is kept in benchmarks/results/peers.json when it is done: a run with `--only` replaces its own rows.
"""
