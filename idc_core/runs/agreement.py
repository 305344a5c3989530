"""Whether a result from elsewhere agrees with itself and with its settings, as pages and commands rely on.

Shapes, types, ranges, finite numbers, and what can be counted again from its own arrays. Whether the numbers are right,
only computing them again could tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from idc_core.base.arrays import Array
from idc_core.base.parameters import is_number, is_whole, shown
from idc_core.base.ranges import M
from idc_core.coverage.cells import encode, total
from idc_core.errors import DataError

if TYPE_CHECKING:
    from idc_core.analysis.predictions import Predictions
    from idc_core.analysis.result import Analysis
    from idc_core.confusion.report import ClassErrors
    from idc_core.generation import Disagreements
    from idc_core.inspection import Inspection
    from idc_core.runs.attack_run import AttackRun
    from idc_core.suites.comparison import SuiteCells, SuiteComparison, SuiteResult
    from idc_core.tracing.traces import Traces

_Settings = Mapping[str, Any]

_Sides = Sequence[int | None]
"""Shape of an array; None for a side of any length."""


def check_agreement(kind: str, value: Any, settings: _Settings) -> None:
    """Raise `DataError`, which says what does not agree, unless a result of a kind agrees with its settings.

    Of a kind that is added from elsewhere, only its class and figures can be checked, by whoever calls this.
    """
    if kind in _CHECKS:
        _CHECKS[kind](value, settings)


def _analysis(found: Analysis, settings: _Settings) -> None:
    m, tests = found.m, len(found.predictions)
    _agree(is_whole(m, 1, M.high), f"it has {shown(m)} important neurons")
    _agree((found.layer, m) == (settings["layer"], settings.get("m", m)), "layer or m are not those of its settings")
    _agree(settings.get("test_inputs", tests) == tests, "it has another number of tests than its settings")
    kept = {name: list(one) if isinstance(one, tuple) else one for name, one in found.settings.items()}
    _agree(isinstance(kept.get("original"), bool), "its settings lack the option original")
    _agree(all(kept[name] == settings[name] for name in kept.keys() & settings.keys()), "it has two sets of settings")
    _predictions("predictions", found.predictions, found.confidence, found.correct, tests)
    neurons = len(_array("importance", found.importance, np.float64, [None]))
    important = _array("important", found.important, np.int64, [m], 0, neurons - 1)
    _agree(len(np.unique(important)) == m, "an important neuron comes twice")
    sizes = [len(centroids) for centroids in found.centroids]
    _agree(len(sizes) == len(found.clusters) == m, f"it has no clusters of {m} neurons")
    for centroids, clusters in zip(found.centroids, found.clusters, strict=True):
        _array("centroids", centroids, np.float64, [None])
        _agree(bool((np.diff(centroids) >= 0).all()), "centroids do not ascend")
        _array("centroids", clusters.centroids, np.float64, [len(centroids)])
        _array("boundaries", clusters.boundaries, np.float64, [len(centroids) - 1])
        _array("counts", clusters.counts, np.int64, [len(centroids)], 0)
    learnt = len(_array("train_activations", found.train_activations, np.float32, [None, m]))
    _agree(learnt <= settings.get("training_inputs", learnt), "it learnt from more inputs than its settings say")
    _array("test_activations", found.test_activations, np.float32, [tests, m])
    _array("test_relevance", found.test_relevance, np.float32, [tests, m])
    _array("assignments", found.assignments, np.uint8, [tests, m])
    _cells(found.codes, encode(found.assignments, sizes), sizes, found.covered, found.total)
    _agree(math.isclose(found.score, found.covered / found.total), "its IDC is not covered / total cells")
    _quality(found.accuracy, found.rmse, found.correct)


def _cells(codes: Array, expected: Array, sizes: Sequence[int], covered: int, cells: int) -> None:
    """Check that codes, how many there are, and how many cells there are, are those of the assignments."""
    same = (codes.shape, codes.dtype) == (expected.shape, expected.dtype) and bool((codes == expected).all())
    _agree(same, "cells are not those of its assignments")
    _agree(
        (covered, cells) == (len(np.unique(codes)), total(sizes)), "covered or total cells are not those of its tests"
    )


def _quality(accuracy: float | None, rmse: float | None, correct: Array) -> None:
    """Check the figures of predictions."""
    if accuracy is not None:
        _agree(len(correct) and math.isclose(accuracy, correct.mean(), abs_tol=1e-6), "accuracy is another one")
    _agree(rmse is None or is_number(rmse), "the root mean squared error is no number from 0")


def _predictions(name: str, classes: Array, confidence: Array, correct: Array, inputs: int) -> None:
    _array(name, classes, np.int64, [inputs], 0)
    _array("confidence", confidence, np.float32, [inputs])
    _array("correct", correct, np.bool_, [inputs])


def _comparison(found: SuiteComparison, settings: _Settings) -> None:
    count = len(found.suites)
    _agree(found.layer == settings["layer"], "its layer is not that of its settings")
    _agree(found.ms and found.suites and sorted(set(found.ms)) == list(found.ms), "it compares nothing")
    _agree(is_whole(found.ms[0], 1) and len(found.sizes) == found.ms[-1], "m and numbers of clusters do not agree")
    _agree(set(found.shared) == set(found.ms), "it has shared cells of another m")
    for shared in found.shared.values():
        _array("shared", shared, np.int64, [count, count], 0)
    for suite in found.suites:
        _suite(suite, found)


def _suite(suite: SuiteResult, found: SuiteComparison) -> None:
    held: Predictions = suite.predictions
    _predictions("classes", held.classes, held.confidence, held.correct, suite.inputs)
    _agree(0 <= suite.extra <= suite.inputs and suite.inputs > 0, "it has other numbers of inputs than its suites")
    _quality(suite.accuracy, suite.rmse, held.correct)
    for figure in (suite.confidence, suite.extra_accuracy, suite.extra_confidence):
        _agree(figure is None or is_number(figure, 0, 1 + 1e-6), "an accuracy or a confidence is not from 0 to 1")
    _agree(set(suite.cells) == set(found.ms), "a suite has cells of another m")
    for m in found.ms:
        _suite_cells(suite.cells[m], m, suite.inputs, found.sizes[:m])


def _suite_cells(cells: SuiteCells, m: int, inputs: int, sizes: Sequence[int]) -> None:
    most = total(sizes) - 1
    _agree(cells.m == m, "a suite has cells of another m")
    for name, codes, length in (("codes", cells.codes, inputs), ("added", cells.added, None)):
        _array(name, codes, np.int64 if most < 1 << 63 else object, [length])
        _agree(all(type(code) is int and 0 <= code <= most for code in codes.tolist()), "a cell is none of the grid")
    _array("first", cells.first, np.int64, [len(cells.added)], 0, inputs - 1)
    _agree((cells.covered, cells.total) == (len(np.unique(cells.codes)), most + 1), "covered or total cells are others")


def _attack(found: AttackRun, settings: _Settings) -> None:
    count = len(_array("positions", found.positions, np.int64, [None], 0))
    _array("success", found.success, np.bool_, [count])
    for name in ("l2", "linf"):
        _array(name, getattr(found, name), np.float64, [count], 0)
    _agree(is_whole(found.added), "its added cells are no number from 0")


def _search(found: Disagreements, settings: _Settings) -> None:
    count, seeds = len(found.inputs), found.seeds
    _agree(found.inputs.ndim == 4 and found.inputs.shape[1] in (1, 3), "its inputs are no pictures")
    _array("inputs", found.inputs, np.float32, [None] * 4, 0, 1)
    _agree(is_whole(seeds, 1) and count <= seeds, "it has more disagreements than seeds, or no seeds")
    _array("seed_index", found.seed_index, np.int64, [count], 0, seeds - 1)
    _array("iterations", found.iterations, np.int64, [count], 0)
    for name, rows in (("predictions", count), ("seed_predictions", seeds)):
        answers = getattr(found, name)
        _array(name, answers, answers.dtype, [rows, found.seed_predictions.shape[-1]])
        _agree(answers.dtype.kind in "fi", f"its {name} are no classes or numbers")
    _array("turned", found.turned, np.int64, [seeds], 0, found.seed_predictions.shape[-1] - 1)
    _agree(
        is_number(found.seconds) and is_whole(found.settings.get("iterations"), 0), "it lacks its time, or its steps"
    )


def _inspection(found: Inspection, settings: _Settings) -> None:
    from idc_core.inspection.result import COLUMNS

    table, rows = found.table, len(found.table["score"])
    _agree(tuple(table) == COLUMNS, "its table has other columns")
    for name in ("model", "layer", "group", "hypothesis", "measure", "remark"):
        _array(name, table[name], object, [rows])
        _agree(all(isinstance(word, str) for word in table[name].tolist()), f"its column {name} is no text")
    for name in ("score", "low", "high", "margin", "p_value"):
        _array(name, table[name], np.float64, [rows], undefined=True)
    _array("records", table["records"], np.int64, [rows], 0)
    for units in found.units.values():
        _array("units", units, np.float64, [None, 2])
    most = {place: len(units) for place, units in found.units.items()}
    places = zip(table["model"].tolist(), table["layer"].tolist(), strict=True)
    ends = np.array([most.get(place, 0) for place in places], np.int64)
    unit = _array("unit", table["unit"], np.int64, [rows], -1)
    _agree(bool((unit < np.maximum(ends, 0)).all()), "its table names units that it does not have")
    known = {name for name, *_ in found.hypotheses}
    _agree(known.issuperset(table["hypothesis"].tolist()), "its table names hypotheses that it does not have")
    about = found.about
    lists = [about.get(name) for name in ("models", "layers")]
    _agree(all(isinstance(one, dict) for one in lists), "it does not say of which networks and layers it is")
    _agree(about["models"].keys() >= {model for model, _ in found.units}, "it has units of other networks")
    _agree({"dataset", "split", "records", "seed", "error", "confidence"} <= about.keys(), "it lacks its settings")


def _class_errors(found: ClassErrors, settings: _Settings) -> None:
    classes = len(found.class_names)
    _agree(classes >= 2 and len(set(found.class_names)) == classes, "it has fewer than two classes, or one twice")
    _agree(is_number(found.threshold) and is_number(found.deviations), "its thresholds are no numbers from 0")
    _array("probability", found.probability, found.probability.dtype, [None, classes], 0, 1, undefined=True)
    if found.images is not None:
        _array("images", found.images, np.int64, [classes], 0)
    for name in ("distance", "bias", "directional", "inputs", "confusion", "disparity"):
        matrix = getattr(found, name)
        if matrix is not None:
            _array(name, matrix, np.float64, [classes, classes], undefined=True)
    together = [found.confusion, found.directional, found.inputs, found.confusion_found]
    _agree(len({one is None for one in together}) == 1, "it has labels for some of its figures only")
    _agree(found.disparity is not None or found.bias_found is None, "it compares bias with nothing")


def _traces(found: Traces, settings: _Settings) -> None:
    inputs = len(_array("scores", found.scores, np.float32, [None, None]))
    _agree(found.activations.keys() == found.shapes.keys(), "its layers and their shapes do not agree")
    _agree(found.relevance.keys() <= found.activations.keys(), "it has relevance of other layers")
    for name, layers in (("activations", found.activations), ("relevance", found.relevance)):
        for layer, values in layers.items():
            shape = found.shapes[layer]
            _agree(shape and all(is_whole(side, 1) for side in shape), f"the shape of {shown(layer)} is none")
            _array(name, values, np.float32, [inputs, None])
            _agree(
                values.shape == found.activations[layer].shape, f"activations and relevance of {shown(layer)} differ"
            )


_CHECKS: dict[str, Callable[[Any, _Settings], None]] = {
    "analysis": _analysis,
    "comparisons": _comparison,
    "attack-runs": _attack,
    "searches": _search,
    "inspections": _inspection,
    "class-errors": _class_errors,
    "trace": _traces,
}
"""What checks a result, by its kind."""


def _agree(does: object, what: str) -> None:
    if not does:
        raise DataError(f"what it holds does not agree: {what}.")


def _array(
    name: str,
    array: Array,
    kind: DTypeLike,
    shape: _Sides,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    undefined: bool = False,
) -> Array:
    """Return an array of a type and shape whose values are in a range, and finite unless they may be `undefined`."""
    fits = array.ndim == len(shape) and all(
        side is None or side == own for side, own in zip(shape, array.shape, strict=False)
    )
    if array.dtype != kind or not fits:
        sides = ", ".join("any" if side is None else str(side) for side in shape)
        raise DataError(
            f"its {name} are {array.dtype} of shape {array.shape}, where {np.dtype(kind)} of shape ({sides}) was "
            "expected."
        )
    if array.dtype.kind == "f" and not undefined and not np.isfinite(array).all():
        raise DataError(f"its {name} hold values that are not finite.")
    if array.dtype.kind != "O" and ((array < low).any() or (array > high).any()):
        raise DataError(f"its {name} hold values outside {low:g} to {high:g}.")
    return array
