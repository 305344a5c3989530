"""The Overview's data: live, or for the default setup from a file made beforehand, so that it paints at once.

``python -m studio.engine.overview`` writes that file anew; a test compares it with the live result.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from idc_core.analysis.overview import Overview, rarest_state, shares
from idc_core.errors import DataError
from studio.engine.results import View, open_view
from studio.state.setup import DEFAULT

ASSETS = Path(__file__).parents[2] / "assets"
SNAPSHOT = ASSETS / "overview.json"


def summarise(view: View) -> Overview:
    """Take from a view what the Overview shows."""
    analysis = view.analysis
    chosen, correct = view.chosen, view.correct
    first, together = shares(analysis.importance, analysis.important)
    return Overview(
        fingerprints=(view.model.card.fingerprint, view.train.fingerprint, view.test.fingerprint),
        tests=len(chosen),
        accuracy=None if correct is None else float(np.mean(correct[chosen])),
        rmse=analysis.rmse,
        layer=analysis.layer,
        neurons=len(analysis.importance),
        important=tuple(int(neuron) for neuron in analysis.important),
        first_share=first,
        together_share=together,
        rarest=rarest_state(analysis.assignments[chosen], view.sizes),
        table=replace(view.table, by_class=view.table.by_class[:, :0]),
    )


def snapshot() -> Overview | None:
    """Return the default setup's overview from its file, or None where that is not of the present weights."""
    try:
        kept = Overview.from_json(SNAPSHOT.read_text(encoding="utf-8"))
        card = json.loads((ASSETS / "weights" / f"{DEFAULT.model}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, DataError):
        return None
    return kept if kept.fingerprints[0] == card.get("fingerprint") else None


if __name__ == "__main__":
    SNAPSHOT.write_text(summarise(open_view(DEFAULT)).to_json(), encoding="utf-8")
