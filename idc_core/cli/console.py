"""What the commands share: a progress line, aligned tables, CSV, and files that appear whole."""

from __future__ import annotations

import argparse
import csv
import io
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from idc_core.base import files
from idc_core.base.parameters import shown
from idc_core.base.progress import Pace, said
from idc_core.base.spreadsheets import inert
from idc_core.errors import DataError, IdcError, ModelError, SettingError
from idc_core.lrp.layer_parts import split_layer

if TYPE_CHECKING:
    from torch import nn

    from idc_core.cli.arguments import Parser
    from idc_core.datasets import DatasetEntry
    from idc_core.models import ModelCard

    Subparsers = argparse._SubParsersAction[Parser]
else:
    Subparsers = object  # argparse offers no public name for what `add_subparsers` returns

_REDRAW_S = 0.1


class ProgressLine:
    """A `Progress` callback that redraws one line on stderr, with the time left; silent where that is no terminal.

    Used in a `with` block, which clears the line at the end.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._shown = self._stream.isatty()
        self._drawn_at = 0.0
        self._pace = Pace()

    def __call__(self, done: int, total: int, label: str) -> bool:
        """Show that `done` of `total` steps are finished; the work always goes on."""
        now = time.monotonic()
        self._pace.note(done, total, label)
        if self._shown and now - self._drawn_at >= _REDRAW_S:
            self._drawn_at = now
            width = shutil.get_terminal_size().columns - 1
            self._write(f"{label}{said(done, total, self._pace.left_s)}"[:width])
        return True

    def __enter__(self) -> Self:
        """Return the line itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Clear the line."""
        if self._shown:
            self._write("")

    def _write(self, text: str) -> None:
        self._stream.write(f"\r\x1b[K{text}")  # the escape clears what a longer line left behind
        self._stream.flush()


def table(rows: Sequence[Sequence[str]], align: str) -> str:
    """Return rows, the first of them the heading, as text in columns; `align` has `<` or `>` for each."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = (f"{cell:{side}{width}}" for cell, side, width in zip(row, align, widths, strict=True))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def comma_separated(records: Sequence[Mapping[str, object]], fields: Iterable[str] = ()) -> str:
    """Return records as CSV: the given fields first, there even without records; what a record lacks is empty.

    A text that a spreadsheet would run as a formula gets an apostrophe in front: names may be somebody else's.
    """
    text = io.StringIO()
    heading = dict.fromkeys((*fields, *(field for record in records for field in record)))
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(inert, heading))
    writer.writerows([inert(record.get(field, "")) for field in heading] for record in records)
    return text.getvalue()


def check_fit(card: ModelCard, tests: str) -> None:
    """Refuse a test set of another form before anything is read; an unknown name is refused when it is loaded."""
    from idc_core.datasets import DATASETS

    own = DATASETS[card.dataset]
    other = DATASETS.get(tests, own)
    if (other.input_shape, other.task) != (own.input_shape, own.task):
        fitting = [name for name, data in DATASETS.items() if _is_alike(data, own)]
        raise DataError(
            f"{card.name} does {own.task} of inputs of shape {own.input_shape}, but {tests} is for {other.task} of "
            f"inputs of shape {other.input_shape}; --data can be {' or '.join(fitting)}."
        )


def _is_alike(data: DatasetEntry, own: DatasetEntry) -> bool:
    """Whether data are of the form of a network's own; those that cannot be read are not."""
    try:
        return (data.input_shape, data.task) == (own.input_shape, own.task)
    except IdcError:
        return False


def check_layers(model: nn.Module, layers: Iterable[str]) -> None:
    """Raise ModelError, before any work, where a network has no such layer."""
    from idc_core.lrp.session import named_layers  # needs torch

    names = [name for name in named_layers(model) if name]
    unknown = next((layer for layer in layers if layer not in names and split_layer(layer)[0] not in names), None)
    if unknown is not None:
        raise ModelError(f"The network has no layer {shown(unknown)}; its layers are {', '.join(names)}.")


def write_whole(path: Path, content: str | bytes, option: str) -> None:
    """Write a file so that a reader never sees half of it; SettingError, naming the option, if it cannot be written."""
    files.sweep_folder(path.parent)  # outside the cache folder nobody else removes what a killed command left
    try:
        files.write_whole(path, content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise SettingError(f"{path} cannot be written ({error.strerror}); name another file with {option}.") from error
