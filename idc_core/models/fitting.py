"""The scores of a person's network held against the classes of its data: how many there are, and which is which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from idc_core.errors import ModelError
from idc_core.lrp.explained import WAYS
from idc_core.lrp.scores import SCORES
from idc_core.models.class_order import ClassOrder, class_order, names_option
from idc_core.models.wrapping import put_order, put_two_scores

if TYPE_CHECKING:
    from idc_core.models.own import OwnModel
    from idc_core.models.survey import Survey

_SEVERAL = "multi_label_classification"
_TRUTHS = ({"0", "1"}, {"false", "true"}, {"no", "yes"})
_NAMED = ("class_names", "names", "classes")
"""Attributes in which networks keep the names of their outputs."""


def names_of_outputs(network: nn.Module) -> tuple[str, ...]:
    """Return the names that a network gives its outputs, in their order; empty where it gives none."""
    kept = [getattr(network, name, None) for name in _NAMED]
    kept.append(getattr(getattr(network, "config", None), "id2label", None))
    for names in kept:
        if isinstance(names, Mapping) and sorted(map(str, names)) == sorted(map(str, range(len(names)))):
            by_number = {int(number): name for number, name in names.items()}
            names = [by_number[number] for number in range(len(names))]
        if isinstance(names, tuple | list) and names and all(isinstance(name, str) for name in names):
            return tuple(names)
    return ()


def fit_scores(entry: OwnModel, network: nn.Module, seen: Survey, where: str) -> tuple[tuple[str, ...], ClassOrder]:
    """Check the scores; make two of the one that two classes have, and put them into the order of the data's classes.

    Returns
    -------
    tuple of str
        What was done, each a sentence.
    ClassOrder
        The output of each class.

    Raises
    ------
    ModelError
        If they are not the scores of these classes.
    """
    scores, names, remarks = seen.scores, _class_names(entry), seen.remarks
    single = isinstance(scores, Tensor) and (scores.dim() == 1 or (scores.dim() == 2 and scores.shape[1] == 1))
    if entry.task == "classification" and len(names) == 2 and single and scores.is_floating_point():
        put_two_scores(network, seen.probability)
        probability = "probability p of the second class: -x/2 and x/2 are analysed, x the logit of p"
        score = "score x: -x/2 and x/2 are analysed, so that the second class is predicted where x is above 0"
        remarks += (f"It gives one {probability if seen.probability else score}.",)
        outputs = 2
    else:
        outputs = _checked(entry, seen, where)
    if entry.task != "classification":
        return remarks, ClassOrder(tuple(range(outputs)))
    order = _order(entry, network, seen, outputs, where)
    if not order.same(outputs):
        put_order(network, order.outputs)
    return (*remarks, *filter(None, (order.said,))), order


def _order(entry: OwnModel, network: nn.Module, seen: Survey, outputs: int, where: str) -> ClassOrder:
    names = _class_names(entry)
    if entry.output_names and len(entry.output_names) != outputs:
        raise ModelError(
            f"{where} has {outputs:,} outputs, but {len(entry.output_names):,} names are given for them "
            f"({', '.join(entry.output_names)[:200]}); give one name per output, in their order."
        )
    called = entry.output_names or names_of_outputs(network)
    several = seen.probability or getattr(getattr(network, "config", None), "problem_type", "") == _SEVERAL
    two = seen.scores.dim() == 2 and seen.scores.shape[1] == 2  # of one score that became two they are the classes
    if several and two and {name.lower() for name in names} in _TRUTHS and not set(names) <= set(called):
        raise ModelError(
            f"{where} has 2 outputs that are probabilities each, as of two labels that an input can have both, but its "
            f"data have the classes {names[0]} and {names[1]}. Networks of several labels are not analysed; let the "
            f"network give the score of one label. Where its outputs are these classes, say so by "
            f"{names_option(names)} (in Python class_names of the network)."
        )
    order = class_order(called, outputs, names, where)
    if order is not None:
        return order
    advice = "give one score per class" if outputs == 1 else "name all classes with class_names=(...) of its data"
    if outputs > len(names):
        advice = (
            f"say which class each output is by {names_option(())} (in Python class_names of the network), or "
            "number the targets as the outputs are"
        )
    advice = _other_output(seen.returned, len(names)) or _from_one(entry.dataset, outputs) or advice
    raise ModelError(
        f"{where} returns {outputs} score{'s' if outputs > 1 else ''} per input, but {entry.dataset!r} has "
        f"{len(names)} classes ({', '.join(names[:12])}): {advice}."
    )


def _class_names(entry: OwnModel) -> tuple[str, ...]:
    from idc_core.datasets import DATASETS

    return DATASETS[entry.dataset].class_names


def _other_output(returned: Mapping[str, Tensor], classes: int) -> str:
    """Say that one of several outputs was taken, and how to take another; "" where there is one alone."""
    if len(returned) < 2:
        return ""
    shapes = ", ".join(f"{name!r} of shape {tuple(value.shape)}" for name, value in returned.items())
    fitting = (name for name, value in returned.items() if value.dim() == 2 and value.shape[1] == classes)
    return (
        f"it returned several outputs, {shapes}, of which one was taken; take another with --output "
        f"{next(fitting, list(returned)[-1])} (in Python output=...), or say which scores are meant with explain=..."
    )


def _from_one(dataset: str, outputs: int) -> str:
    """Say that classes are counted from 1 where those of a data set are."""
    from idc_core.datasets import DATASETS

    names = DATASETS[dataset].class_names
    if len(names) != outputs + 1 or names != tuple(map(str, range(len(names)))):
        return ""
    targets = DATASETS[dataset].load("train", None, None).targets
    if not len(targets) or min(targets) != 1:
        return ""
    return f"its targets are 1 to {max(targets)}; count classes from 0, as outputs are (targets - 1)"


def _checked(entry: OwnModel, seen: Survey, where: str) -> int:
    """Return how many scores there are per input; ModelError where what is returned is none."""
    scores: Any = seen.scores
    if not isinstance(scores, Tensor):
        raise ModelError(
            f"{where} returns a {type(scores).__name__}; expected scores (n, classes), or a dictionary or record with "
            f"one of {', '.join(SCORES)}."
        )
    shape = tuple(scores.shape)
    if scores.dim() not in (1, 2) or not scores.is_floating_point():
        kind = str(scores.dtype).removeprefix("torch.")
        advice = f" Say which are explained with explain={WAYS} (--explain NAME)." if len(shape) > 2 else ""
        raise ModelError(
            f"{where} returns {kind} of shape {shape}; expected scores of shape (n, classes) as floats.{advice}"
        )
    outputs = 1 if scores.dim() == 1 else shape[1]
    if entry.task == "regression" and outputs != 1:
        raise ModelError(
            f"{where} returns {outputs} numbers per input, but {entry.dataset!r} is a regression: expected one. Where "
            'its targets are classes, give them as whole numbers or say task="classification".'
        )
    return int(outputs)
