"""The files that the Overview of shipped networks paints from: written, and compared with the live results."""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Iterator

import numpy as np
from PIL import Image

from idc_core.models import MODELS
from studio.jobs.overview import OVERVIEWS, RESULT, result_part
from studio.jobs.results import View, open_view
from studio.overview import worst_tests
from studio.state.setup import default_setup
from studio.widgets import grid_pictures

_PARTS = {RESULT: result_part, worst_tests.PART: worst_tests.part, grid_pictures.PART: grid_pictures.part}
"""What makes each part of a view, by the name of its file."""

_CLOSE = 1e-5
"""Relative difference of numbers that other machines may compute otherwise."""


def names() -> list[str]:
    """Return the names of the project's own networks."""
    return [name for name, entry in MODELS.items() if entry.edition == 0]


def view_of(model: str) -> View:
    """Compute the results of a shipped network's default setup."""
    return open_view(default_setup(model))


def write(view: View) -> int:
    """Write the files of a view's network; return their bytes."""
    folder = OVERVIEWS / view.setup.model
    folder.mkdir(parents=True, exist_ok=True)
    return sum(
        (folder / f"{name}.json").write_text(json.dumps(make(view)) + "\n", encoding="utf-8")
        for name, make in _PARTS.items()
    )


def differences(view: View) -> list[str]:
    """Return where the files of a view's network differ from the live result."""
    folder = OVERVIEWS / view.setup.model
    found: list[str] = []
    for name, make in _PARTS.items():
        file = folder / f"{name}.json"
        if not file.exists():
            found.append(f"{file.name} is missing")
            continue
        live = json.loads(json.dumps(make(view)))
        found += _differing(name, json.loads(file.read_text(encoding="utf-8")), live)
    return found


def _differing(where: str, kept: object, live: object) -> Iterator[str]:
    """Name what differs by its place; pictures are compared as pixels, other texts letter by letter."""
    if isinstance(kept, dict) and isinstance(live, dict) and kept.keys() == live.keys():
        for key in kept:
            yield from _differing(f"{where}/{key}", kept[key], live[key])
    elif isinstance(kept, list) and isinstance(live, list) and len(kept) == len(live):
        for place, (one, other) in enumerate(zip(kept, live, strict=True)):
            yield from _differing(f"{where}/{place}", one, other)
    elif not _same(kept, live):
        yield f"{where}: {kept!r:.60} is kept, {live!r:.60} is live"


def _same(kept: object, live: object) -> bool:
    if isinstance(kept, float) and isinstance(live, float):
        return math.isclose(kept, live, rel_tol=_CLOSE, abs_tol=_CLOSE**2)
    if isinstance(kept, str) and isinstance(live, str) and kept.startswith("data:image"):
        return np.array_equal(_pixels(kept), _pixels(live))
    return kept == live


def _pixels(address: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))))
