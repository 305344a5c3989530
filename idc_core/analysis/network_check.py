"""A network and its data checked before any work: layers, relevance, trial predictions and likely mistakes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from idc_core.analysis.checking.detectors import run_detectors
from idc_core.analysis.checking.evidence import Evidence, quality
from idc_core.analysis.checking.findings import LayerCheck, Mistake, NetworkCheck, Quality, Trial, finite
from idc_core.analysis.checking.layers import check_layers
from idc_core.base.progress import Progress
from idc_core.datasets import Dataset, load_dataset
from idc_core.models import MODELS, load_model

__all__ = ["LayerCheck", "Mistake", "NetworkCheck", "Quality", "Trial", "check_network"]

_TRIALS = 12


def check_network(name: str, *, data: str = "", on_progress: Progress | None = None) -> NetworkCheck:
    """Check a network and its data.

    Parameters
    ----------
    name : str
        A name in `MODELS`, or the path of a file or folder.
    data : str
        Of a path: name or path of the data that the network takes.
    on_progress : Progress, optional

    Returns
    -------
    NetworkCheck

    Raises
    ------
    IdcError
        If the network or its data cannot be read at all.

    Notes
    -----
    Up to 500 inputs of each split, drawn with a fixed seed, go through the network; tests are compared with training
    inputs up to `idc_core.analysis.checking.digests.READ` bytes of each.
    """
    model = load_model(name, data=data)
    card = model.card
    train, test = (load_dataset(card.dataset, split, on_progress=on_progress) for split in ("train", "test"))
    layers = check_layers(model, np.asarray(test.inputs[:1]), card.layers, on_progress)
    code = not hasattr(MODELS[card.name].build, "path")
    evidence = Evidence(model, train, test, [layer.name for layer in layers if layer.shape], code, on_progress)
    mistakes = run_detectors(evidence)
    return NetworkCheck(
        network=card.name,
        data=train.name,
        parameters=card.parameters,
        fingerprint=card.fingerprint,
        notes=(*getattr(model, "remarks", ()), *evidence.notes),
        training=len(train),
        tests=len(test),
        input_shape=tuple(int(size) for size in test.inputs.shape[1:]),
        input_type=str(test.inputs.dtype),
        input_range=(float(evidence.inputs.min()), float(evidence.inputs.max())),
        task=train.task,
        class_names=train.class_names,
        quality=(
            quality(train, evidence.training_targets, evidence.training_scores),
            quality(test, evidence.targets, evidence.scores),
        ),
        layers=layers,
        trials=_trials(test, evidence.positions, evidence.scores),
        mistakes=mistakes,
        prepared=test.notes,
    )


def _trials(test: Dataset, positions: NDArray[np.int64], scores: NDArray[np.float32]) -> tuple[Trial, ...]:
    """Return some of the tests drawn, in the order of the split."""
    some = np.argsort(positions[:_TRIALS])
    return tuple(_trial(test, int(positions[place]), scores[place]) for place in some)


def _trial(test: Dataset, position: int, scores: NDArray[np.float32]) -> Trial:
    target = test.targets[position]
    if not test.class_names:
        return Trial(position, f"{target:.4g}", f"{scores[0]:.4g}", None, None)
    best = int(scores.argmax())
    with np.errstate(invalid="ignore"):  # scores need not be finite
        shares = np.exp(scores - scores[best])
        confidence = finite(float(shares[best] / shares.sum()))
    return Trial(position, test.class_names[int(target)], test.class_names[best], confidence, best == int(target))
