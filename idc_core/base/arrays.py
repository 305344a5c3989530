"""Arrays as annotations name them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Ints = NDArray[np.int64]

Array = NDArray[Any]
"""Numbers of any type and shape."""

Arrays = dict[str, Array]
"""Arrays by name."""
