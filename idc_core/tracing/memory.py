"""Memory that the C library keeps after a batch is done, or gives back."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

EVERY = 128 << 20
"""Bytes of inputs after which unused pages go back."""

_KEPT = 1 << 30
"""Bytes that one batch has freed and the next one finds again."""

_LARGEST = 32 << 20  # the C library takes no larger value
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h


@cache
def _library() -> ctypes.CDLL | None:
    """Return glibc; None elsewhere."""
    library = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
    return library if hasattr(library, "malloc_trim") else None


@cache
def keep() -> None:
    """Let memory that a batch has freed stay for the next batch, from now on and in the whole process.

    Else the system takes it back after every batch, and clears it page by page when it is wanted again: with all
    activations of a batch held for the way back that was a tenth of a pass.
    """
    library = _library()
    if library is not None:
        library.mallopt(_MMAP_THRESHOLD, _LARGEST)
        library.mallopt(_TRIM_THRESHOLD, _KEPT)


def release() -> None:
    """Give unused pages back to the system.

    What little is kept of a batch is cut from the memory that its inputs had, so that the next ones find no whole piece
    and take another: without this a long pass grows by nearly all of its inputs, though none of them is held.
    """
    library = _library()
    if library is not None:
        library.malloc_trim(0)
