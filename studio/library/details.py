"""The details of one entry: what to choose, what the check found, and whether its predictions look right."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.errors import CancelledError, IdcError
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import open_data
from studio.library.entries import may_change, size
from studio.library.network_settings import choose_held, choose_settings
from studio.library.preparing import choose_preparation
from studio.library.work import Asked, ask, failure
from studio.state import visitor
from studio.text import literal
from studio.widgets.headlines import label

if TYPE_CHECKING:
    from idc_core.analysis.checking.findings import NetworkCheck
    from idc_core.datasets import Dataset
    from idc_core.library import Entry

_FITS = JobKind("library-fits", is_long=True, lives="server")

_SHOWN = 12
_SIDE = 84
"""Pixels of a picture's width."""


def draw(entry: Entry) -> None:
    """Draw what can be chosen and what was found."""
    from idc_core import library

    if problem := failure(entry.id):
        st.error(problem)
    if problem := library.remedy(entry):
        st.warning(literal(problem))
    if (entry.facts is None or problem) and may_change(entry):
        st.button(
            "Read it again",
            key=f"library-read-{entry.id}",
            on_click=ask,
            args=(Asked(entry.id, f"reading {entry.label}", read=True),),
            help=f"Reads the file of {size(entry.stamp.size)} once more.",
        )
    if entry.facts is None:
        if may_change(entry):  # what the files do not tell may be what they could not be read for
            (choose_preparation if entry.kind == "data" else choose_held)(entry)
        return
    if entry.kind == "data":
        _draw_data(entry)
    else:
        _draw_network(entry)


def _draw_network(entry: Entry) -> None:
    if may_change(entry):
        _choose_data(entry)
    if entry.check is not None:
        _draw_check(entry, entry.check)


def _choose_data(entry: Entry) -> None:
    """Choose among the data that fit, and say why others do not."""
    fits = _fitting(entry)
    if fits is None:
        return
    _connect(entry, [name for name, reason in fits.items() if not reason])
    choose_settings(entry)
    if others := {name: reason for name, reason in fits.items() if reason}:
        with st.expander(f"Data that do not fit ({len(others)})"):
            labels = {name: data.label for name, data in visitor.datasets().items()}
            for name, reason in others.items():
                st.markdown(f"{literal(labels.get(name, name))}: {literal(reason)}.")


def _fitting(entry: Entry) -> dict[str, str] | None:
    """Return which data sets fit a network and why others do not; None where that cannot be told, which is said."""
    from idc_core import library

    candidates = visitor.datasets()
    kept = repr(replace(entry.network_settings, data="", layer=""))
    key = (
        entry.stamp,
        entry.content or entry.source,
        kept,
        tuple((name, candidate.edition) for name, candidate in candidates.items()),
    )
    try:
        forms = {name: library.DataForm.of(candidate) for name, candidate in candidates.items()}
        fitting = Waiting(1).get(_FITS, key, "trying data sets", lambda report: library.fitting(entry, forms, report))
    except CancelledError:
        st.info("Stopped. Open the details again to go on.")
        return None
    except IdcError as error:
        st.error(literal(error))
        return None
    return fitting


def _connect(entry: Entry, names: list[str]) -> None:
    """Choose the data and the layer, and have the network checked on them."""
    if not names:
        st.warning(
            "No data set here fits this network. Add one with inputs of its shape and as many classes, or say below "
            "how the network takes its inputs."
        )
        return
    labels = {name: data_set.label for name, data_set in visitor.datasets().items()}
    now = entry.network_settings
    layers = ["", *(entry.network.layers if entry.network else ())]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        data = st.selectbox(
            "Data that it takes",
            names,
            index=names.index(now.data) if now.data in names else 0 if len(names) == 1 else None,
            format_func=labels.__getitem__,
            key=f"library-data-{entry.id}",
            placeholder="Choose one",
            width=300,
            help="Only data whose inputs the network takes, and whose classes its outputs have. Default none, or the "
            "only one.",
        )
        if len(layers) > 1:
            layer = st.selectbox(
                "Layer that is opened first",
                layers,
                index=layers.index(now.layer) if now.layer in layers else 0,
                format_func=lambda name: name or "last hidden layer",
                key=f"library-layer-{entry.id}",
                width=300,
                help="Its neurons are examined first; all layers are in the sidebar. Default last hidden layer.",
            )
        else:
            layer = ""
        settings = replace(now, data=data or "", layer=layer or "")
        st.button(
            "Check again" if entry.check is not None and settings == now else "Use these and check",
            key=f"library-connect-{entry.id}",
            type="primary" if settings != now or entry.check is None else "secondary",
            disabled=not data,
            on_click=ask,
            args=(Asked(entry.id, f"checking {entry.label}", network=settings, check=True),),
            help="Runs the network on these data, and looks for likely mistakes.",
        )


def _draw_check(entry: Entry, kept: dict[str, object]) -> None:
    """Draw the result of the check: mistakes with their remedies, twelve predictions, layers."""
    from idc_core.analysis.checking.findings import NetworkCheck, said_shape
    from idc_core.guarded import typed

    try:
        check = typed(kept, f"The check of {entry.label}", NetworkCheck)
    except IdcError as error:
        st.warning(f"{literal(error)} Check again.")
        return
    if not check.mistakes:
        st.success("The check found no likely mistakes.")
    for one in check.mistakes:
        st.warning(literal(one))
    _draw_trials(entry, check)
    with st.expander("What the check measured"):
        for name, value in check.facts():
            st.markdown(f"{label(name)}: {literal(value)}")
        rows = [(one.name, said_shape(one.shape), one.stopped or "yes") for one in check.layers]
        st.dataframe(pd.DataFrame(rows, columns=["layer", "output", "relevance passes"]), hide_index=True)


def _draw_trials(entry: Entry, check: NetworkCheck) -> None:
    """Draw the predictions of the trial beside the inputs."""
    if not check.trials:
        return
    st.markdown("**Do these look right?** True → predicted, with the confidence of the prediction.")
    captions = [
        f"{trial.target} → {trial.prediction}"
        + ("" if trial.confidence is None else f", {100 * trial.confidence:.0f}\u00a0%")
        for trial in check.trials
    ]
    try:
        data = open_data(Waiting(1), entry.network_settings.data, "test")
    except CancelledError:
        return
    except IdcError as error:
        st.error(literal(error))
        return
    places = np.array([trial.position for trial in check.trials])
    if places.max() < len(data):
        _draw_inputs(data, places, captions)


def _draw_data(entry: Entry) -> None:
    """Draw what the data are, how they are prepared, and the first of them."""
    if entry.data is None:
        return
    if entry.data.notes:
        st.caption(f"Read as: {literal('; '.join(entry.data.notes))}.")
    if entry.data.class_names:
        st.markdown(f"Classes: {literal(', '.join(entry.data.class_names[:50]))}")
    if may_change(entry):
        choose_preparation(entry)
    if entry.name not in visitor.datasets():
        return
    try:
        data = open_data(Waiting(1), entry.name, "test")
    except CancelledError:
        return
    except IdcError as error:
        st.error(literal(error))
        return
    places = np.arange(min(_SHOWN, len(data)))
    st.markdown("**Do these look right?** The first tests, each with its target.")
    _draw_inputs(data, places, [f"{place}: {_target(data, int(place))}" for place in places])


def _target(data: Dataset, place: int) -> str:
    value = data.targets[place]
    return data.class_names[int(value)] if data.class_names else f"{value:.4g}"


def _draw_inputs(data: Dataset, places: NDArray[np.int64], captions: list[str]) -> None:
    """Draw inputs as pictures, or as words and numbers."""
    from idc_core.figures import input_images
    from studio.jobs.wording import features

    if data.inputs.ndim == 4:
        pictures = input_images.pictures(np.asarray(data.inputs[places]), _SIDE)
        st.image(
            list(pictures), caption=[literal(one) for one in captions], width=max(_SIDE, min(pictures.shape[2], 224))
        )
        return
    if data.inputs.dtype.kind == "f":
        words = [", ".join(features(data, data.inputs[place])[:8]) for place in places]
    else:
        words = [" ".join(data.vocabulary[one] for one in data.inputs[place][:30] if one > 0) for place in places]
    st.dataframe(pd.DataFrame({"test": captions, "input": words}), hide_index=True)
