"""What every run's settings say of its network and data, by the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from idc_core.datasets import DATASETS
from idc_core.runs.kinds import OTHER_CLASSES

if TYPE_CHECKING:
    from idc_core.datasets import Dataset
    from idc_core.models import ModelCard


def settings_of(
    card: ModelCard,
    train: Dataset | None,
    test: Dataset,
    layer: str,
    m: int | None,
    *,
    of_part: bool = False,
    **more: object,
) -> dict[str, object]:
    """Return a run's settings as plain values.

    Parameters
    ----------
    card : ModelCard
        Of the network.
    train, test : Dataset
        What its clusters are learnt from, and the tests; `train` None where the run depends on no training inputs.
    layer : str
    m : int or None
        Number of important neurons; None where the run depends on none.
    of_part : bool
        Whether a limit left out tests, or training inputs that are usual.
    **more
        What else the run depends on, by name: plain values, and tuples of these.
    """
    targets = "numbers" if not test.class_names else "classes"
    if test.class_names and test.class_names != DATASETS[card.dataset].class_names:
        targets = OTHER_CLASSES
    learnt = () if train is None else (train.name, len(train), train.fingerprint)
    return {
        "network": card.name,
        "network_label": card.label,
        "network_fingerprint": card.fingerprint,
        **dict(zip(("training_data", "training_inputs", "training_fingerprint"), learnt, strict=False)),
        "tests": test.name,
        "test_inputs": len(test),
        "tests_fingerprint": test.fingerprint,
        "targets": targets,
        "layer": layer,
        **({} if m is None else {"m": m}),
        **({"part_of_data": True} if of_part else {}),
        **{name: _plain(value) for name, value in more.items()},
    }


def _plain(value: object) -> object:
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value
