"""What all changes of texts share: their registry, and which words of a text are changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.base.parameters import Parameter, settle
from idc_core.base.registry import Registry
from idc_core.datasets.reading import Reading
from idc_core.errors import DataError
from idc_core.perturbation.inputs import as_numbers, check_seed, share_of, stream

SHARE = Parameter(
    "share", "Share of words", "Share of the words of a text that are changed, at least one.", 0.1, 0.01, 1.0
)
"""Every change has it."""

Change = Callable[[list[str], NDArray[np.int64], np.random.Generator, "Reading"], list[str]]
"""Called with a text's words, the places of those that are to be changed, ascending, the text's random numbers and how
texts are read; returns the words of the changed text."""


@dataclass(frozen=True)
class TextChange:
    """What a menu, the command line or the documentation says about a change of texts, and the function itself.

    `fits` says which words can be changed by it.
    """

    name: str
    label: str
    help: str
    citation: str
    apply: Change
    fits: Callable[[str, Reading], bool]
    parameters: tuple[Parameter, ...] = (SHARE,)


TEXT_CHANGES: Registry[TextChange] = Registry("change of texts")
"""Changes of texts by name, entered by `register_text_change`."""


def register_text_change(
    name: str, label: str, help: str, citation: str, fits: Callable[[str, Reading], bool] = lambda word, reading: True
) -> Callable[[Change], Change]:
    """Enter the decorated function into `TEXT_CHANGES`; suites, menus and figures follow from its entry."""

    def enter(apply: Change) -> Change:
        TEXT_CHANGES[name] = TextChange(name, label, help, citation, apply, fits)
        return apply

    return enter


def change_texts(
    inputs: NDArray[np.integer],
    reading: Reading,
    name: str,
    *,
    seed: int = 0,
    numbers: object = None,
    **settings: object,
) -> NDArray[np.integer]:
    """Change every text, int (n, length) token ids, by a change of `TEXT_CHANGES`.

    Words to change are drawn at random, without a second time, among those that the change fits. What is drawn depends
    on `seed` and on each input's number, `numbers` (n,), alone; its default is the input's position. A text with no
    such word stays as it is; a text that grows is cut at the end.

    Raises
    ------
    DataError, SettingError
        If the inputs are no texts, there is no such change or parameter, or a value is outside its range.

    Notes
    -----
    After M. T. Ribeiro, T. Wu, C. Guestrin, S. Singh, "Beyond accuracy: behavioral testing of NLP models with
    CheckList", ACL 2020, and J. Wei, K. Zou, "EDA: easy data augmentation techniques for boosting performance on text
    classification tasks", EMNLP-IJCNLP 2019.
    """
    chosen = TEXT_CHANGES[name]
    share = float(settle(chosen.parameters, settings, chosen.label)["share"])
    if inputs.ndim != 2 or inputs.dtype.kind not in "iu":
        raise DataError(
            f"Only texts can be changed by words: expected token ids of shape (n, length), not {inputs.dtype} of shape "
            f"{inputs.shape}."
        )
    seed, ids = check_seed(seed), as_numbers(numbers, len(inputs))
    changed = inputs.copy()
    for row, tokens in enumerate(inputs):
        words, random = reading.words(tokens), stream(seed, int(ids[row]))
        fitting = [at for at, word in enumerate(words) if reading.is_word(word) and chosen.fits(word, reading)]
        if fitting:
            places = random.choice(fitting, share_of(len(fitting), share), replace=False)
            changed[row] = reading.tokens(chosen.apply(words, np.sort(places), random, reading), tokens)
    return changed
