"""Arrays by the type of their elements, as annotations name them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Int16 = NDArray[np.int16]
Int8 = NDArray[np.int8]
Uint64 = NDArray[np.uint64]
Uint32 = NDArray[np.uint32]
Uint16 = NDArray[np.uint16]
Uint8 = NDArray[np.uint8]
Bool = NDArray[np.bool_]
Signed = NDArray[np.signedinteger]
