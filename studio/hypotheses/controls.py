"""The controls of the Hypotheses page: what is measured, and what the map shows of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import streamlit as st

from idc_core.inspection.measures import PAIR_MEASURES
from idc_core.inspection.result import Grid
from studio.hypotheses import inspections
from studio.hypotheses.inspections import InspectionSettings, Measured
from studio.jobs.results import View
from studio.state.choices import choose_one, choose_or_usual
from studio.text import literal
from studio.widgets import layout

_FAMILY, _MEASURE, _LAYERS = "families", "measures", "inspected"
"""Names of controls, also in the address."""


@dataclass(frozen=True)
class Shown:
    """Which scores are shown, and the false-discovery rate at which they are significant."""

    measure: str
    layer: str
    rate: float

    @property
    def label(self) -> str:
        """Name of the measure."""
        return PAIR_MEASURES[self.measure].label

    def grid(self, measured: Measured) -> Grid:
        """Return the shown scores of an inspection."""
        return measured.grid(self.measure, self.layer, self.rate)


def choose(view: View) -> tuple[InspectionSettings, Shown]:
    """Choose what is measured, and which of its scores are shown."""
    usual = inspections.usual(view)
    chosen = _pills(
        _FAMILY,
        "Families of hypotheses",
        inspections.family_menu(view),
        usual,
        "Properties of the inputs that neurons are compared with. In brackets: the number of hypotheses.",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with layout.settings(_MEASURE, _LAYERS, "records", "early", "words", "rate"):
            measures = _pills(
                _MEASURE,
                "Measures",
                _measure_menu(),
                ["pearson"],
                "Compares a neuron with a hypothesis; probes compare all neurons of a layer together.",
            )
            if not any(name in PAIR_MEASURES for name in measures):
                measures = ["pearson", *measures]  # the map needs a measure of single units
            layers, most, error = _choose_more(view)
            rate = choose_one(
                st.segmented_control,
                "False-discovery rate (FDR)",
                {percent: f"{percent} %" for percent in inspections.RATES},
                5,
                "rate",
                required=True,
                help="Expected share of false positives among the significant associations, at most. Default 5 %.",
            )
            words, masks = _choose_own(view)
        settings = InspectionSettings(tuple(chosen or usual), words, tuple(measures), tuple(layers), most, error, masks)
        measure, layer = _choose_scores(view, settings)
    return settings, Shown(measure, layer, rate / 100)


def _pills(key: str, label: str, labels: dict[str, str], usual: list[str], help: str) -> list[str]:
    """Draw a choice of several names that the address keeps."""
    help = f"{help} Default {', '.join(labels[name] for name in usual)}."
    chosen = choose_or_usual(partial(st.pills, selection_mode="multi"), label, labels, usual, key, help=help)
    return [name for name in labels if name in chosen]


def _choose_more(view: View) -> tuple[list[str], int | None, float | None]:
    """Choose layers, and how many records are read."""
    own = view.setup.layer
    layers = choose_or_usual(
        st.multiselect,
        "Layers",
        {name: name for name in view.card.layers},
        [own],
        _LAYERS,
        width=480,
        help=f"Layers whose neurons are compared, all in one pass. Default the setup's layer, {literal(own)}.",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        most = choose_one(
            st.segmented_control,
            "Tests",
            {name: f"{number:,}" if number else name for name, number in inspections.RECORDS.items()},
            "1024",
            "records",
            required=True,
            help="Maximum number of tests, drawn at random (seed 0). Preliminary scores are shown while more are read. "
            "Default 1,024.",
        )
        error = choose_one(
            st.selectbox,
            "Stop early",
            {
                name: f"\u00b1 {margin}" if margin else "not before the end"
                for name, margin in inspections.ERRORS.items()
            },
            "never",
            "early",
            width=240,
            help="Stop once every score is within this margin of its final value (95 % simultaneous confidence). "
            "Default not before the end.",
        )
    return layers or [own], inspections.RECORDS[most], inspections.ERRORS[error]


def _choose_own(view: View) -> tuple[tuple[str, ...], tuple[tuple[str, bytes], ...]]:
    """Choose custom hypotheses: keywords where the tests are texts, masks where they are pictures."""
    if view.test.inputs.dtype.kind in "iu":
        words = st.text_input(
            "Custom keywords",
            key="words",
            bind="query-params",
            width=480,
            placeholder="for example engine, price",
            help="Words, separated by commas. Hypothesis: the symbol lies within the word. Default none.",
        )
        return _words_of(words), ()
    if not view.has_pictures:
        return (), ()
    height, width = view.test.inputs.shape[2:]
    files = st.file_uploader(
        "Custom masks (npy, png)",
        type=["npy", "png"],
        accept_multiple_files=True,
        key="masks",
        max_upload_size=4,
        width=480,
        help=f"Pictures or NumPy arrays of {height} by {width} pixels. Hypothesis: the pixel lies in the mask's light "
        "part. Default none.",
    )
    return (), tuple((file.name, file.getvalue()) for file in files)


def _choose_scores(view: View, settings: InspectionSettings) -> tuple[str, str]:
    """Choose the measure and the layer that are shown, where several are measured."""
    single = [name for name in settings.measures if name in PAIR_MEASURES]
    measure, layer = single[0], view.setup.layer if view.setup.layer in settings.layers else settings.layers[0]
    if len(single) > 1:
        labels = {name: PAIR_MEASURES[name].label for name in single}
        measure = choose_one(
            st.segmented_control,
            "Shown measure",
            labels,
            measure,
            "shown-measure",
            required=True,
            help=f"The measure in all charts. Default {labels[measure]}.",
        )
    if len(settings.layers) > 1:
        layer = choose_one(
            st.selectbox,
            "Shown layer",
            {name: name for name in settings.layers},
            layer,
            "shown-layer",
            width=160,
            help=f"The layer in all charts. Default {literal(layer)}.",
        )
    return measure, layer


def _measure_menu() -> dict[str, str]:
    """Return the label of every measure."""
    from idc_core.inspection import MEASURES

    return {name: measure.label for name, measure in MEASURES.items()}


def _words_of(text: str) -> tuple[str, ...]:
    """Read keywords that are separated by commas, each once."""
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
