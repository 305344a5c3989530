"""A person's suites on disk: uploads, successful attacks, results of a search; saved until the person deletes them.

In the folder "suites/kept" of the cache (IDC_HOME, or the platform's cache folder), one npz file a suite, without
pickles: the arrays inputs, targets and origin, and how they were made as JSON. A file's name is the content address of
inputs and targets, and of their owner if there is one, so that the same tests are saved once per owner.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from idc_core.base.arrays import Array
from idc_core.base.config import config, config_file
from idc_core.base.files import keeping, partial_file
from idc_core.base.progress import Progress, report
from idc_core.datasets import Dataset
from idc_core.errors import DataError, SettingError
from idc_core.guarded import open_archive, read_json
from idc_core.store.documents import Documents
from idc_core.suites.custom_tests import (
    SuiteFormat,
    begin_digest,
    fitting_inputs,
    fitting_targets,
    read_tests,
    suite_from_arrays,
)
from idc_core.suites.suite import ProvenanceStep, Suite, nowhere

_ABOUT = "about.json"
_AGAIN = "Delete it and save its tests again."


@dataclass(frozen=True)
class SavedSuite:
    """A suite on disk, opened by `name`: the file's without its ending.

    `kind` is the key of its colour: "own", or that of the perturbation it came from. `owner` is whose it is, empty for
    everybody's; others see it where it is `shared`.
    """

    label: str
    kind: str
    inputs: int
    form: SuiteFormat
    provenance: tuple[ProvenanceStep, ...]
    owner: str = ""
    shared: bool = False
    name: str = ""


def _read(path: Path) -> SavedSuite:
    """Read what a file says of itself."""
    with open_archive(path, f"The saved suite {path}") as archive:
        about = read_json(archive.read(_ABOUT), f"The saved suite {path}: {_ABOUT}", SavedSuite)
    steps = (
        replace(step, settings={name: _tuples(value) for name, value in step.settings.items()})
        for step in about.provenance
    )
    return replace(about, name=path.stem, provenance=tuple(steps))


def _tuples(value: object) -> object:
    """Return what JSON wrote, its lists as the tuples that they were."""
    if isinstance(value, dict):
        return {key: _tuples(inner) for key, inner in value.items()}
    return tuple(_tuples(inner) for inner in value) if isinstance(value, list) else value


SAVED = Documents(
    "suites/kept",
    "kept-[0-9a-f]{16}",
    _read,
    unknown="There is no saved suite {id!r}: it was deleted, or saved on another machine.",
    remedy=_AGAIN,
    order=lambda suite: suite.label,
    ending=".npz",
)
"""What the suites on disk say of themselves, by name."""


def save_suite(
    label: str,
    tests: Suite | Array,
    targets: Array | None = None,
    provenance: Sequence[ProvenanceStep] = (),
    *,
    like: Dataset | Suite | None = None,
    owner: str = "",
    shared: bool = False,
    on_progress: Progress | None = None,
) -> Path:
    """Write a suite to disk, so that it can be chosen wherever suites are; return the file, its stem for `open_saved`.

    `tests` is a suite, made block by block, or inputs (n, ...) as `custom_suite` takes them: then with `targets` (n,),
    `like` what the network's tests look like, and how they were made. `owner` says whose it is, empty for everybody's,
    and `shared` that others see it. Where the same tests of the same owner are there already, they get the new label.
    Raises SettingError if the label is empty, an array comes without targets or `like`, or the provenance cannot be
    written; DataError if the tests do not fit, are too large to be read again, have no room, or cannot be written;
    CancelledError if stopped: nothing is left behind.
    """
    label = " ".join(label.split())
    if not label:
        raise SettingError("A suite that is saved needs a name.")
    if not isinstance(tests, Suite):
        if targets is None or like is None:
            raise SettingError("Inputs alone cannot be saved: pass targets and like, the data set that they are like.")
        form = SuiteFormat.of(like)
        tests = suite_from_arrays(np.asarray(tests), np.asarray(targets), form, provenance=provenance)
    about = _describe(label, tests, provenance or tests.provenance, owner, shared)
    folder = SAVED.folder
    with keeping(folder, repr(label)), partial_file(folder) as partial:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            address = _write(archive, tests, about, on_progress)
        path = folder / f"{_file_name(address, owner)}.npz"
        _check_room(label, partial.stat().st_size, path, owner)
        partial.replace(path)
    return path


def pack_suite(label: str, suite: Suite, on_progress: Progress | None = None) -> bytes:
    """Return a suite as the content of an npz file, as `save_suite` writes it; `custom_suite` reads it again."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        _write(archive, suite, _describe(label, suite, suite.provenance, "", False), on_progress)
    return content.getvalue()


def saved_suites(like: Dataset | Suite | None = None, asker: str | None = None) -> dict[str, SavedSuite]:
    """List the suites on disk by name, in the order of their labels; files that are no suites are left out.

    With `like`, a data set or a suite, only those of the same shape, classes and task; with `asker`, only those that
    somebody may see.
    """
    form = None if like is None else SuiteFormat.of(like)
    return {name: suite for name, suite in SAVED.listed(asker).items() if form is None or suite.form == form}


def open_saved(name: str, asker: str | None = None) -> Suite:
    """Read a suite from disk into memory.

    Raises
    ------
    SettingError
        If there is none of that name that `asker` may see.
    DataError
        If the file is damaged.
    """
    path, about = SAVED.path(name), SAVED.find(name, asker)
    inputs, targets, others = read_tests(path, str(path), about.form, ("origin", "partner"))
    # Suites that were saved before blends told of both tests have no partner.
    others = {"origin": nowhere(0), "partner": nowhere(len(inputs)), **others}
    for array, numbers in others.items():
        if numbers.shape != (len(inputs),) or numbers.dtype != np.int64:
            raise DataError(f"The saved suite {path} is damaged: its array {array} does not fit its inputs. {_AGAIN}")
    suite = suite_from_arrays(
        inputs,
        targets,
        about.form,
        label=about.label,
        name=about.kind,
        **others,
        provenance=about.provenance,
        where=str(path),
    )
    if _file_name(suite.parts[0].fingerprint, about.owner) != name:
        raise DataError(f"The saved suite {path} is damaged: its tests are not those that were saved. {_AGAIN}")
    return suite


def change_saved(name: str, asker: str | None = None, *, label: str | None = None, shared: bool | None = None) -> None:
    """Give a suite on disk another name for people, or show it to others, or to its owner alone.

    Raises
    ------
    SettingError
        If the name is empty, or the suite not `asker`'s.
    """
    about = SAVED.own(name, asker)
    label, shared = about.label if label is None else label, about.shared if shared is None else shared
    save_suite(label, open_saved(name), owner=about.owner, shared=shared)


def _check_room(label: str, size: int, path: Path, owner: str) -> None:
    """Refuse a suite for which its owner, or all together, have no room left; `path` is the file that it replaces."""
    held = {file.stem: bytes_of for file, _, _, bytes_of in SAVED.state() if file != path}
    rooms = [(config().suites - sum(held.values()), "suites_mib")]
    if owner:
        own = (held.get(name, 0) for name, suite in SAVED.listed().items() if suite.owner == owner)
        rooms.append((config().person - sum(own), "person_mib"))
    for room, limit in rooms:
        if size > room:
            raise DataError(
                f"{label!r} takes {size:,} bytes, and saved test sets have {max(0, room):,} left. Delete some that are "
                f"no longer needed, or raise {limit} in the section limits of {config_file().name}."
            )


def _file_name(address: str, owner: str) -> str:
    """Return the name of the file of tests: the same tests of two owners are two files."""
    return f"kept-{hashlib.sha256(f'{owner} {address}'.encode()).hexdigest()[:16] if owner else address}"


def _describe(label: str, suite: Suite, provenance: Sequence[ProvenanceStep], owner: str, shared: bool) -> str:
    content = {
        "label": label,
        "kind": "own" if suite.name == "original" else suite.name,
        "inputs": len(suite),
        "form": asdict(SuiteFormat.of(suite)),
        "provenance": [{**vars(step), "settings": dict(step.settings)} for step in provenance],
        **({"owner": owner, "shared": shared} if owner else {}),
    }
    try:
        return json.dumps(content, default=_plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SettingError(f"How {label!r} came to be cannot be written as JSON: {error}.") from error


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is neither number, text, truth value nor a sequence of these")


def _write(archive: zipfile.ZipFile, suite: Suite, about: str, on_progress: Progress | None) -> str:
    """Write all of a suite, a block at a time; return its content address."""
    archive.writestr(_ABOUT, about)
    digest = None
    with archive.open("inputs.npy", "w", force_zip64=True) as stream:
        form = SuiteFormat.of(suite)
        for positions, block in suite.blocks():
            inputs = fitting_inputs(block, form, "The suite")
            if digest is None:
                shape = (len(suite), *suite.shape)
                size = math.prod(shape) * inputs.itemsize
                if size > config().memory:
                    raise DataError(
                        f"The suite holds {size:,} bytes, and at most {config().memory:,} can be read again: save "
                        "fewer tests."
                    )
                digest = begin_digest(inputs.dtype, shape)
                header = {"descr": inputs.dtype.str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(stream, header)
            digest.update(inputs.data)
            stream.write(inputs.data)
            report(on_progress, int(positions[-1]) + 1, len(suite), "inputs saved")
    targets = fitting_targets(suite.targets, len(suite), form, "The suite")
    for name, array in (("targets", targets), ("origin", suite.origin), ("partner", suite.partner)):
        with archive.open(f"{name}.npy", "w") as stream:
            np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)
    if digest is None:
        raise DataError("A suite without tests cannot be saved.")
    digest.update(targets.data)
    return digest.hexdigest()[:16]
