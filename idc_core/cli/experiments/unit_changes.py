"""Records of units that are replaced by their hypothesis, and of units that are held while a network writes."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from idc_core.cli.experiments.base import Experiment, Record
from idc_core.errors import SettingError

if TYPE_CHECKING:
    from idc_core.base.progress import Progress
    from idc_core.datasets import Dataset
    from idc_core.inspection import Hypothesis
    from idc_core.models.charlstm import CharLSTM

_CHOSEN = ("is a lower-case letter", "is a digit", "is a comparison sign", "inside where clause")


def _load(
    arguments: argparse.Namespace, name: str, on_progress: Progress
) -> tuple[CharLSTM, Dataset, list[Hypothesis]]:
    from idc_core.datasets import load_dataset
    from idc_core.inspection import library
    from idc_core.models import load_model
    from idc_core.models.charlstm import CharLSTM

    model = load_model(name)
    if not isinstance(model, CharLSTM):
        raise SettingError(f"{arguments.name} changes the state of a character LSTM, such as charlstm-sql; got {name}.")
    data = load_dataset(model.card.dataset, "test", arguments.limit, on_progress=on_progress)
    return model, data, [one for one in library(data) if one.name in _CHOSEN]


def _run_replaced(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Return a record a hypothesis, number of units and what they are replaced by."""
    from idc_core.experiments.unit_changes import replace_units

    model, data, hypotheses = _load(arguments, name, on_progress)
    return [{"model": name, **asdict(row)} for row in replace_units(model, data, hypotheses, on_progress=on_progress)]


def _run_forced(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Return a record a hypothesis, number of units and choice of them."""
    from idc_core.experiments.unit_changes import force_units

    model, data, hypotheses = _load(arguments, name, on_progress)
    known = [one for one in hypotheses if one.recomputable]
    return [{"model": name, **asdict(row)} for row in force_units(model, data, known, on_progress=on_progress)]


EXPERIMENTS = (
    Experiment(
        "replacing",
        "what is lost when the units that a hypothesis fits are replaced by it (only --limit applies)?",
        ("charlstm-sql",),
        ("hypothesis", "units", "by", "correlation", "before", "accuracy", "cost", "low", "high"),
        _run_replaced,
    ),
    Experiment(
        "forcing",
        "does a network write what a hypothesis is true of while the units that it fits are held high (only --limit "
        "applies)?",
        ("charlstm-sql",),
        ("hypothesis", "units", "which", "free", "share", "low", "high"),
        _run_forced,
    ),
)
