"""How many new cells as many natural inputs would add: what an addition to the tests is compared with.

Natural inputs that neither network nor clusters have seen are rarely at hand, and training inputs are none: clusters
were fitted to them. What more tests of the same kind would add follows from how often the tests reach each cell. (Half
of the digits' tests, added to the other half, lie outside of the range of as many training inputs in 56 % of 200 draws,
and stand out beside this prediction in 4 %.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import SettingError
from idc_core.evidence.discovery import Discovery
from idc_core.evidence.finding import Control, Finding

_NATURAL = "in as many natural inputs"
"""What gives the control, as a phrase that follows its number."""


def addition(
    claim: str,
    added: Sequence[int],
    counts: NDArray[np.integer],
    total: int,
    inputs: int,
    *,
    looks: int = 1,
    where: tuple[tuple[str, str], ...] = (),
) -> Finding:
    """Compare what an addition adds with what as many natural inputs would.

    Of more inputs than there are tests, these say a lower bound only: too few to tell.

    Parameters
    ----------
    claim : str
        The number in words: "New cells from 64 FGSM inputs".
    added : sequence of int
        New cells of the addition, one number per seed; their mean counts.
    counts : ndarray, int (reached,)
        How many tests each reached cell holds.
    total : int
        Number of cells there are.
    inputs : int
        Number of inputs that one seed adds.
    looks, where
        As in `Finding`.
    """
    tests, left = int(np.sum(counts)), total - len(counts)
    if np.ndim(counts) != 1 or not tests or np.min(counts) < 1 or inputs < 1 or left < 0:
        raise SettingError(
            f"Expected numbers of tests of at least 1 in 1 to {total} cells and at least 1 input; got {len(counts)} "
            f"cells and {inputs} inputs."
        )
    number, known = float(np.mean(added)), Discovery.of_counts(counts, total) if tests > 1 else None
    if known is None or inputs > tests:
        expected, low, high = 0.0 if known is None else known.expected(inputs), 0, max(min(inputs, left), 0)
        p = least = 1.0
    else:
        expected, low, high = known.new(inputs)
        p, least = known.p_of(inputs, number), known.least_p(inputs)
    control = Control(_NATURAL, min(max(round(expected, 2), low), high), low, high)
    return Finding("addition", claim, number, control, number - high, number - low, p, least, looks, where=where)
