"""The search for garbage in the server's process, during which all sessions wait."""

from __future__ import annotations

import gc
import sys

_OFTEN = 50_000
"""New objects after which Python looks for garbage; libraries make hundreds of thousands that stay."""

_modules = [0]


def settle() -> None:
    """Have garbage looked for seldom, and never among what libraries made while they loaded; at each run of a page."""
    if len(sys.modules) > _modules[0]:
        _modules[0] = len(sys.modules)
        gc.set_threshold(_OFTEN)
        gc.freeze()
