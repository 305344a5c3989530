"""Tests as a report shows them: a small picture, or the beginning of a text or of a vector."""

from __future__ import annotations

import base64

import numpy as np
from numpy.typing import NDArray

from idc_core.figures import input_images
from idc_core.figures.input_texts import amount, glue, is_series, words_of
from idc_core.figures.wording import cell_name
from idc_core.report.bounds import LONGEST_NAME, LONGEST_TEXT, cut
from idc_core.report.content import Test
from idc_core.report.material import Material

_SIDE = 128
"""Pixels of a picture's longer side at most; of larger ones every second or third pixel is shown."""

_MOST_BYTES = 12_000
"""Bytes up to which a picture is kept exactly."""

_PARTS = 60


def show(material: Material, position: int, distance: float) -> Test:
    """Return what is shown of the test at a position, which lies at a distance from the cell that it is listed for."""
    analysis, test = material.analysis, material.test
    named = bool(test.class_names)
    target, confidence = test.targets[position], float(analysis.confidence[position])
    true = test.class_names[int(target)] if named else amount(test, float(target), unit=False)
    predicted = material.train.class_names[analysis.predictions[position]] if named else amount(test, confidence)
    return Test(
        number=int(test.ids[position]),
        true=cut(true, LONGEST_NAME),
        predicted=cut(predicted, LONGEST_NAME),
        confidence=confidence if named else None,
        correct=None if material.correct is None else bool(material.correct[position]),
        cell=cell_name(analysis.assignments[position]),
        distance=distance,
        picture=_picture(material, position),
        text=_text(material, position),
    )


def is_pictured(material: Material) -> bool:
    """Whether tests are shown as pictures, or as drawings of time series."""
    return material.test.inputs.ndim == 4 or is_series(material.test)


def _picture(material: Material, position: int) -> str:
    """Return the address of a picture, or of a drawing of a time series; empty for other inputs."""
    if not is_pictured(material):
        return ""
    inputs = np.asarray(material.test.inputs[position : position + 1])
    drawn = _small(input_images.pictures(inputs, 1)[0]) if inputs.ndim == 4 else input_images.lines(inputs)[0]
    return f"data:image/webp;base64,{base64.b64encode(input_images.webp(drawn, _MOST_BYTES)).decode()}"


def _small(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    step = -(-max(picture.shape[:2]) // _SIDE)
    return np.ascontiguousarray(picture[::step, ::step])


def _text(material: Material, position: int) -> str:
    """Return the first words of a text, or the first features; empty for pictures and time series."""
    if is_pictured(material):
        return ""
    words = words_of(material.test, material.test.inputs[position])
    more = " …" if len(words) > _PARTS else ""
    return cut(glue(material.test).join(words[:_PARTS]) + more, LONGEST_TEXT) or "(no known words)"
