"""Ids spread over so many groups by a hash that is the same in every process: boards over shards, subscriptions over parts.

The shards of windows go by Spark's own hash instead (`shard_records.shard_column`), since their matches are Spark's rows.
Checkpoints and topics' folders depend on which hash it is, so neither can change.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray


def spread(ids: pa.Array, count: int) -> NDArray[np.int64]:
    """A number below `count` for each id."""
    hashed = pd.util.hash_array(ids.to_numpy(zero_copy_only=False).astype(object), categorize=False)
    number: NDArray[np.int64] = (hashed % np.uint64(count)).astype(np.int64)
    return number
