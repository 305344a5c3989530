"""The network of the Learn page: drawn and dragged in the browser, kept in the session and in the address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from idc_core.analysis.teaching import LAYERS, MOST_WEIGHT, NAMES, START, START_INPUTS, Floats, Weights
from idc_core.figures.learn import relevance_signs
from studio.state import address
from studio.widgets.charts import component
from studio.widgets.layout import how_to_read, is_dark
from studio.widgets.storytelling import add_button

if TYPE_CHECKING:
    import plotly.graph_objects as go

_KEY = "learn-network"
_STAMP = "learn-stamp"
"""The number that the browser gave to the last state it sent, so that it can tell an answer to an older one."""

_NET, _LINE = "net", "line"
"""Names in the address: all numbers in hundredths, inputs first; and the chosen line."""

_component = component("idc_learn_network", "learn", "network")


@dataclass(frozen=True, eq=False)
class Played:
    """The network as the reader left it: weights as `START` has them, ink at top, middle and foot, and the chosen line.

    `edge` is (layer, from, to).
    """

    weights: Weights
    inputs: Floats
    edge: tuple[int, int, int]

    @property
    def ends(self) -> tuple[str, str]:
        """Names of the neurons at both ends of the chosen line."""
        layer, start, end = self.edge
        return NAMES[layer][start], NAMES[layer + 1][end]


_LINES = {
    f"{start}-{end}": (layer, i, j)
    for layer, names in enumerate(NAMES[:-1])
    for i, start in enumerate(names)
    for j, end in enumerate(NAMES[layer + 1])
}
_SIZES = (START_INPUTS.size, *(weight.size for weight in START))
_MOST = np.concatenate([np.ones(_SIZES[0]), np.full(sum(_SIZES[1:]), MOST_WEIGHT)])
_LEAST = np.concatenate([np.zeros(_SIZES[0]), np.full(sum(_SIZES[1:]), -MOST_WEIGHT)])


def _text(weights: Weights, inputs: Floats) -> str:
    numbers = np.concatenate([inputs, *(weight.ravel() for weight in weights)])
    return "_".join(str(round(100 * number)) for number in numbers)


_START_TEXT = _text(START, START_INPUTS)
_START_LINE = "top-a1"


def _parse(text: str) -> tuple[Weights, Floats] | None:
    """Read weights and inputs from an address; None where it holds anything else."""
    parts = text.split("_")
    if len(parts) != len(_MOST) or not all(part.removeprefix("-").isdecimal() and len(part) < 5 for part in parts):
        return None
    numbers = np.array([int(part) for part in parts]) / 100
    if (numbers > _MOST).any() or (numbers < _LEAST).any():
        return None
    inputs, *flat = np.split(numbers, np.cumsum(_SIZES)[:-1])
    return tuple(part.reshape(weight.shape) for part, weight in zip(flat, START, strict=True)), inputs


def played() -> Played:
    """Return the network as the address says it, else as this session left it, else as it starts."""
    text, line = address.read(_NET), address.read(_LINE)
    weights, inputs = _parse(text) or (START, START_INPUTS)
    line = line if line in _LINES else _START_LINE
    # The address may have held nonsense.
    _keep(_text(weights, inputs), line)
    return Played(weights, inputs, _LINES[line])


def _keep(text: str, line: str) -> None:
    """Keep a state in the session, and in the address where it differs from the start."""
    for key, value, start in ((_NET, text, _START_TEXT), (_LINE, line, _START_LINE)):
        address.keep(key, "" if value == start else value)


def _take() -> None:
    """Keep what the browser sent."""
    sent = st.session_state[_KEY]["network"]
    st.session_state[_STAMP] = sent["stamp"]
    inputs = np.asarray(sent["inputs"], dtype=np.float64)
    weights = tuple(np.asarray(matrix, dtype=np.float64) for matrix in sent["weights"])
    line = next((name for name, edge in _LINES.items() if list(edge) == sent["edge"]), _START_LINE)
    _keep(_text(weights, inputs), line)


def reset() -> None:
    """Reset every number."""
    _keep(_START_TEXT, _START_LINE)


def draw(state: Played, sentence: str, *, relevance: bool, target: int | None = None) -> None:
    """Draw the network, to be dragged; with `relevance` the lines show what flows back, rather than their weights.

    `target` is the output that is explained; by default the highest one. `sentence` says in a story what is shown.
    """
    draw_again(state, relevance=relevance, target=target)

    def figure(dark: bool) -> go.Figure:
        from idc_core.figures import learn

        return learn.network(state.weights, state.inputs, sentence, relevance=relevance, target=target, dark=dark)

    shown = (
        "the relevance that it passes back, red for the predicted class, dashed blue against it"
        if relevance
        else "its weight, dashed where negative"
    )
    with st.container(horizontal=True, gap="xsmall"):
        with st.container():
            how_to_read(
                f"Squares are inputs, circles neurons (dashed ring: inactive). The number on a line is {shown}. Drag "
                "lines and squares, or use Tab and arrow keys. Below: what the selected line carries."
            )
        add_button("network", sentence, figure, "")


def draw_again(state: Played, *, relevance: bool, target: int | None = None) -> None:
    """Draw the network as `draw` does, where an earlier chapter has said how to read it."""
    _component(
        key=_KEY,
        data={
            "names": NAMES,
            "layers": LAYERS,
            "weights": [weight.tolist() for weight in state.weights],
            "inputs": state.inputs.tolist(),
            "edge": state.edge,
            "most": MOST_WEIGHT,
            "shows": "relevance" if relevance else "weights",
            "target": target,
            "colours": relevance_signs(is_dark()),
            "stamp": st.session_state.get(_STAMP, 0),
        },
        on_network_change=_take,
    )
