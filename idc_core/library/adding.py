"""Adding a file or folder: checked for what it may be before anything is kept, read only afterwards."""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PureWindowsPath
from typing import BinaryIO

from idc_core.base.config import config
from idc_core.base.progress import Progress
from idc_core.datasets import DATASETS
from idc_core.datasets.formats import DATA_FORMATS
from idc_core.datasets.other_files import line_that_converts
from idc_core.errors import DataError
from idc_core.library import contents, store
from idc_core.library.entry import Entry, Kind, Stamp, plain_name
from idc_core.models import MODELS
from idc_core.models.formats import NETWORK_FORMATS, REFUSED

_CODE = (".py", ".pyc", ".ipynb")
_PICKLED = (".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".joblib")
_KINDS: tuple[Kind, ...] = ("network", "data")
_WHAT = {"network": "network", "data": "data set"}


def add_path(path: str, kind: Kind, *, owner: str = "", label: str = "") -> Entry:
    """Add a file or folder of this computer by its path; it stays where it is.

    Parameters
    ----------
    path : str
        An absolute path, or one that begins with ``~``.
    kind : {"network", "data"}
    owner : str
        Whose entry it is; empty: everybody's.
    label : str
        Name for people; by default after the file.

    Returns
    -------
    Entry

    Raises
    ------
    DataError
        If there is no such file, or none of its ending can be read without running code.
    """
    try:
        place = Path(path.strip()).expanduser()
    except RuntimeError as error:
        raise DataError(f"{plain_name(path)} names a person whose folder is not known; give the whole path.") from error
    if not place.is_absolute():
        raise DataError(f"Give the whole path, from the root of the disk; {plain_name(path) or 'nothing'} came.")
    stamp = Stamp.of(place)
    _check_ending("/" if place.is_dir() else _ending(place.name, kind), place.name, kind)
    return store.write(_entry(kind, str(place), "", stamp, owner, label or place.stem or place.name))


def add_upload(
    stream: BinaryIO, name: str, kind: Kind, *, owner: str = "", label: str = "", on_progress: Progress | None = None
) -> Entry:
    """Add an uploaded file, which is kept in the library by its content; a network's zip file is unpacked.

    Parameters
    ----------
    stream : binary file
        Read from where it stands.
    name : str
        The name that it had.
    kind, owner, label
        As `add_path` takes them.
    on_progress : Progress, optional

    Returns
    -------
    Entry

    Raises
    ------
    DataError
        As `add_path`; also if it is empty, too large, or a zip file that cannot be unpacked.
    """
    file = PureWindowsPath(name).name  # an old browser may send a path, of either kind
    shown, ending = plain_name(file), _ending(file, kind)
    _check_ending(ending, shown, kind)
    unpacked = kind == "network" and ending == ".zip" and ending not in NETWORK_FORMATS
    place = contents.FOLDER if unpacked else ending
    with contents.received(stream, shown, place, _own_room(owner), on_progress) as (content, hidden):
        stamp = replace(Stamp.of(hidden), digest="")
        entry = _entry(kind, shown, content, stamp, owner, label or PureWindowsPath(shown).stem)
        # The entry comes first: content without an entry would never be removed where this process is killed.
        with store.locked():
            store.write(entry)
            contents.place(content, hidden)
    return entry


def _own_room(owner: str) -> int | None:
    """Return the bytes of uploads that somebody may still keep; None for whoever is at this computer."""
    held = {entry.content for entry in store.ENTRIES.listed().values() if entry.owner == owner and entry.content}
    return config().person - sum(map(contents.size, held)) if owner else None


def kind_of(name: str, folder: Path | None = None) -> Kind:
    """Tell by a file's name, or by what a folder holds, whether it is a network; else it is taken for data."""
    if folder is not None:
        return "network" if (folder / "config.json").exists() else "data"
    network, data = (_ending(name, kind) in accepted(kind) for kind in _KINDS)
    return "network" if network and not data else "data"


def accepted(kind: Kind) -> list[str]:
    """Return the endings of files that can be added; "/" for folders, which may come as zip files."""
    endings = {"/" if format.startswith("/") else format for format in _formats(kind)}
    if kind == "network":
        endings -= {format.ending for format in NETWORK_FORMATS.values() if format.trusted}
    return sorted(endings | ({".zip"} if "/" in endings else set()))


def _entry(kind: Kind, source: str, content: str, stamp: Stamp, owner: str, label: str) -> Entry:
    label = plain_name(label) or "Unnamed"
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return Entry(secrets.token_hex(8), kind, _free(_slug(label)), label, source, content, stamp, owner, when)


def _free(first: str) -> str:
    """Return a name that nothing else has."""
    taken = {*MODELS, *DATASETS, *(entry.name for entry in store.ENTRIES.listed().values())}
    number, name = 1, first
    while name in taken:
        number += 1
        name = f"{first}-{number}"
    return name


def _ending(name: str, kind: Kind) -> str:
    """Return the longest ending of a file that a reader knows, else its last one."""
    known = [ending for ending in _formats(kind) if name.lower().endswith(ending)]
    return max(known, key=len, default=PureWindowsPath(name).suffix.lower())


def _formats(kind: Kind) -> Iterable[str]:
    return NETWORK_FORMATS if kind == "network" else DATA_FORMATS


def _check_ending(ending: str, name: str, kind: Kind) -> None:
    """Refuse what is code, what may run code, and what no reader knows."""
    trusted = [format.ending for format in NETWORK_FORMATS.values() if format.trusted]
    if ending in (*_CODE, *trusted):
        raise DataError(
            f"{name} is code, or can run code when it is read: such files are named on the command line only "
            f"({'--setup' if ending in _CODE else '--trust'}), never added here."
        )
    if ending in _PICKLED and ending not in (*NETWORK_FORMATS, *DATA_FORMATS):
        raise DataError(
            f"{name} may be a pickle, which can run code when it is read: refused. Save weights as safetensors, the "
            "network as ONNX, or arrays as npz."
        )
    if kind == "network" and ending in REFUSED:
        made, instead = REFUSED[ending]
        raise DataError(f"{name} is a file {made}, which can run code when it is read: refused. Save it by {instead}.")
    if kind == "data" and ending not in accepted(kind) and (line := line_that_converts(name)):
        raise DataError(f"{name} is of a kind that is not read. In Python, this line makes it one that is: {line}.")
    if ending not in accepted(kind):
        endings = ", ".join("a folder" if format == "/" else format for format in accepted(kind))
        raise DataError(f"{name} is no {_WHAT[kind]} that can be read; expected {endings}.")


def _slug(label: str) -> str:
    """Return what a registry calls something of this label: small letters, digits and hyphens."""
    plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-") or "unnamed"
