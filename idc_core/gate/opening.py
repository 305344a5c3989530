"""From names and paths in a gate's file to names in the registries."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from idc_core import library
from idc_core.datasets import DATASETS
from idc_core.datasets.opening import open_data
from idc_core.errors import DataError, ModelError, SettingError
from idc_core.gate.settings import Check
from idc_core.models import MODELS
from idc_core.models.formats import format_of
from idc_core.models.opening import open_network
from idc_core.models.registry import find_entry
from idc_core.own_code import is_url, looks_like_path
from idc_core.parameters import shown


def open_names(check: Check, folder: Path) -> tuple[str, str]:
    """Enter what a check names by a path, as the commands do; return the names of its network and of its tests.

    Raises
    ------
    IdcError
        If there is no such name and no such file, a file cannot be opened, or an option is for what is not there.
    """
    one = check.settings
    network = _path(one.model, MODELS, folder)
    data: Path | str | None = one.data if is_url(one.data) else _path(one.data, DATASETS, folder)
    for key in ("architecture", "scaling", "explain", "trust"):
        if getattr(one, key) and network is None:
            raise SettingError(f"{key} is for a network that is given by a path; leave it out, or give one.")
    if check.preparation is not None and data is None:
        raise SettingError("preparation is for data that are given by a path; leave it out, or give one.")
    tests = one.data
    if data is not None:
        kind = None if network is None else format_of(network)
        expected = kind.expects(network) if kind and network and kind.expects else None
        tests = open_data(data, preparation=check.preparation or expected).name
    if network is None:
        entry = find_entry(one.model)
    else:
        entry = open_network(
            network,
            data=tests,
            scaling=check.scaling,
            architecture=one.architecture,
            trust=one.trust,
            explain=one.explain or None,
        )
    tests = tests or entry.dataset
    if tests not in DATASETS:
        raise DataError(f"There is no dataset {shown(tests)}; the datasets are {', '.join(DATASETS)}.")
    return entry.name, tests


def _path(text: str, registry: Container[str], folder: Path) -> Path | None:
    """Return the path that a text is meant as; None where it is a name."""
    if not text or text in registry:
        return None
    library.enter_all()
    if text in registry:
        return None
    path = folder / Path(text).expanduser()
    if path.exists():
        return path
    if looks_like_path(text):
        kind = ModelError if registry is MODELS else DataError
        raise kind(f"There is no file {path} and no folder: give a path from the folder of the file, or a name.")
    return None
