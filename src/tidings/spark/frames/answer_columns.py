"""The columns that transforms give, as Arrow types."""

from __future__ import annotations

import pyarrow as pa

MATCH = {"event": pa.string(), "subscription": pa.string(), "score": pa.float64()}
FOUND = {"subscription": pa.string(), "event": pa.string(), "score": pa.float64()}
RANKED = {"relevance": pa.float64(), "time": pa.int64(), "expires": pa.int64(), "group": pa.int64()}
REASON = "_corrupt"
"""The column that says why a row was refused."""
CORRUPT = {REASON: pa.string()}
NOTIFICATION = {
    "id": pa.string(),
    "subscription": pa.string(),
    "event": pa.string(),
    "score": pa.float64(),
    "rank": pa.int32(),
    "why": pa.string(),
    "at": pa.timestamp("us", "UTC"),
    "digest": pa.list_(pa.struct([("event", pa.string()), ("score", pa.float64()), ("at", pa.timestamp("us", "UTC"))])),
}
"""`digest` is what a digest tells together, best first; null of any other."""
