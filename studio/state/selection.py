"""The one selection: an input, a neuron, a cluster, a cell; chosen on any page, followed on all."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from idc_core.coverage.idc_settings import CONTROLS
from studio.state import address

_CLEARS = {
    "model": ("neuron", "cluster", "cell", "within"),
    "layer": ("neuron", "cluster", "cell", "within"),
    "data": ("input",),
    "m": ("cell", "within"),
    **dict.fromkeys(CONTROLS, ("cluster", "cell", "within")),
    "neuron": ("cluster",),
}
"""What loses its meaning when something else is chosen."""

_SETUP_PARTS = {
    "model": "network",
    "layer": "layer",
    "data": "tests",
    "m": "number of neurons",
    **{name: control.part for name, control in CONTROLS.items()},
}
"""Parts of the setup that a selection belongs to, in words."""

EXPLAINED, NEURON = "of", "neuron"
"""Where the address of the Relevance page says what is explained, and that it is a neuron of the layer."""

_AROUND = "drawn-around"
"""In the session: the test set, and the numbers of its tests that were selected in a chart."""

_LAST = "selected-together"
"""In the session: what many tests were last selected by: "tests" in a chart, "cell" or "cluster"."""


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

    def among(self, names: Collection[str]) -> list[str]:
        """Return in words what is selected of some parts."""
        words = [text for name, text in self.words.items() if name in names]
        if "cluster" in names and "neuron" not in names and self.cluster is not None:
            words.append(f"cluster {self.cluster} of neuron {self.neuron}")
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

    None or an empty text clears a part. What loses its meaning (see `_CLEARS`) is cleared too.
    """
    cleared = {name: None for change in changes for name in _CLEARS.get(change, ())}
    for name in ("cell", "cluster"):
        if changes.get(name) not in (None, ""):
            st.session_state[_LAST] = name
    for name, value in (cleared | changes).items():
        text = "" if value is None else str(value) if isinstance(value, int | str) else address.joined(value)
        address.keep(name, text)


def change_setup(**changes: int | str | Sequence[str]) -> None:
    """Choose parts of the setup, as `select` does, and say what of the selection lost its meaning; for callbacks."""
    cleared = {name for change in changes for name in _CLEARS.get(change, ())}
    lost = selected().among(cleared)
    if "within" in cleared and (cell := address.read("within")):
        lost.append(f"the filter by cell {cell}")
    select(**changes)
    if lost:
        parts = " and ".join(_SETUP_PARTS[name] for name in changes if set(_CLEARS.get(name, ())) & cleared)
        belong = "It belongs" if len(lost) == 1 else "They belong"
        st.toast(f"No longer selected: {', '.join(lost)}. {belong} to the former {parts}.")


Point = Mapping[str, object]
"""A mark of a chart that was clicked or drawn around."""


def carried(point: Point) -> tuple[str | float, ...]:
    """Return what a mark carries as its `customdata`, one thing or several; nothing where it carries none."""
    values = point.get("customdata")
    if isinstance(values, str | int | float):
        return (values,)
    return tuple(values) if isinstance(values, list | tuple) else ()


def select_tests(data: str, points: Sequence[Point]) -> None:
    """Select tests of a test set by the marks that were clicked or drawn around; a single one as the input.

    Marks carry the number of their test as `customdata`; others are passed over.
    """
    numbers = sorted({int(values[0]) for point in points if (values := carried(point))})
    if numbers:
        st.session_state[_AROUND] = data, numbers
    if len(numbers) > 1:
        st.session_state[_LAST] = "tests"
    elif numbers:
        select(input=numbers[0])


def drawn_around(data: str) -> list[int]:
    """Return the numbers of the tests of a test set that were selected in a chart."""
    of, numbers = st.session_state.get(_AROUND, ("", []))
    return list(numbers) if of == data else []


def forget_tests() -> None:
    """Select no tests in charts; for callbacks."""
    st.session_state.pop(_AROUND, None)
    st.session_state.pop(_LAST, None)


def last_of_many() -> str:
    """Return what many tests were last selected by: a key of "tests", "cell", "cluster"; a cell where none was yet."""
    known = {
        "tests": len(st.session_state.get(_AROUND, ("", []))[1]) > 1,
        "cell": bool(address.read("cell")),
        "cluster": True,
    }
    last = str(st.session_state.get(_LAST, ""))
    return last if known.get(last) else next(name for name, there in known.items() if there)


def picked_row(key: str, rows: int) -> int | None:
    """Return which row of a single-row table was chosen; None for none, or for one past its `rows`."""
    chosen = st.session_state[key].selection.rows
    return int(chosen[0]) if chosen and chosen[0] < rows else None
