"""The Overview's data: live, or for the default setup from a file made beforehand, so that it paints at once.

``python -m studio.overview`` writes that file anew; a test compares it with the live result.
"""

from __future__ import annotations

import json

from idc_core.analysis.overview import Overview, overview_of
from idc_core.base.files import SHIPPED
from idc_core.errors import DataError
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View
from studio.state.setup import DEFAULT

_OVERVIEW = JobKind("overview", kept=64)

_ASSETS = SHIPPED / "assets"
SNAPSHOT = _ASSETS / "overview.json"


def summarise(view: View) -> Overview:
    """Return what the Overview shows of a view, found once and kept; of the default setup it is there beforehand."""
    setup = view.setup
    if setup == DEFAULT and (kept := snapshot()) is not None and kept.fingerprints == view.key:
        return kept
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


def snapshot() -> Overview | None:
    """Return the default setup's overview from its file, or None where that is not of the present weights."""
    try:
        kept = Overview.from_json(SNAPSHOT.read_text(encoding="utf-8"))
        card = json.loads((_ASSETS / "weights" / f"{DEFAULT.model}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, DataError):
        return None
    return kept if kept.fingerprints[0] == card.get("fingerprint") else None
