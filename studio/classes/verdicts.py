"""What labels say of a suspected pair, in words: how many inputs, the interval of their share, and the cut-off."""

from __future__ import annotations

import numpy as np

from studio.classes.class_errors import Looked
from studio.text import percent, plural


def verdict(looked: Looked, pair: tuple[int, int]) -> str:
    """Say whether labels confirm that a pair is confused, and by how much; empty where they say nothing."""
    verdicts = looked.found.verdicts(np.array([pair]))
    if verdicts is None or not np.isfinite(verdicts.rate[0]):
        return ""
    confirmed, clear = bool(verdicts.confirmed[0]), bool(verdicts.clear[0])
    cutoff = percent(verdicts.cutoff)
    side = f", {'above' if confirmed else 'below'} the cut-off of {cutoff}"
    return (
        f"{'confirmed by labels' if confirmed else 'not confirmed by labels'}{'' if clear else ' (uncertain)'}: "
        f"{verdicts.confused[0]:,} of {plural(int(verdicts.inputs[0]), looked.inputs_word)} confused, "
        f"{percent(verdicts.rate[0])} (95 % interval {percent(verdicts.low[0])} to {percent(verdicts.high[0])})"
        + (side if clear else f"; the cut-off of {cutoff} is within the interval")
    )


def cutoffs(looked: Looked) -> str:
    """Say above what labels confirm a pair, and that this depends on the other pairs."""
    result = looked.found.confusion_found
    if result is None:
        return ""
    return (
        f"Labels confirm a pair above {percent(result.truth_cutoff)} confusion: the mean of all "
        f"{plural(result.pairs, 'pair')} + {looked.found.deviations:g} SD. This cut-off depends on the network: where "
        "few inputs are misclassified, a single one can confirm a pair."
    )


def disparity(looked: Looked, pair: tuple[int, int]) -> str:
    """Say whether labels confirm that a pair is treated unequally, and by how much; empty where they say nothing."""
    errors = looked.found
    told, hits = errors.disparity_verdict(pair), errors.truly_biased(np.array([pair]))
    if errors.disparity is None or errors.bias_found is None or told is None or hits is None:
        return ""
    value, cutoff = float(errors.disparity[pair]), errors.bias_found.truth_cutoff
    if not np.isfinite(value):
        return ""
    clear = abs(value - cutoff) > told.margin
    return (
        f"{'confirmed by labels' if hits[0] else 'not confirmed by labels'}{'' if clear else ' (uncertain)'}: "
        f"disparity {value:.3f} ± {told.margin:.3f} from {plural(told.confused, f'confused {looked.inputs_word}')}, "
        f"cut-off {cutoff:.3f}"
    )
