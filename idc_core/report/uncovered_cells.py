"""Cells that no test reaches, those that occur in training first, and the tests closest to them."""

from __future__ import annotations

import base64

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.cell_table import CellTable, among, bordering
from idc_core.coverage.cells import decode, encode
from idc_core.coverage.closest_inputs import adjacent, closest, spread
from idc_core.figures import input_images
from idc_core.figures.input_texts import amount, glue, is_series, words_of
from idc_core.figures.wording import cell_name
from idc_core.report.bounds import CLOSEST, CLOSEST_TEXTS, LONGEST_NAME, LONGEST_TEXT, UNCOVERED, cut
from idc_core.report.content import Test, Uncovered, UncoveredCell
from idc_core.report.material import Material


def find_uncovered(material: Material) -> Uncovered:
    """Return the uncovered cells of a report, some of them with their closest tests."""
    table, counts = material.table, _in_training(material)
    in_training = len(counts) if len(material.learnt) else None
    if table.covered == table.total:
        return Uncovered(0, in_training, ())
    cells = [cell for cell, _ in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))]
    if len(cells) < UNCOVERED:
        cells += [cell for cell in map(tuple, bordering(table)[0].tolist()) if cell not in counts]
    return Uncovered(
        cells=table.total - table.covered,
        in_training=in_training,
        listed=tuple(_listed(material, cell, counts.get(cell, 0)) for cell in cells[:UNCOVERED]),
    )


def _in_training(material: Material) -> dict[tuple[int, ...], int]:
    """Return the training inputs of every uncovered cell that has some."""
    learnt = material.learnt
    if not len(learnt):
        return {}
    codes, counts = np.unique(encode(material.analysis.assign(learnt), material.sizes), return_counts=True)
    missed = ~among(codes, encode(material.table.cells, material.sizes))
    cells = decode(codes[missed], material.sizes)
    return {tuple(cell): int(number) for cell, number in zip(cells.tolist(), counts[missed], strict=True)}


def _listed(material: Material, cell: tuple[int, ...], training_inputs: int) -> UncoveredCell:
    analysis, chosen = material.analysis, material.chosen
    unit = spread(analysis.train_activations)
    most = CLOSEST if _is_pictured(material) else CLOSEST_TEXTS
    places, distances = closest(analysis.test_activations[chosen], analysis.centroids, cell, unit, most)
    return UncoveredCell(
        cell=cell_name(cell),
        training_inputs=training_inputs,
        covered_neighbours=_covered(material.table, adjacent(material.sizes, cell)),
        closest=tuple(
            _show(material, int(chosen[place]), float(distance))
            for place, distance in zip(places, distances, strict=True)
        ),
    )


def _covered(table: CellTable, cells: list[tuple[int, ...]]) -> int:
    """Count the covered ones of some cells."""
    given: NDArray[np.uint8] = np.array(cells, dtype=np.uint8).reshape(len(cells), len(table.sizes))
    return int(among(encode(given, table.sizes), encode(table.cells, table.sizes)).sum())


_SIDE = 128
"""Pixels of a picture's longer side at most; of larger ones every second or third pixel is shown."""

_MOST_BYTES = 12_000
"""Bytes up to which a picture is kept exactly."""

_PARTS = 60


def _show(material: Material, position: int, distance: float) -> Test:
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


def _is_pictured(material: Material) -> bool:
    """Whether tests are shown as pictures, or as drawings of time series."""
    return material.test.inputs.ndim >= 4 or is_series(material.test)


def _picture(material: Material, position: int) -> str:
    """Return the address of a picture, or of a drawing of a time series; empty for other inputs."""
    if not _is_pictured(material):
        return ""
    inputs = np.asarray(material.test.inputs[position : position + 1])
    drawn = (
        _small(input_images.pictures(input_images.still(inputs), 1)[0])
        if inputs.ndim >= 4
        else input_images.lines(inputs)[0]
    )
    return f"data:image/webp;base64,{base64.b64encode(input_images.webp(drawn, _MOST_BYTES)).decode()}"


def _small(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    step = -(-max(picture.shape[:2]) // _SIDE)
    return np.ascontiguousarray(picture[::step, ::step])


def _text(material: Material, position: int) -> str:
    """Return the first words of a text, or the first features; empty for pictures and time series."""
    if _is_pictured(material):
        return ""
    words = words_of(material.test, material.test.inputs[position])
    more = " …" if len(words) > _PARTS else ""
    return cut(glue(material.test).join(words[:_PARTS]) + more, LONGEST_TEXT) or "(no known words)"
