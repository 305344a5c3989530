"""Results that are kept: the same settings never run twice, across sessions, processes and restarts.

Each result is a file named after the digest of everything that it depends on, the version of its kind included. So
processes need no common database to write to, and none blocks another but where both ask for the same result: then one
computes and the others wait for it. Above the limit of bytes the results go that were used longest ago.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from idc_core.base.config import config
from idc_core.base.files import cache_folder, keeping, make_room, sweep
from idc_core.base.progress import Progress, report
from idc_core.base.registry import own_code
from idc_core.base.threads import number
from idc_core.errors import DataError, SettingError
from idc_core.store.marks import forget, pinned
from idc_core.store.result_file import ENDING, MISSING, Facts, find, write
from idc_core.store.values import UnkeptError, pack
from idc_core.store.versions import version_of

_Result = TypeVar("_Result")

log = logging.getLogger("idc_core")

_POLL_S = 0.1
_ID = re.compile(r"[0-9a-f]{32}")


def results_folder() -> Path:
    """Return the folder of all kept results; it need not exist."""
    return cache_folder() / "results"


def is_empty() -> bool:
    """Whether no result is kept."""
    return not any(results_folder().glob(f"*{ENDING}"))


def place(kind: str, key: Hashable) -> Path:
    """Return the file that holds, or would hold, the result of a kind and key.

    Parameters
    ----------
    kind : str
        What sort of result it is.
    key : hashable
        Everything that it depends on but its version, the threads, the owner's limits, and the code of a person's own
        entries that it names: values as `pack` takes them, without arrays.

    Raises
    ------
    UnkeptError
        If something in the key is no plain value.
    """
    tree, arrays = pack(key)
    if arrays:
        raise UnkeptError("An array cannot be part of a key: take its fingerprint.")
    code = own_code(repr(key))
    parts = [kind, version_of(kind), number(), tree, *config().deciding.items(), *((code,) if code else ())]
    text = json.dumps(parts, sort_keys=True)
    return results_folder() / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}{ENDING}"


def kept(
    kind: str,
    key: Hashable,
    make: Callable[[], _Result],
    *,
    settings: dict[str, object] | None = None,
    scores: Callable[[_Result], dict[str, float]] | None = None,
    fresh: bool = False,
    since: float | None = None,
    on_progress: Progress | None = None,
    on_problem: Callable[[DataError], None] | None = None,
) -> _Result:
    """Return a result that is kept, or make and keep it.

    Parameters
    ----------
    kind, key
        As for `place`.
    make : callable
        Makes the result. Where another process is making the same one, it is waited for instead.
    settings : dict, optional
        What a person chose, by name, for lists of runs.
    scores : callable, optional
        Gives the figures of a result for lists of runs.
    fresh : bool
        Whether it is made even where it is kept, and put in its place.
    since : float, optional
        When somebody began to wait for it, as `time.time` gives it: its seconds count from there, not from its making.
    on_progress : Progress, optional
        Told of the wait; returning False ends it.
    on_problem : callable, optional
        Called with a sentence where the result cannot be kept, as on a full disk; it is returned all the same.

    Raises
    ------
    CancelledError
        If `on_progress` ends the wait, or the making.
    """
    path = place(kind, key)
    with _turn(path, on_progress):
        if fresh:
            _forget_pieces(path)
        else:
            result: _Result = find(path)
            if result is not MISSING:
                return result
        began = time.monotonic()
        waited = 0.0 if since is None else max(0.0, time.time() - since)
        value = make()
        seconds = waited + time.monotonic() - began
        made = datetime.now(UTC).isoformat(timespec="seconds")
        facts = Facts(kind, version_of(kind), made, seconds, settings or {}, scores(value) if scores else {})
        try:
            keep(path, value, facts)
        except UnkeptError as error:  # a mistake of ours, which must not take the result away
            log.error("A result of kind %s is not kept: %s", kind, error)
        except DataError as error:
            log.warning("%s", error)
            if on_problem is not None:
                on_problem(error)
        _forget_pieces(path)
    return value


def keep(path: Path, value: object, facts: Facts) -> None:
    """Write a result and make room for it; DataError where there is no room on the disk or it cannot be written."""
    folder = path.parent
    with keeping(folder, "Results"):
        write(path, value, facts)
        spared = {path.name, *(f"{name}{ENDING}" for name in pinned())}
        make_room(folder, f"*{ENDING}", config().store, spared)


def delete(id: str) -> None:
    """Delete a kept result, and what anybody said of it.

    Raises
    ------
    SettingError
        If there is none of this id.
    DataError
        If it cannot be deleted.
    """
    if not _ID.fullmatch(id):
        raise SettingError("There is no such result.")
    forget(id)
    path = results_folder() / f"{id}{ENDING}"
    try:
        path.unlink()
    except FileNotFoundError as error:
        raise SettingError("There is no such result: it was deleted meanwhile.") from error
    except OSError as error:
        raise DataError(f"{path} cannot be deleted: {error.strerror}.") from error


def clean() -> None:
    """Remove what killed processes left: half-written files, locks that nobody holds, pieces of finished results."""
    sweep()
    _forget_finished(results_folder())
    for path in results_folder().glob("*.lock"):
        with suppress(OSError, Timeout), FileLock(path, timeout=0):
            path.unlink()


@contextmanager
def _turn(path: Path, on_progress: Progress | None) -> Iterator[None]:
    """Let one process at a time make a result; where no lock can be written, each goes on by itself."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path.with_suffix(".lock"))
        while True:
            try:
                lock.acquire(timeout=_POLL_S)
                break
            except Timeout:
                report(on_progress, 0, 0, "another process computes this")
    except OSError:
        yield
        return
    try:
        yield
    finally:
        # Held to the end: who opened the file before sees that its name has gone, and begins again.
        path.with_suffix(".lock").unlink(missing_ok=True)
        lock.release()


@dataclass(frozen=True)
class Unfinished:
    """What a long pass over inputs has found so far: who asks for the same result again goes on behind it.

    Each piece is a file named after the digest of its result and the first input that it holds.

    Attributes
    ----------
    result : Path
        The file that will hold the result, as `place` says.
    part : str
        Which of several passes it is; one word.
    """

    result: Path
    part: str

    def find(self, start: int) -> Any:
        """Return the piece that begins with an input, or `MISSING`; a damaged one is missing, and the log says so."""
        return find(self._path(start))

    def keep(self, start: int, piece: object) -> None:
        """Keep a piece; DataError where it cannot be written.

        Above the limit of kept results, the pieces of other results go that were used longest ago.
        """
        path, made = self._path(start), datetime.now(UTC).isoformat(timespec="seconds")
        with keeping(path.parent, "What a pass has found so far"):
            write(path, piece, Facts("piece", version_of("piece"), made, 0.0, {}, {}))
            own = {file.name for file in path.parent.glob(f"{self.result.stem}-*{ENDING}")}
            make_room(path.parent, f"*{ENDING}", config().store, own)

    def _path(self, start: int) -> Path:
        return _pieces_folder() / f"{self.result.stem}-{self.part}-{start}{ENDING}"


def _forget_pieces(result: Path) -> None:
    """Remove the pieces of a result."""
    for path in _pieces_folder().glob(f"{result.stem}-*{ENDING}"):
        with suppress(OSError):  # it goes when room is made
            path.unlink()


def _forget_finished(results: Path) -> None:
    """Remove the pieces of all results that lie in a folder: whoever kept them was killed just then."""
    for path in _pieces_folder().glob(f"*{ENDING}"):
        result = results / f"{path.name.partition('-')[0]}{ENDING}"
        if result.exists():
            _forget_pieces(result)


def _pieces_folder() -> Path:
    return cache_folder() / "unfinished"
