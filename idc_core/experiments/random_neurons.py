"""Random neurons to compare the important ones with."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idc_core.base.parameters import is_whole, shown
from idc_core.base.ranges import DRAWS
from idc_core.errors import SettingError

_MOST_TRIED = 20
"""Seeds that are tried per draw: where few sets of neurons are possible, no more of them are found."""

Seeds = int | Sequence[int]
"""How many seeds, counted from 0, or the seeds themselves."""


def check_seeds(seeds: Seeds) -> tuple[int, ...]:
    """Return the seeds, one or more whole numbers of at least 0."""
    listed = range(int(DRAWS.check(seeds))) if isinstance(seeds, int) and not isinstance(seeds, bool) else seeds
    values = tuple(listed) if isinstance(listed, Sequence) else ()
    fine = all(is_whole(value) for value in values)
    if not values or not fine:
        raise SettingError(
            f"seeds must be a whole number of at least 1, or a list of them from 0 up, not {shown(seeds)}."
        )
    return tuple(int(value) for value in values)


def check_neurons(important: ArrayLike, neurons: int) -> NDArray[np.int64]:
    """Return neurons of a layer, int64 (m,), one or more, each named once."""
    numbers = np.asarray(important)
    if numbers.ndim != 1 or not len(numbers) or numbers.dtype.kind not in "iu":
        raise SettingError(f"important must be a list of neurons, whole numbers, not {important!r:.80}.")
    if numbers.min() < 0 or numbers.max() >= neurons:
        raise SettingError(f"important names a neuron outside 0..{neurons - 1}, the layer's {neurons} neurons.")
    if len(np.unique(numbers)) < len(numbers):
        raise SettingError("important names a neuron twice; expected each once.")
    return numbers.astype(np.int64)


def shuffled_others(important: NDArray[np.int64], neurons: int, seed: int) -> NDArray[np.int64]:
    """Return the layer's other neurons in random order, int64 (neurons - m,).

    The first c of them are c random neurons, and are also among the first c + 1.
    """
    others = np.setdiff1d(np.arange(neurons, dtype=np.int64), important)
    return np.random.default_rng(seed).permutation(others)


def some_neurons(neurons: int, count: int, seed: int = 0) -> NDArray[np.int64]:
    """Return neurons of a layer drawn at random, ascending, int64 (k,); all of them where there are no more."""
    drawn = shuffled_others(np.zeros(0, np.int64), neurons, seed)[:count]
    return np.sort(drawn)


def distinct_draws(
    important: NDArray[np.int64], neurons: int, count: int, seeds: tuple[int, ...]
) -> dict[int, NDArray[np.int64]]:
    """Return `count` of the layer's other neurons by seed; a seed that draws the same ones as an earlier is left out.

    Where `count` is the number of all others, there is one draw.
    """
    drawn: dict[frozenset[int], int] = {}
    orders = {}
    for seed in seeds:
        order = shuffled_others(important, neurons, seed)[:count]
        if drawn.setdefault(frozenset(order.tolist()), seed) == seed:
            orders[seed] = order
    return orders


def seeds_of_draws(important: ArrayLike, neurons: int, draws: int) -> tuple[int, ...]:
    """Return seeds that each draw another set of as many other neurons, as many as asked for or as are found."""
    chosen = check_neurons(important, neurons)
    tried = 4 * draws
    while len(seeds := tuple(distinct_draws(chosen, neurons, len(chosen), tuple(range(tried))))) < draws:
        if tried > _MOST_TRIED * draws:
            break
        tried *= 4
    return seeds[:draws]
