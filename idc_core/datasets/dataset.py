"""What a dataset is, in memory."""

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.naming import Naming
from idc_core.datasets.streamed import StreamedInputs
from idc_core.errors import SettingError

Task = Literal["classification", "regression"]
Split = Literal["train", "test"]

PLAIN = (0, 1)
"""Token ids of padding and of a word outside the vocabulary, unless a tokenizer has others."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """One split of a dataset, or the first items of it. Arrays are not writeable.

    Attributes
    ----------
    name, split : str
        Name in the registry, or the person's own; "train" or "test".
    inputs : ndarray
        Images: float32 (n, C, H, W) in 0..1, C-contiguous; large sets of them a `StreamedInputs`. Text: int64
        (n, length) token ids, see `special`. Feature vectors: float32 (n, features).
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
    notes : tuple of str
        What was done to make inputs of files, each in a few words; empty for data that came as arrays.
    special : tuple of int
        Token ids that stand for no word: padding, a word outside the vocabulary, then marks such as the beginning.
    naming : Naming, optional
        Of data for a network with several inputs: their names, and how the others follow from `inputs`.
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
    notes: tuple[str, ...] = ()
    special: tuple[int, ...] = PLAIN
    naming: Naming | None = None

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def is_spelt(self) -> bool:
        """Whether the items are texts that are read character by character, not word by word."""
        return (
            self.inputs.dtype.kind in "iu"
            and bool(self.vocabulary)
            and all(len(word) == 1 for code, word in enumerate(self.vocabulary) if code not in self.special)
        )

    @property
    def is_pieces(self) -> bool:
        """Whether the items are texts that are read piece by piece: some words are cut into several tokens."""
        return self.inputs.dtype.kind in "iu" and any(
            (word.startswith("##") and len(word) > 2) or (word.startswith(" ") and len(word) > 1)
            for word in self.vocabulary
        )

    @property
    def padding(self) -> int:
        """The token id that stands where a text has ended."""
        return self.special[0]

    def words(self, tokens: NDArray[np.int64]) -> list[str]:
        """Return the words of some token ids, as they are shown: "…" for padding and words outside the vocabulary."""
        blank = self.special[:2]
        return ["…" if token in blank else self.vocabulary[token] for token in tokens]

    def only(self, positions: NDArray[np.int64]) -> "Dataset":
        """Return some of the items, copied; with a fingerprint of their own, and the numbers that they have here."""
        inputs, targets, ids = (values[positions] for values in (self.inputs, self.targets, self.ids))
        for values in (inputs, targets, ids):
            values.setflags(write=False)
        items = Items(inputs, targets, self.vocabulary, special=self.special, naming=self.naming)
        content = content_fingerprint(items, self.class_names)
        texts = tuple(self.texts[position] for position in positions) if self.texts else ()
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
    """What the reader of one dataset hands back; `registry.load_dataset` makes the `Dataset` of it.

    Inputs, targets, vocabulary, texts, notes, special and naming are as in `Dataset`; a person's own reader may give
    inputs by name instead, a mapping to arrays with the main one first, of which the naming is made. Readers of files
    give the class names too, the same ones for both splits; `whole` says that these are all items of the split, though
    fewer were asked for.
    """

    inputs: NDArray[Any]
    targets: NDArray[Any]
    vocabulary: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    whole: bool = False
    special: tuple[int, ...] = PLAIN
    naming: Naming | None = None


def content_fingerprint(items: Items, class_names: tuple[str, ...]) -> str:
    """Return 16 hexadecimal digits of the SHA-256 over everything a result computed from a dataset can depend on."""
    digest = hashlib.sha256()
    for array in (items.inputs, items.targets):
        if isinstance(array, StreamedInputs):
            digest.update(array.digest())
            continue
        # Shape and type go in as well: the same bytes cut into other shapes are other content.
        digest.update(repr((array.dtype.str, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).data)
    digest.update(repr((class_names, items.vocabulary)).encode())
    if items.special != PLAIN:
        digest.update(repr(items.special).encode())
    if items.naming is not None:
        digest.update(repr(items.naming).encode())
    return digest.hexdigest()[:16]
