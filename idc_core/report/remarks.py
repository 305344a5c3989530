"""A person's notes on the setup of a report."""

from __future__ import annotations

from collections.abc import Sequence

from idc_core.models import MODELS
from idc_core.report.bounds import LONGEST_TEXT, NOTES, cut
from idc_core.report.content import Remark
from idc_core.store.notes import Note

_USUAL = "lenet5-digits"
"""The network that a note is about where its place, like the dashboard's address, names none."""


def notes_on(notes: Sequence[Note], model: str, data: str, layer: str) -> list[Note]:
    """Return the notes about one network, its tests and a layer, from the latest on."""
    entry = MODELS[model]
    usual = {"model": _USUAL, "data": entry.dataset, "layer": entry.default_layer}
    setup = {"model": model, "data": data, "layer": layer}
    return [note for note in notes if all((note.place.get(part) or usual[part]) == setup[part] for part in setup)]


def remarks(notes: Sequence[Note]) -> tuple[Remark, ...]:
    """Return the first notes as a report shows them."""
    return tuple(
        Remark(note.written, cut(note.subject, LONGEST_TEXT), cut(note.setup, LONGEST_TEXT), note.text)
        for note in notes[:NOTES]
    )
