"""All networks by name: a new family is a file with `ENTRIES` and one line here."""

from __future__ import annotations

from idc_core.errors import ModelError
from idc_core.models import convnet, dave2, lenet, textcnn
from idc_core.models.entry import ModelEntry

MODELS: dict[str, ModelEntry] = {
    entry.name: entry
    for family in (lenet, convnet, dave2, textcnn)
    for entry in family.ENTRIES
}


def find_entry(name: str) -> ModelEntry:
    """Return the registry entry of a network.

    Raises
    ------
    ModelError
        If there is none of that name; the message lists the names.
    """
    if name not in MODELS:
        raise ModelError(f"There is no model {name!r}; the models are {', '.join(MODELS)}.")
    return MODELS[name]
