"""The one selection: an input, a neuron, a cluster, a cell; chosen on any page, followed on all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from studio.state import address

CLEARS = {
    "model": ("neuron", "cluster", "cell"),
    "layer": ("neuron", "cluster", "cell"),
    "data": ("input",),
    "m": ("cell",),
    "k": ("cluster", "cell"),
    "zeros": ("cluster", "cell"),
    "clustering": ("cluster", "cell"),
    "neuron": ("cluster",),
}
"""What loses its meaning when something else is chosen."""


@dataclass(frozen=True)
class Selection:
    """What is selected: a test's number, a neuron of the layer, its cluster (0 the lowest), and a cell.

    The cell is written as cluster indices of the important neurons, such as ``2-1-0``; empty where none is selected.
    """

    input: int | None = None
    neuron: int | None = None
    cluster: int | None = None
    cell: str = ""

    @property
    def texts(self) -> dict[str, str]:
        """Every part as the address writes it."""
        return {name: "" if value is None else str(value) for name, value in vars(self).items()}

    @property
    def words(self) -> dict[str, str]:
        """What is selected in words, by the name of the part; a cluster is told with its neuron."""
        words = {}
        if self.input is not None:
            words["input"] = f"test {self.input}"
        if self.neuron is not None:
            words["neuron"] = f"neuron {self.neuron}"
            if self.cluster is not None:
                words["neuron"] += f", cluster {self.cluster}"
        if self.cell:
            words["cell"] = f"cell {self.cell}"
        return words


def parse(texts: dict[str, str]) -> Selection:
    """Read a selection from what an address says; parts that are no number are left out."""
    numbers = {name: address.position(texts.get(name, "")) for name in ("input", "neuron", "cluster")}
    if numbers["neuron"] is None:
        numbers["cluster"] = None
    return Selection(**numbers, cell=texts.get("cell", ""))


def selected() -> Selection:
    """Return what is selected, on whatever page it was chosen."""
    return parse({name: address.read(name) for name in vars(Selection())})


def select(**changes: int | str | Sequence[str] | None) -> None:
    """Select parts of the selection or the setup by name on all pages; for callbacks.

    None or an empty text clears a part. What loses its meaning (see `CLEARS`) is cleared too.
    """
    cleared = {name: None for change in changes for name in CLEARS.get(change, ())}
    for name, value in (cleared | changes).items():
        parts = [""] if value is None else [str(value)] if isinstance(value, int | str) else value
        address.keep(name, ",".join(parts))


def picked_row(key: str, rows: int) -> int | None:
    """Return which row of a single-row table was chosen; None for none, or for one past its `rows`."""
    chosen = st.session_state[key].selection.rows
    return int(chosen[0]) if chosen and chosen[0] < rows else None
