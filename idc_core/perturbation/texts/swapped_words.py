"""Words that change places with the next one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.reading import Reading
from idc_core.perturbation.texts.registry import register_text_change


@register_text_change(
    "swapped", "Swapped words", "Exchanges some words with the word behind them.", "Wei and Zou, EMNLP 2019"
)
def _swapped(words: list[str], places: NDArray[np.int64], random: np.random.Generator, reading: Reading) -> list[str]:
    changed = list(words)
    for at in places:
        following = at + 1
        if following < len(words) and reading.is_word(words[following]):
            changed[at], changed[following] = changed[following], changed[at]
    return changed
