"""What the browser is given to change a test and to show at once what follows, and what it gives back."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit import runtime

from idc_core.base.ranges import EPSILON
from idc_core.datasets.editing import token_ids
from idc_core.figures import text_relevance
from idc_core.figures.palette import SCHEMES
from studio.jobs import live
from studio.jobs.explanations import marks_of, read_tokens
from studio.jobs.live import Shown
from studio.jobs.results import View
from studio.jobs.wording import feature_names, quantity
from studio.widgets.charts import component, is_dark

_SIDE = 252
"""Width of a picture on the screen, in pixels, at least."""

_MOST_LETTERS = 20_000

_component = component("idc_live", "live", "live", before=("engine", "picture", "drawing"))


def edits_of(view: View, position: int) -> dict[str, Any]:
    """Return how a test is changed as the browser told it; empty where it is not."""
    return dict((st.session_state.get(_key(view, position)) or {}).get("edits") or {})


def changed_by(view: View, position: int, edits: Mapping[str, Any]) -> NDArray[np.generic]:
    """Return the test with changes; numbers that are none, or outside the range of their slider, are not followed."""
    test = view.test.inputs[position]
    if test.ndim == 3:
        from idc_core.perturbation.editing import PictureEdits, change_picture, noise_of

        chosen = {
            slider["name"]: _number(edits.get(slider["name"]), 0.0, slider["low"], slider["high"])
            for slider in _picture_sliders(view, position)
        }
        wanted = PictureEdits(**chosen, painted=edits.get("painted") or ())
        noise = noise_of(test.shape, int(view.test.ids[position]))
        return change_picture(test, wanted, noise, live.direction(view, position))
    if test.dtype.kind == "f":
        given = edits.get("values") or []
        own = test.reshape(-1)
        values = [_number(value, float(own[at])) for at, value in enumerate(given[: own.size])]
        return np.concatenate([np.asarray(values, test.dtype), own[len(values) :]]).reshape(test.shape)
    text = edits.get("text")
    return test if text is None else token_ids(view.test, str(text)[:_MOST_LETTERS])


def _number(value: object, usual: float, low: float = -math.inf, high: float = math.inf) -> float:
    fits = isinstance(value, int | float) and math.isfinite(value)
    return min(max(float(value), low), high) if fits else usual  # type: ignore[arg-type]


def draw(view: View, position: int, edits: Mapping[str, Any], edited: View, found: Shown) -> None:
    """Draw the part of the page that changes a test and shows what follows; `edited` is the view of the changed one."""
    answer = {"stamp": edits.get("stamp", 0), **_numbers(view, found), **_relevance(edited, found)}
    _component(
        key=_key(view, position),
        data={**_setup(view), **_original(view, position), "edits": dict(edits), "answer": answer, "dark": is_dark()},
        on_edits_change=lambda: None,
    )


def _key(view: View, position: int) -> str:
    return f"edit-{view.test.ids[position]}"


def _setup(view: View) -> dict[str, Any]:
    """Return what the browser needs of network, layer and classes."""
    program = live.program(view) if view.test.inputs.dtype.kind == "f" else ""
    places = live.neuron_places(view)
    return {
        "program": None if isinstance(program, str) else program.description(),
        "weights": "" if isinstance(program, str) else _served(program.weights, "live-weights"),
        "damping": EPSILON.default,
        "classes": list(view.train.class_names) if view.is_classifier else [],
        "quantity": {"is_signed": quantity(view.test).signed, "unit": quantity(view.test).unit},
        "important": view.analysis.important.tolist(),
        "neurons": [{"name": name, **asdict(place)} for name, place in zip(view.neurons, places, strict=True)],
        "colours": SCHEMES["red-blue"].anchors(is_dark()).tolist(),
    }


def _original(view: View, position: int) -> dict[str, Any]:
    """Return the test as it was, what the network made of it, and how it can be changed."""
    test = view.test.inputs[position]
    given = {
        "test": "-".join(
            [*view.key, view.setup.layer, str(view.analysis.m), *view.setup.options.values(), str(position)]
        ),
        "name": f"Test {view.test.ids[position]}",
        "before": _numbers(view, live.show(view, test)),
    }
    if test.ndim == 3:
        from idc_core.perturbation.editing import noise_of

        number = int(view.test.ids[position])
        fields = np.stack([test, live.direction(view, position), noise_of(test.shape, number)])
        side = max(1, _SIDE // test.shape[2]) * test.shape[2]
        given |= {"kind": "picture", "shape": list(test.shape), "side": side, "fields": _served(fields, "live-test")}
        return {**given, "sliders": _picture_sliders(view, position)}
    if test.dtype.kind == "f":
        like = view.train.inputs.reshape(len(view.train), -1)
        ranges = zip(feature_names(view.test), like.min(0).tolist(), like.max(0).tolist(), strict=True)
        sliders = [_slider("", name, low, high, (high - low) / 200 or 1.0) for name, low, high in ranges]
        return {"kind": "table", **given, "values": test.reshape(-1).tolist(), "sliders": sliders}
    words = view.test.words(test[test != view.test.padding])
    return {"kind": "text", **given, "text": ("" if view.test.is_spelt else " ").join(words)}


def _picture_sliders(view: View, position: int) -> list[dict[str, Any]]:
    """Return the changes of a picture, by their names in `PictureEdits`; no epsilon where no pixel moves the loss."""
    far = float(max(2, max(view.test.inputs.shape[2:]) // 4))
    sliders = [
        _slider("degrees", "Rotate (°)", -45.0, 45.0, 1.0),
        _slider("right", "Shift right", -far, far, far / 14),
        _slider("down", "Shift down", -far, far, far / 14),
        _slider("noise", "Noise", 0.0, 0.5, 0.01),
        _slider("epsilon", "Epsilon", 0.0, 0.3, 0.002),
    ]
    return sliders if live.direction(view, position).any() else sliders[:-1]


def _slider(name: str, label: str, low: float, high: float, step: float) -> dict[str, Any]:
    return {"name": name, "label": label, "low": low, "high": high, "step": step}


def _numbers(view: View, found: Shown) -> dict[str, Any]:
    """Return scores and activations as the browser reads them."""
    active = found.activations[view.analysis.important]
    return {"scores": found.scores.tolist(), "activations": active.tolist()}


def _relevance(edited: View, found: Shown) -> dict[str, str]:
    """Return the relevance of the changed test: packed numbers, or words on a ground of it as HTML."""
    test, relevance = edited.test, found.relevance
    if test.inputs.dtype.kind == "f":
        return {"relevance": _packed(relevance.sum(0) if relevance.ndim == 3 else relevance.reshape(-1))}
    tokens, values = read_tokens(test, 0), relevance.astype(np.float64)
    kept = test.inputs[0] != test.padding
    values = values[kept]
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    return {"words": text_relevance.words(tokens, values, largest, marks=marks_of(test), dark=is_dark())}


def _packed(values: NDArray[np.floating]) -> str:
    return base64.b64encode(np.ascontiguousarray(values, np.float32).tobytes()).decode()


def _served(values: NDArray[np.floating], name: str) -> str:
    """Return the address at which the browser fetches numbers, once; empty outside of a server."""
    if not runtime.exists():
        return ""
    content = np.ascontiguousarray(values, np.float32).tobytes()
    return runtime.get_instance().media_file_mgr.add(content, "application/octet-stream", name)
