"""Measures of how far one unit behaves like one hypothesis, and their registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from idc_core.errors import SettingError
from idc_core.inspection.hypothesis import Kind
from idc_core.inspection.sums import Binned, Encoder, Exceedance, Moments, Ranks, Statistic, Sums

_SettingValues = tuple[tuple[str, float], ...]

_ROUNDING = 1e-6
"""What is left of a sum of squares, as a share of it, when single precision has taken it from places' sums."""


@dataclass(frozen=True)
class PairMeasure:
    """A measure of one unit and one hypothesis of one of its `kinds`, computed from sums.

    `encode` makes the encoder of the sums from (pilot units, pilot behaviours, classes, settings); measures with equal
    `encoder` and `settings` share the sums. `statistic` turns (sums, encoder) into the score, `association` sums into
    the correlation that is tested, or into several of which one is enough, (tests, H, U); None without a test. `signed`
    scores can be negative, so that a map needs two colours.
    """

    name: str
    label: str
    help: str
    citation: str
    kinds: tuple[Kind, ...]
    encode: Callable[[Tensor, Tensor, int, dict[str, float]], Encoder]
    encoder: str
    statistic: Callable[[Sums, Any], NDArray[np.float64]]
    association: Statistic | None = None
    settings: _SettingValues = ()
    signed: bool = False

    def with_settings(self, **settings: float) -> PairMeasure:
        """Return the measure with other settings; SettingError for an unknown name or a value out of range."""
        known = dict(self.settings)
        for name, value in settings.items():
            if name not in known:
                raise SettingError(f"{self.label} has no setting {name!r}; it has {', '.join(known) or 'none'}.")
            low, high = (0, 1) if name == "share" else (2, 64)
            if not low < value <= high:
                raise SettingError(f"{name} of {self.label} must be above {low} and at most {high}, not {value!r}.")
        return replace(self, settings=tuple((known | settings).items()))

    @property
    def key(self) -> tuple[object, ...]:
        """What tells its sums from others."""
        return self.encoder, self.settings


def correlation(sums: Sums, encoder: object = None) -> NDArray[np.float64]:
    """Return Pearson's correlation; 0 of a unit that never changes, NaN of a hypothesis that never does."""
    n = sums["n"]
    units = np.maximum(sums["xx"] - sums["x"] ** 2 / n, 0)
    behaviours = np.maximum(sums["yy"] - sums["y"] ** 2 / n, 0)
    # What is left of a variance after rounding in single precision is not a variance.
    still, fixed = units <= 1e-9 * sums["xx"], behaviours <= 1e-9 * sums["yy"]
    shared = sums["x"] * (sums["y"] / n)
    return _correlated(np.subtract(sums["xy"], shared, out=shared), units, behaviours, still, fixed)


def _correlated(
    shared: NDArray[np.float64],
    units: NDArray[np.float64],
    behaviours: NDArray[np.float64],
    still: NDArray[np.bool_],
    fixed: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Turn covariances into correlations, in place: a jackknife asks for many thousands of them, many times."""
    shared *= np.where(still, 0, 1 / np.sqrt(np.where(still, 1, units)))
    shared *= 1 / np.sqrt(np.where(fixed, np.nan, behaviours))
    return np.clip(shared, -1, 1, out=shared)


def _difference(sums: Sums, encoder: Moments) -> NDArray[np.float64]:
    """Return the mean where the hypothesis is true less the mean where it is not, in parts of the unit's range."""
    about = encoder.about_behaviours.double().numpy()[:, None]
    true, of_true = sums["y"] + about * sums["n"], sums["xy"] + about * sums["x"]
    apart = of_true / true - (sums["x"] - of_true) / (sums["n"] - true)
    span = encoder.span[None]
    return np.asarray(np.where((span == 0) & np.isfinite(apart), 0.0, apart / np.where(span == 0, 1, span)))


def _overlap(sums: Sums, encoder: object = None) -> NDArray[np.float64]:
    """Return intersection over union of "the unit is among its highest" and "the hypothesis is true"."""
    overlap = sums["both"] / (sums["true"] + sums["active"] - sums["both"])
    return np.asarray(np.where(sums["true"] > 0, overlap, np.nan))


def beyond_place(sums: Sums) -> NDArray[np.float64]:
    """Return Pearson's correlation after each place's mean is taken out of unit and hypothesis.

    In centred pictures whatever responds to ink correlates with whatever names ink by place alone. Of behaviours dealt
    out to other records, what is left here correlates 0 on average. Without places it is the plain correlation; NaN of
    a hypothesis that is the same in all records.
    """
    if "x_place" not in sums:
        return correlation(sums)
    x, y = sums["x_place"][:, 0], sums["y_place"][..., 0]
    records = sums["n"] / len(x)
    units = np.maximum(sums["xx"] - (x * x).sum(0) / records, 0)
    behaviours = np.maximum(sums["yy"] - (y * y).sum(0)[:, None] / records, 0)
    shared = sums["xy"] - y.T @ x / records
    still, fixed = units <= _ROUNDING * sums["xx"], behaviours <= _ROUNDING * sums["yy"]
    return _correlated(shared, units, behaviours, still, fixed)


def joint(sums: Sums) -> NDArray[np.float64]:
    """Return `beyond_place` of "the unit is among its highest" and "the hypothesis is true"."""
    active, true = sums["active"], sums["true"]
    moments = {"n": sums["n"], "x": active, "xx": active, "y": true, "yy": true, "xy": sums["both"]}
    return beyond_place(moments | {name: sums[name] for name in ("x_place", "y_place") if name in sums})


def _cells(sums: Sums) -> NDArray[np.float64]:
    """Return `beyond_place` of every "the unit is above an edge" and "the hypothesis is in a bin": (cells, H, U).

    Unit and hypothesis, in bins, are independent where all of these are 0; the lowest bin follows from the others.
    """
    of_bins, both = _between(sums["y"], 0), _between(sums["xy"], 0)
    in_place = "x_place" in sums
    places = _between(sums["y_place"], 0) if in_place else None
    cells = []
    for level, bins in enumerate(both):
        for edge, shared in enumerate(bins):
            x, y = sums["x"][edge], of_bins[level]
            moments = {"n": sums["n"], "x": x, "xx": x, "y": y, "yy": y, "xy": shared}
            if places is not None:
                moments |= {"x_place": sums["x_place"][edge], "y_place": places[level]}
            cells.append(beyond_place(moments))
    return np.stack(cells)


def _information(sums: Sums, encoder: object = None) -> NDArray[np.float64]:
    """Return the share of the hypothesis's entropy that the unit's bin tells: mutual information / entropy."""
    n = sums["n"]
    x = _between(np.concatenate([np.broadcast_to(n, (1, *sums["x"].shape[1:])), sums["x"]]), 0)
    y = _between(np.concatenate([np.broadcast_to(n, (1, *sums["y"].shape[1:])), sums["y"]]), 0)
    # The table of all rows, rows above an edge, rows above a level and rows above both, then differences.
    levels, bins, wide, units = sums["xy"].shape
    full = np.empty((levels + 1, bins + 1, wide, units))
    full[0, 0], full[1:, 1:] = n, sums["xy"]
    full[0, 1:], full[1:, 0] = sums["x"], sums["y"]
    table = _between(_between(full, 0), 1)
    expected = y[:, None] * x[None] / n
    terms = np.where(table > 0, table * np.log(np.where(table > 0, table / np.where(expected > 0, expected, 1), 1)), 0)
    share = y / n
    entropy = -np.where(share > 0, share * np.log(np.where(share > 0, share, 1)), 0).sum(0)
    shared = terms.sum((0, 1)) / n
    return np.where(entropy > 0, np.maximum(shared, 0) / np.where(entropy > 0, entropy, 1), np.nan)


def _between(above: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Turn counts above each of rising edges, all rows first, into counts between neighbouring edges."""
    return np.asarray(
        above
        - np.concatenate(
            [np.take(above, range(1, above.shape[axis]), axis), np.zeros_like(np.take(above, [0], axis))], axis
        )
    )


_DEEPBASE = "T. Sellam et al., DeepBase: Deep Inspection of Neural Networks, SIGMOD 2019"
_DISSECTION = "D. Bau et al., Network Dissection, CVPR 2017"

PAIR_MEASURES: dict[str, PairMeasure] = {
    measure.name: measure
    for measure in (
        PairMeasure(
            "pearson",
            "Pearson correlation",
            "Linear correlation of the neuron's activation and the hypothesis.",
            _DEEPBASE,
            ("binary", "number"),
            lambda x, y, classes, settings: Moments.of(x, y),
            "moments",
            correlation,
            beyond_place,
            signed=True,
        ),
        PairMeasure(
            "spearman",
            "Spearman correlation",
            "Correlation of ranks: only the order of values counts.",
            _DEEPBASE,
            ("binary", "number"),
            lambda x, y, classes, settings: Ranks.of(x, y),
            "ranks",
            correlation,
            beyond_place,
            signed=True,
        ),
        PairMeasure(
            "difference",
            "Difference of means",
            "The neuron's mean where the hypothesis is true minus its mean elsewhere, divided by its range.",
            _DEEPBASE,
            ("binary",),
            lambda x, y, classes, settings: Moments.of(x, y),
            "moments",
            _difference,
            beyond_place,
            signed=True,
        ),
        PairMeasure(
            "information",
            "Mutual information",
            "Share of the hypothesis's entropy explained by the neuron's value, for any form of dependence.",
            _DEEPBASE,
            ("binary", "number", "classes"),
            lambda x, y, classes, settings: Binned.of(x, y, int(settings["bins"]), classes),
            "binned",
            _information,
            _cells,
            settings=(("bins", 8),),
        ),
        PairMeasure(
            "iou",
            "Intersection over union",
            "Overlap of the neuron's highest activations and the hypothesis: both, divided by either.",
            _DISSECTION,
            ("binary",),
            lambda x, y, classes, settings: Exceedance.of(x, settings["share"]),
            "exceedance",
            _overlap,
            joint,
            settings=(("share", 0.05),),
        ),
    )
}
"""Measures of a unit and a hypothesis by name."""
