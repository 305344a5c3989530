"""Words that are left out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.reading import Reading
from idc_core.perturbation.texts.registry import register_text_change


@register_text_change("dropped", "Dropped words", "Leaves some words out.", "Wei and Zou, EMNLP 2019")
def _dropped(words: list[str], places: NDArray[np.int64], random: np.random.Generator, reading: Reading) -> list[str]:
    return [word for at, word in enumerate(words) if at not in places]
