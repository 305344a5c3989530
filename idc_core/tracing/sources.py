"""What inputs come in: arrays, data sets, loaders and other batches, as parts of a pass."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from idc_core.base.config import config
from idc_core.base.parameters import class_numbers
from idc_core.errors import DataError, SettingError
from idc_core.lrp.named_inputs import NamedInputs
from idc_core.tracing.batch_size import MOST_INPUTS

Inputs = object
"""A tensor, an array, anything with ``.inputs`` (a `Dataset`), a ``torch.utils.data.Dataset`` of inputs or of pairs
(input, target), or an iterable of batches of these, such as a ``DataLoader``; of a network with several inputs a
mapping from their names to arrays with equal rows, the main one first."""


def source(inputs: Inputs) -> tuple[Iterable[Any], int | None]:
    """Return the parts that inputs come in, and how many inputs there are where that is known."""
    inputs = whole(inputs)
    if isinstance(inputs, NamedInputs) or is_array(inputs):
        return (inputs,), rows_of(inputs)
    if isinstance(inputs, Dataset):
        loader, total = _loaded(inputs)
        return _parts(loader), total
    if isinstance(inputs, Iterable) and not isinstance(inputs, str | bytes):
        return _parts(inputs), None
    raise DataError(f"Expected a tensor, an array, a data set or an iterable of batches, not {type(inputs).__name__}.")


def _parts(inputs: Iterable[object]) -> Iterator[object]:
    """Yield the inputs of batches, of pairs the first one; nothing is begun before the first is asked for."""
    for batch in inputs:
        yield whole(batch[0] if isinstance(batch, tuple | list) else batch)


def _loaded(items: Dataset[object]) -> tuple[Iterable[object], int | None]:
    """Return the batches of a Dataset in its own order, and how many items it has where that is known.

    ``loaders`` of the config file is the number of processes that read; the order does not depend on it. An iterable
    Dataset has no items by number that could be shared out, so it is read by this process.
    """
    iterable = isinstance(items, IterableDataset)
    # A generator of its own: else a loader would draw from the caller's random numbers.
    loader: DataLoader[object] = DataLoader(
        items, MOST_INPUTS, num_workers=0 if iterable else config().loaders, generator=torch.Generator()
    )
    return loader, None if iterable else len(items)  # type: ignore[arg-type]


class PairedTargets:
    """Batches of pairs (inputs, targets), from which inputs are taken; it holds the targets that came with them."""

    def __init__(self, batches: Iterable[object]) -> None:
        self._batches = batches
        self._targets: list[NDArray[np.int64]] = []

    @classmethod
    def of(cls, inputs: Inputs) -> "PairedTargets | None":
        """Return the batches of a loader or a torch Dataset; None for an array or a mapping, which hold no targets."""
        inputs = whole(inputs)
        if (
            isinstance(inputs, NamedInputs | str | bytes)
            or is_array(inputs)
            or not isinstance(inputs, Dataset | Iterable)
        ):
            return None
        return cls(_loaded(inputs)[0] if isinstance(inputs, Dataset) else inputs)

    def __iter__(self) -> Iterator[object]:
        for batch in self._batches:
            if not isinstance(batch, tuple | list) or len(batch) < 2:
                raise SettingError(
                    "original=True learns from correctly classified inputs only, and these batches hold no targets: "
                    "expected pairs (inputs, targets), or fit(inputs, targets)."
                )
            self._targets.append(class_numbers("targets", batch[1]).astype(np.int64))
            yield batch[0]

    def __len__(self) -> int:
        return sum(map(len, self._targets))

    def __getitem__(self, rows: slice) -> NDArray[np.int64]:
        return np.concatenate(self._targets)[rows]


def whole(inputs: Inputs) -> Any:
    """Return the inputs of a data set, and those of a mapping as `NamedInputs`; anything else as it is."""
    inputs = getattr(inputs, "inputs", inputs)
    return NamedInputs.of(inputs) if isinstance(inputs, Mapping) else inputs


def is_array(part: object) -> bool:
    """Return whether something is a tensor, an array, or what reads like an array without being in memory."""
    return isinstance(part, Tensor | np.ndarray) or (hasattr(part, "__array__") and hasattr(part, "ndim"))


def rows_of(part: Any) -> int:
    """Return the number of inputs in a batch."""
    if isinstance(part, NamedInputs):
        for value in part.values.values():
            check_tensor(value)
        return len(part)
    check_tensor(part)
    if not is_array(part) or not part.ndim:
        kind = f"a single {part.dtype} number" if is_array(part) else type(part).__name__
        raise DataError(f"Expected batches that are tensors or arrays, one row per input, not {kind}.")
    return len(part)


def check_tensor(value: object) -> None:
    """Refuse tensors that are no plain arrays of numbers: sparse ones, and those of a transform of torch.func."""
    if not isinstance(value, Tensor):
        return
    if torch._C._functorch.is_functorch_wrapped_tensor(value):
        raise DataError(
            "This was called within torch.vmap or another transform of torch.func, where inputs have no numbers of "
            "their own. Call it with the whole batch instead: it takes (n, ...)."
        )
    if value.layout != torch.strided or value.is_nested or value.is_meta:
        kind = "nested" if value.is_nested else "on the meta device" if value.is_meta else str(value.layout)
        raise DataError(
            f"Expected dense inputs, but these are {kind.removeprefix('torch.')}. Make them dense, a batch at a time "
            "where they do not fit into memory: inputs.to_dense()."
        )
