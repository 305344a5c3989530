"""Findings on classes: each number beside what equal rates, other classes or pairs drawn at random give."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from idc_core.confusion.certainty import PairCounts
from idc_core.confusion.disparity import Disparity
from idc_core.confusion.matrix import Shares, share_interval
from idc_core.evidence.finding import Control, Finding

_Names = tuple[str, ...]


def pair_finding(names: _Names, counts: PairCounts, pair: tuple[int, int], noun: str = "test") -> Finding | None:
    """Return how many inputs of two classes are confused, beside the rate of the other pairs; None without others."""
    pairs = np.array([pair], np.int64)
    confused, inputs = (int(one[0]) for one in counts.of_pairs(pairs))
    wrong, total = counts.total
    if not inputs or inputs == total:
        return None
    p, least = (float(one[0]) for one in counts.chances(pairs))
    claim = f"Confused among {inputs:,} {_several(inputs, noun)} of {names[pair[0]]} and {names[pair[1]]}"
    return _against_others(
        "confused pair",
        claim,
        (confused, inputs),
        (wrong - confused, total - inputs),
        "at the rate of the other pairs",
        (p, least, counts.looks),
        (("pair", f"{pair[0]}-{pair[1]}"),),
    )


def most_confused(names: _Names, counts: PairCounts, noun: str = "test") -> Finding | None:
    """Return the finding of the pair that is least likely to be confused so often by chance; None without any."""
    pairs = counts.known
    if not len(pairs):
        return None
    confused, inputs = counts.of_pairs(pairs)
    # Pairs that are never confused by chance all have the probability 0.
    order = np.lexsort((-confused / np.maximum(inputs, 1), counts.chances(pairs)[0]))
    first, second = pairs[order[0]].tolist()
    return pair_finding(names, counts, (first, second), noun)


def least_recalled(names: _Names, recall: Shares, noun: str = "test") -> Finding | None:
    """Return how many inputs of the class with the least likely recall are misclassified, beside the other classes'.

    None with fewer than two classes that have inputs, or without a misclassified input. It is looked for beside the
    pairs, so that each class counts as two looks.
    """
    there = np.flatnonzero(recall.inputs > 0)
    inputs = recall.inputs[there]
    missed = inputs - recall.count[there]
    wrong, total = int(missed.sum()), int(inputs.sum())
    if len(there) < 2 or not wrong:
        return None
    from idc_core.base.scipy_parts import stats

    p = stats.hypergeom.sf(missed - 1, total, wrong, inputs)
    row = int(np.lexsort((-missed / inputs, p))[0])
    of, own, name = int(inputs[row]), int(missed[row]), names[there[row]]
    least = float(stats.hypergeom.sf(min(of, wrong) - 1, total, wrong, of))
    return _against_others(
        "recall",
        f"Misclassified among {of:,} {_several(of, noun)} of {name}",
        (own, of),
        (wrong - own, total - of),
        "at the rate of the other classes",
        (min(1.0, float(p[row])), min(1.0, least), 2 * len(there)),
        (("class", name),),
    )


def report_finding(reported: NDArray[np.bool_], certain: NDArray[np.bool_]) -> Finding:
    """Return how many of the pairs reported without labels are truly confused, beside as many pairs drawn at random.

    Both are bool (pairs,), over the pairs that can be reported.
    """
    from idc_core.base.scipy_parts import stats

    pairs, true, drawn = len(reported), int(certain.sum()), int(reported.sum())
    hits = int((reported & certain).sum())
    random = stats.hypergeom(pairs, true, drawn)
    expected = drawn * true / max(1, pairs)
    low, high = (float(end) for end in random.ppf([0.025, 0.975])) if pairs else (0.0, 0.0)
    outcomes = np.arange(max(0, drawn + true - pairs), min(drawn, true) + 1)
    chances = random.pmf(outcomes) if pairs else np.ones(1)
    away = np.abs(outcomes - expected)
    ends = [float(chances[away >= far - 1e-9].sum()) for far in (abs(hits - expected), away.max())]
    return Finding(
        "report",
        f"Truly confused among the {drawn:,} {_several(drawn, 'pair')} reported without labels"
        + (f", of {true:,} in all" if true else ""),
        hits,
        Control("among as many random pairs", expected, low, high),
        hits - high,
        hits - low,
        min(1.0, ends[0]),
        min(1.0, ends[1]),
    )


def disparity_finding(names: _Names, found: Disparity, pair: tuple[int, int]) -> Finding:
    """Return a pair's disparity beside that of equal rates.

    One look: pairs are chosen by their activations, and the disparity of no other pair is shown.
    """
    return Finding(
        "disparity",
        f"Disparity between {names[pair[0]]} and {names[pair[1]]}",
        found.value,
        Control("with equal rates", found.expected, found.expected_low, found.expected_high),
        found.low,
        found.high,
        found.p,
        found.least_p,
        unit="%",
        where=(("pair", f"{pair[0]}-{pair[1]}"),),
    )


def _against_others(
    subject: str,
    claim: str,
    own: tuple[int, int],
    others: tuple[int, int],
    what: str,
    chance: tuple[float, float, int],
    where: tuple[tuple[str, str], ...],
) -> Finding:
    """Return the finding of a count of so many inputs, beside that of all others.

    `chance` is the probability, the least one, and the number of looks.
    """
    from idc_core.base.scipy_parts import stats

    hits, inputs = own
    rate = others[0] / others[1]
    spread = stats.binom.ppf([0.025, 0.975], inputs, rate)
    low, high = share_interval(np.array([hits, others[0]], np.int64), np.array([inputs, others[1]], np.int64))
    # Both intervals joined as those of a difference of two proportions (R. G. Newcombe 1998, method 10).
    share, difference = hits / inputs, hits / inputs - rate
    down = np.hypot(share - low[0], high[1] - rate)
    up = np.hypot(high[0] - share, rate - low[1])
    p, least, looks = chance
    return Finding(
        subject,
        claim,
        hits,
        Control(what, inputs * rate, float(spread[0]), float(spread[1])),
        float(inputs * (difference - down)),
        float(inputs * (difference + up)),
        p,
        least,
        looks,
        where=where,
    )


def _several(number: int, noun: str) -> str:
    """Return a noun in the number that it has."""
    return noun if number == 1 else f"{noun}s"
