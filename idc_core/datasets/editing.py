"""One input changed by hand: pixels painted over, a text written anew."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.dataset import Dataset


def paint_over(image: NDArray[np.generic], painted: Iterable[Sequence[int]]) -> NDArray[np.generic]:
    """Return a copy of a picture with painted pixels.

    Parameters
    ----------
    image : ndarray, float (C, H, W)
        In 0..1.
    painted : iterable of (place, red, green, blue)
        The pixel's place, counted row by row, and its new colour in 0..255. Places outside the picture are left out.

    Notes
    -----
    A picture that has not three channels takes the mean of the colours.
    """
    changed = image.copy()
    flat = changed.reshape(len(image), -1)
    for place, *colour in painted:
        if 0 <= place < flat.shape[1]:
            values = np.clip(np.array(colour[:3], flat.dtype) / 255, 0, 1)
            flat[:, place] = values if len(flat) == 3 else values.mean()
    return changed


def token_ids(test: Dataset, text: str) -> NDArray[np.generic]:
    """Return the token ids of a text, int64 (length,): as long as the data set's texts, padded or cut at the end.

    Words, or characters where the texts are read so, that are outside the vocabulary become the unknown one.
    """
    known = {word: token for token, word in enumerate(test.vocabulary)}
    padding, unknown = test.special[:2]
    tokens = [known.get(word, unknown) for word in (text if test.is_spelt else text.split())]
    ids: NDArray[np.generic] = np.full(test.inputs.shape[1], padding, test.inputs.dtype)
    ids[: len(tokens)] = tokens[: len(ids)]
    return ids
