"""The list of runs in one DuckDB file, brought to what the folder of results holds whenever it is asked.

The files of the results alone are the truth: the index is made of their headers, can be deleted at any time, and is
made anew where it is not as it was left. DuckDB lets one process at a time write, so each opens it for an instant,
under a lock. Where it cannot be had, as in a read-only folder, the index is made in memory. It holds what headers say,
which can come from anywhere, and reaches neither files nor the network.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from idc_core.base.files import cache_folder, write_whole
from idc_core.errors import DataError, SettingError
from idc_core.runs.run import Run
from idc_core.sql.process import connect
from idc_core.store import ENDING, Facts, Mark, marks, read_facts, results_folder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

log = logging.getLogger("idc_core")

_FORM = "runs 2"
"""Changes with the table; an index of another form is made anew."""

_WAIT_S = 5.0
"""Seconds to wait for another process, which needs a fraction of one."""

_Row = tuple[str, str, str, str, float, str, str]
"""Id, kind, version, made, seconds, settings, scores."""

_TABLE = (
    "CREATE TABLE IF NOT EXISTS results (id VARCHAR PRIMARY KEY, inode UBIGINT, size UBIGINT, kind VARCHAR, "
    "version VARCHAR, made VARCHAR, seconds DOUBLE, network VARCHAR, settings VARCHAR, scores VARCHAR)"
)
_COLUMNS = ("VARCHAR", "UBIGINT", "UBIGINT", *("VARCHAR",) * 3, "DOUBLE", *("VARCHAR",) * 3)

_NO_RUN = ("", "", "", 0.0, "", "{}", "{}")
"""What is noted of a result that is no run, so that its header is read once."""


def find_runs(
    kind: str = "", network: str = "", text: str = "", *, owner: str = "", sees: Callable[[str], bool] | None = None
) -> list[Run]:
    """Return the runs that are kept, the newest first.

    Parameters
    ----------
    kind : str
        Only of this kind, a name of `RUN_KINDS`; empty for all.
    network : str
        Only of this network, by its registered name.
    text : str
        Only those whose names, kinds or settings hold all of these words.
    owner : str
        Whose marks are told; by default those that are everybody's.
    sees : callable, optional
        Whether the name of a network or of data may be seen: runs of others are left out, unless they are shared.

    Returns
    -------
    list of Run
    """
    marked = marks(owner)
    runs = [_run(row, marked.get(row[0], Mark())) for row in _rows(kind, network)]
    return [run for run in runs if run.holds(text) and (sees is None or run.shared or _all_seen(run, sees))]


def find_run(id: str) -> Run:
    """Return one run; SettingError where there is none of this id."""
    run = next((known for known in find_runs() if known.id == id), None)
    if run is None:
        raise SettingError("There is no such run: it was deleted, or made room for newer ones.")
    return run


def _all_seen(run: Run, sees: Callable[[str], bool]) -> bool:
    """Whether every network and all data of a run may be seen."""
    return all(sees(name) for names in run.names.values() for name in names)


def _run(row: _Row, mark: Mark) -> Run:
    id, kind, version, made, seconds, settings, scores = row
    facts = Facts(kind, version, made, seconds, json.loads(settings), json.loads(scores))
    return Run(id, facts, mark.name, mark.pinned, mark.shared)


def _rows(kind: str, network: str) -> list[_Row]:
    """Ask the index on disk; one in memory where it cannot be had."""
    import duckdb

    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / "runs.lock", timeout=_WAIT_S), _on_disk(folder / "runs.duckdb") as index:
            return _answer(index, kind, network)
    except (OSError, Timeout, duckdb.Error) as error:
        log.info("The index of runs is made in memory (%s).", error)
    with connect() as index:
        index.execute(_TABLE)
        return _answer(index, kind, network)


def _answer(index: DuckDBPyConnection, kind: str, network: str) -> list[_Row]:
    _update(index)
    return index.execute(
        "SELECT id, kind, version, made, seconds, settings, scores FROM results WHERE settings <> '{}' "
        "AND ($1 = '' OR kind = $1) AND ($2 = '' OR network = $2) ORDER BY made DESC, id",
        [kind, network],
    ).fetchall()


@contextmanager
def _on_disk(path: Path) -> Iterator[DuckDBPyConnection]:
    """Open the file if it is as it was left, else a new one; a damaged database can end its reader's process."""
    seal, log_file = path.with_suffix(".seal"), path.with_suffix(".duckdb.wal")
    known = _digest(path)
    # A log beside it was left by a process that was killed.
    if not known or log_file.exists() or not seal.is_file() or seal.read_text(errors="replace") != known:
        for file in (seal, path, log_file):
            file.unlink(missing_ok=True)
    index = connect(str(path))
    try:
        index.execute(_TABLE)
        yield index
    finally:
        index.close()
        if (now := _digest(path)) != known or not seal.exists():
            write_whole(seal, now.encode())


def _digest(path: Path) -> str:
    """Return the digest of the index and its form; empty where there is none."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16))
    return f"{_FORM} {digest.hexdigest()}"


def _update(index: DuckDBPyConnection) -> None:
    """Read the headers of the results that are new, and forget those that are gone."""
    known = {id: (inode, size) for id, inode, size in index.execute("SELECT id, inode, size FROM results").fetchall()}
    there = _there()
    gone = [id for id in known if there.get(id) != known[id]]
    new = [id for id in there if known.get(id) != there[id]]
    if gone:
        index.execute("DELETE FROM results WHERE id IN (SELECT unnest($1::VARCHAR[]))", [gone])
    if new:
        rows = [(id, *there[id], *_header(id)) for id in new]
        places = ", ".join(f"unnest(${number}::{kind}[])" for number, kind in enumerate(_COLUMNS, 1))
        index.execute(f"INSERT INTO results SELECT {places}", [list(column) for column in zip(*rows, strict=True)])


def _there() -> dict[str, tuple[int, int]]:
    """Return what tells one file of a result from another, by id."""
    files = {}
    try:
        with os.scandir(results_folder()) as entries:
            for entry in entries:
                if entry.name.endswith(ENDING) and not entry.name.startswith("."):
                    try:
                        about = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:  # it made room meanwhile
                        continue
                    files[entry.name.removesuffix(ENDING)] = (about.st_ino, about.st_size)
    except FileNotFoundError:
        return {}
    return files


def _header(id: str) -> tuple[str, str, str, float, str, str, str]:
    """Return a row's columns behind those of its file."""
    try:
        facts = read_facts(results_folder() / f"{id}{ENDING}")
    except DataError as error:
        log.warning("A result is not listed among the runs: %s", error)
        return _NO_RUN
    if not facts.settings:
        return _NO_RUN
    network = str(facts.settings.get("network", ""))
    texts = (json.dumps(facts.settings), json.dumps(facts.scores))
    return facts.kind, facts.version, facts.made, facts.seconds, network, *texts
