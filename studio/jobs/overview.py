"""The Overview's data: live, or for the default setup from a file made beforehand, so that it paints at once.

``python -m studio.overview`` writes that file anew; a test compares it with the live result.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from idc_core.analysis.filtering import of_classes
from idc_core.analysis.overview import Overview, overview_of
from idc_core.base.files import SHIPPED
from idc_core.errors import DataError
from studio.jobs.results import View
from studio.state.setup import DEFAULT

_ASSETS = SHIPPED / "assets"
SNAPSHOT = _ASSETS / "overview.json"


def summarise(view: View) -> Overview:
    """Take from a view what the Overview shows."""
    correct = view.correct
    learnt = of_classes(view.train.targets, view.train.class_names, view.setup.classes)
    return overview_of(
        view.analysis,
        replace(view.table, by_class=view.table.by_class[:, :0]),
        (view.card.fingerprint, view.train.fingerprint, view.test.fingerprint),
        view.chosen,
        None if correct is None else float(np.mean(correct[view.chosen])),
        view.train_traces.activations[view.setup.layer][learnt],
    )


def snapshot() -> Overview | None:
    """Return the default setup's overview from its file, or None where that is not of the present weights."""
    try:
        kept = Overview.from_json(SNAPSHOT.read_text(encoding="utf-8"))
        card = json.loads((_ASSETS / "weights" / f"{DEFAULT.model}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, DataError):
        return None
    return kept if kept.fingerprints[0] == card.get("fingerprint") else None
