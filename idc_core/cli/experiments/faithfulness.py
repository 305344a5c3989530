"""Records of faithfulness: areas under the perturbation curves of attribution methods."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from idc_core.cli.experiments.base import Experiment, Record

if TYPE_CHECKING:
    from idc_core.base.progress import Progress
    from idc_core.experiments.faithfulness import Faithfulness


def _run_faithfulness(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Compare attribution methods on one network: one record per method."""
    from idc_core.datasets import load_dataset
    from idc_core.experiments.faithfulness import COMPARED, faithfulness
    from idc_core.models import load_model

    model = load_model(name)
    test = load_dataset(model.card.dataset, "test", arguments.limit, on_progress=on_progress)
    result = faithfulness(model, test, seeds=arguments.seeds, on_progress=on_progress)
    about: Record = {
        "model": name,
        "inputs": result.inputs,
        "seeds": len(result.seeds),
        "parts": result.parts,
        "fingerprint": model.card.fingerprint,
    }
    return [about | {"method": method} | _figures(result, method) for method in COMPARED]


def _figures(found: Faithfulness, method: str) -> Record:
    """Return the areas of a method, means and deviations over the seeds, and its curves; only a note if it refuses."""
    listed = found.methods.index(method) if method in found.methods else None
    record: Record = {"note": found.refused.get(method, "")}
    for measure, curves in (("probability", found.probability), ("logit", found.logit)):
        areas, between = found.areas(measure), found.between(measure)
        values = {"most_first": areas[:, 0], "least_first": areas[:, 1], "between": between}
        for key, rows in values.items():
            field = key if measure == "probability" else f"{key}_logit"
            record[field] = None if listed is None else float(rows[listed].mean())
            record[f"{field}_deviation"] = None if listed is None else float(rows[listed].std())
        for order, first in enumerate(("most", "least")):
            for share, value in zip(found.removed, curves.mean(2)[listed or 0, order], strict=True):
                record[f"{measure}_{first}_{share:.3f}"] = None if listed is None else float(value)
    record |= {
        f"between_seed_{seed}": None if listed is None else float(value)
        for seed, value in zip(found.seeds, found.between()[listed or 0], strict=True)
    }
    return record


EXPERIMENTS = (
    Experiment(
        "faithfulness",
        "does a class's probability fall fastest when the parts that an attribution method calls relevant are removed "
        "first (--rule, --share and --m do not apply)?",
        ("vit-cifar10", "texttransformer-20newsgroups"),
        (
            "model",
            "method",
            "inputs",
            "seeds",
            "most_first",
            "most_first_deviation",
            "least_first",
            "least_first_deviation",
            "between",
            "between_deviation",
        ),
        _run_faithfulness,
    ),
)
