"""What all ways into the registries share: a mistake leaves these as they were, and comes at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from idc_core.datasets import DATASETS
from idc_core.models import MODELS

REGISTRIES: tuple[dict[str, Any], dict[str, Any]] = (MODELS, DATASETS)


@contextmanager
def kept_on_mistakes() -> Iterator[list[dict[str, object]]]:
    """Put the registries back where a block fails; it is given what they held before, in the order of `REGISTRIES`."""
    before = [dict(registry) for registry in REGISTRIES]
    try:
        yield before
    except BaseException:
        for registry, held in zip(REGISTRIES, before, strict=True):
            for name in set(registry) - set(held):  # never empty in between: others may be reading it
                del registry[name]
            registry.update(held)
        raise


def try_out(names: Iterable[str]) -> None:
    """Ask networks and data for all that is found when it is first asked for, so that mistakes come now."""
    entries = [registry[name] for name in names for registry in REGISTRIES if name in registry]
    for entry in entries:
        for item in fields(entry):
            getattr(entry, item.name)
