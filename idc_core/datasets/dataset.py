"""What a dataset is, in memory."""

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import SettingError

Task = Literal["classification", "regression"]
Split = Literal["train", "test"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """One split of a dataset, or the first items of it. Arrays are not writeable.

    Attributes
    ----------
    name, split : str
        Name in the registry, or the person's own; "train" or "test".
    inputs : ndarray
        Images: float32 (n, C, H, W) in 0..1, C-contiguous. Text: int64 (n, length) token ids, 0 = padding,
        1 = a word outside the vocabulary. Feature vectors: float32 (n, features).
    targets : ndarray
        Classification: int64 (n,) class indices. Regression: float32 (n,).
    class_names : tuple of str
        Names by class index; empty for regression.
    task : {"classification", "regression"}
    vocabulary, texts : tuple of str
        Words by token id, and the text of every item, as tokenised; empty for images. Of feature vectors the
        vocabulary holds the names of the features, or nothing.
    ids : ndarray of int64, shape (n,)
        Position of every item in the split's own order.
    fingerprint : str
        First 16 hexadecimal digits of a SHA-256 over the content; equal content, equal fingerprint.
    """

    name: str
    split: str
    inputs: NDArray[Any]
    targets: NDArray[Any]
    class_names: tuple[str, ...]
    task: Task
    vocabulary: tuple[str, ...]
    texts: tuple[str, ...]
    ids: NDArray[np.int64]
    fingerprint: str

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def is_spelt(self) -> bool:
        """Whether the items are texts that are read character by character, not word by word."""
        return (
            self.inputs.dtype.kind in "iu"
            and bool(self.vocabulary)
            and all(len(symbol) == 1 for symbol in self.vocabulary[2:])
        )

    def only(self, positions: NDArray[np.int64]) -> "Dataset":
        """Return some of the items, copied; with a fingerprint of their own, and the numbers that they have here."""
        inputs, targets, ids = (values[positions] for values in (self.inputs, self.targets, self.ids))
        for values in (inputs, targets, ids):
            values.setflags(write=False)
        content = content_fingerprint(Items(inputs, targets, self.vocabulary), self.class_names)
        texts = tuple(self.texts[one] for one in positions) if self.texts else ()
        return replace(self, inputs=inputs, targets=targets, texts=texts, ids=ids, fingerprint=content)

    def sample(self, most: int | None, *, seed: int = 0) -> "Dataset":
        """Return at most so many items, drawn at random; a smaller sample of the same seed is a part of a larger one.

        Raises
        ------
        SettingError
            If `most` is below 1.
        """
        if most is not None and most < 1:
            raise SettingError(f"The records to read must be at least 1, or None for all, not {most!r}.")
        if most is None or most >= len(self):
            return self
        return self.only(np.random.default_rng(seed).permutation(len(self))[:most].astype(np.int64))


@dataclass(frozen=True, eq=False)
class Items:
    """What the reader of one dataset hands back; `registry.load_dataset` makes the `Dataset` of it."""

    inputs: NDArray[Any]
    targets: NDArray[Any]
    vocabulary: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


def content_fingerprint(items: Items, class_names: tuple[str, ...]) -> str:
    """Return 16 hexadecimal digits of the SHA-256 over everything a result computed from a dataset can depend on."""
    digest = hashlib.sha256()
    for array in (items.inputs, items.targets):
        # Shape and type go in as well: the same bytes cut into other shapes are other content.
        digest.update(repr((array.dtype.str, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).data)
    digest.update(repr((class_names, items.vocabulary)).encode())
    return digest.hexdigest()[:16]
