"""Several inputs of a network at once, by name: token ids and their mask, a picture and a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from idc_core.errors import DataError


@dataclass(frozen=True, eq=False)
class NamedInputs:
    """Inputs of a network by name, arrays with one row per input, with which it is called by keyword.

    The first is the main one: relevance and activations of "input" are its own. The others are constants to relevance.
    """

    values: Mapping[str, Any]

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> NamedInputs:
        """Check what a person gave; DataError where it is not arrays with as many rows each, by name."""
        rows = {str(name): value.shape[0] if getattr(value, "ndim", 0) else None for name, value in given.items()}
        if not rows or None in rows.values():
            wrong = next((f"{name!r} ({type(given[name]).__name__})" for name, n in rows.items() if n is None), "none")
            raise DataError(f"Inputs by name are arrays with one row per input; expected arrays, not {wrong}.")
        if len(set(rows.values())) > 1:
            counts = ", ".join(f"{name} {count}" for name, count in rows.items())
            raise DataError(f"Inputs by name need equal numbers of rows, one per input; found {counts}.")
        return cls({str(name): value for name, value in given.items()})

    def __len__(self) -> int:
        return len(self.main)

    def __getitem__(self, rows: Any) -> NamedInputs:
        return self.each(lambda value: value[rows])

    @property
    def main(self) -> Any:
        """The first input."""
        return next(iter(self.values.values()))

    def each(self, change: Callable[[Any], object]) -> NamedInputs:
        """Return every input changed."""
        return NamedInputs({name: change(value) for name, value in self.values.items()})

    def with_main(self, main: Tensor) -> NamedInputs:
        """Return another first input with copies of the others, into which a network may write."""
        (name, _), *others = self.values.items()
        return NamedInputs({name: main} | {other: value.clone() for other, value in others})


Batch = Tensor | NamedInputs
"""What a network is called with once."""


def main_of(batch: Batch) -> Tensor:
    """Return the input whose relevance is that of "input"."""
    main: Tensor = batch.main if isinstance(batch, NamedInputs) else batch
    return main


def filled(batch: Batch, rows: int) -> Batch:
    """Return a batch with copies of its last input behind it, up to so many rows; itself where it has them."""
    if len(batch) >= rows:
        return batch
    places = [min(row, len(batch) - 1) for row in range(rows)]
    return batch[places]


def call(model: nn.Module, batch: Batch) -> object:
    """Run a network on a batch."""
    return model(**batch.values) if isinstance(batch, NamedInputs) else model(batch)


def said_missing(error: BaseException) -> str:
    """Say what to do where a forward was not given all its inputs; "" for any other error."""
    if not isinstance(error, TypeError) or "required positional argument" not in str(error):
        return ""  # the text of another may not be had
    names = re.findall(r"'(\w+)'", str(error))
    others = ", ".join(f"{name!r}: ..." for name in names)
    return (
        f" It takes several inputs: give a dictionary of arrays with equal rows by the names in its forward, the main "
        f"one first and then {others}; a data set's `read` returns one in place of its inputs. What is the same for "
        "every input may have a default in forward instead, or in an ONNX file a number by --hold NAME=X."
    )


def described(batch: Batch) -> str:
    """Say shape and type of a batch, for messages."""
    if isinstance(batch, NamedInputs):
        return f"inputs {', '.join(f'{name!r} of {_form(value)}' for name, value in batch.values.items())}"
    return f"inputs of {_form(batch)}"


def _form(value: Tensor) -> str:
    return f"shape {tuple(value.shape)} and type {str(value.dtype).removeprefix('torch.')}"
