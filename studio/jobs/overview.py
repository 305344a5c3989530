"""The Overview's data: live, or for the default setup of a shipped network from files, so that it paints at once.

``python -m studio.overview`` writes these files anew; tests compare them with the live results.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from idc_core.analysis.overview import Overview, overview_of
from idc_core.base.files import SHIPPED
from idc_core.errors import DataError
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View
from studio.state.setup import DEFAULT, Setup

_OVERVIEW = JobKind("overview", kept=64)

_ASSETS = SHIPPED / "assets"
OVERVIEWS = _ASSETS / "overviews"
"""One folder per shipped network, each part of the Overview a JSON file in it."""

RESULT = "result"
"""The part that holds setup and result; other parts are written and read by what shows them."""


@dataclass(frozen=True)
class Snapshot:
    """What the Overview shows of a setup, made beforehand: the setup, its line, the result, and the folder of files."""

    setup: Setup
    line: str
    result: Overview
    folder: Path

    def has(self, name: str) -> bool:
        """Whether another part was made for the Overview."""
        return (self.folder / f"{name}.json").exists()

    def part(self, name: str) -> Any:
        """Return another part that was made for the Overview."""
        return json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))


def summarise(view: View) -> Overview:
    """Return what the Overview shows of a view, found once and kept; of shipped setups it is there beforehand."""
    setup = view.setup
    if (kept := snapshot(setup)) is not None and kept.result.fingerprints == view.key:
        return kept.result
    options = tuple(sorted(setup.options.items()))
    key = (*view.key, setup.layer, view.analysis.m, options, setup.conditions)
    return Waiting(1).get(_OVERVIEW, key, "comparing the tests with chance", lambda report: compare(view))


def compare(view: View) -> Overview:
    """Find what the Overview shows of a view."""
    return overview_of(
        view.analysis,
        view.card.fingerprint,
        (view.train, view.test),
        view.setup.conditions,
        view.chosen,
        view.train_traces.activations[view.setup.layer],
    )


def result_part(view: View) -> dict[str, object]:
    """Return what the file of a view's result holds."""
    where = {"data": view.setup.data, "layer": view.setup.layer, "line": view.line}
    return where | {"overview": json.loads(compare(view).to_json())}


def snapshot(setup: Setup) -> Snapshot | None:
    """Return what was made beforehand for a setup; None where it is of no shipped network's default or other weights.

    The registry of networks is not loaded for the setup that the studio opens on.
    """
    folder = OVERVIEWS / setup.model
    try:
        kept = json.loads((folder / f"{RESULT}.json").read_text(encoding="utf-8"))
        made_for = Setup(setup.model, kept["data"], kept["layer"], DEFAULT.m, ())
        result = Overview.from_json(json.dumps(kept["overview"])) if made_for == setup and _is_ours(setup) else None
    except (OSError, ValueError, LookupError, TypeError, DataError):
        return None
    if result is None or _fingerprint(setup.model) not in ("", result.fingerprints[0]):
        return None
    return Snapshot(setup, kept["line"], result, folder)


def _is_ours(setup: Setup) -> bool:
    """Whether no network of a person's own has taken the name."""
    if setup == DEFAULT:
        return True
    from idc_core.models import MODELS

    return MODELS[setup.model].edition == 0


def _fingerprint(model: str) -> str:
    """Return the fingerprint of weights that come with the project; empty where they were published elsewhere."""
    card = _ASSETS / "weights" / f"{model}.json"
    return str(json.loads(card.read_text(encoding="utf-8"))["fingerprint"]) if card.exists() else ""
