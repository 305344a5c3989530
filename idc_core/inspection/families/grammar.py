"""Hypotheses about the parse of a text whose grammar is known."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets import Dataset
from idc_core.inspection.hypothesis import Hypothesis, family
from idc_core.inspection.records import PARSES, Records


@family("grammar", "Grammar rules", "The character lies inside, begins or ends a node of the parse; how deep it lies.")
def grammar(dataset: Dataset) -> Iterator[Hypothesis]:
    """Offer, for strings made by the project's grammar, inside, starts and ends for every rule, and the depth."""
    if dataset.name != "sql":
        return
    from idc_core.datasets.sql import RULES, parses

    def parsed(records: Records) -> Any:
        return records.once(PARSES, lambda: parses(records.dataset.split, records.ids))

    def of_rule(records: Records, part: str, number: int) -> NDArray[Any]:
        found: NDArray[Any] = getattr(parsed(records), part)[:, :, number]
        return found

    for number, rule in enumerate(RULES):
        if rule == "query":  # everything is inside, and no record has the end of it
            continue
        for part in ("inside", "starts", "ends"):
            yield Hypothesis(
                f"{part} {rule}", "grammar", "binary",
                partial(of_rule, part=part, number=number), recomputable=False, parsed=True,
            )  # fmt: skip
    yield Hypothesis(
        "depth", "grammar", "number", lambda records: np.asarray(parsed(records).depth), recomputable=False, parsed=True
    )
