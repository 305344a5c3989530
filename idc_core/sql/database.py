"""A DuckDB file that is opened by processes of their own only, and what can be done with it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from idc_core.base.files import partial_file
from idc_core.errors import DataError, IdcError, SettingError
from idc_core.sql import process
from idc_core.sql.process import LIMITS, OUTDATED, REFUSED, UNEXPECTED, UNOPENED, Job, Statement, Value, sweep

_QUOTED = re.compile(
    r"""'(?:[^']|'')*+(?:'|\Z)|"(?:[^"]|"")*+(?:"|\Z)|--[^\n]*+|/\*.*?(?:\*/|\Z)|\$(\w*+)\$.*?(?:\$\1\$|\Z)""",
    re.DOTALL,
)
"""What is no SQL inside a query: strings, names in quotes, comments."""

_WRITING = threading.Lock()


class _OutdatedError(DataError):
    """The database lacks columns that this version needs."""


@dataclass(frozen=True)
class Answer:
    """Columns and rows that a question gave; `cut` where there were more rows."""

    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]
    cut: bool


@dataclass(frozen=True)
class Database:
    """A DuckDB file.

    Attributes
    ----------
    path : Path
        Where it is, or will be once something is written.
    holds : str
        What it is a database of, in the singular.
    schema : sequence of str
        Statements that make what it lacks, and leave alone what it has.
    needed : sequence of pairs of str
        Columns that files of earlier versions lack, by table and name.
    """

    path: Path
    holds: str
    schema: Sequence[str]
    needed: Sequence[tuple[str, str]] = ()

    def exists(self) -> bool:
        """Return whether there is a database; DataError if something else is in its place.

        An empty file is none: a disk that was full may have left it.
        """
        if not self.path.is_symlink() and not self.path.exists():
            return False
        if not self.path.is_file():
            raise self._unexpected("is not a file")
        return self.path.stat().st_size > 0

    def write(self, statements: Sequence[Statement], tables: bytes = b"") -> None:
        """Change the database as a whole, or not at all; one thread at a time, and no other process.

        Parameters
        ----------
        tables
            Arrow streams for the statements that are given a table, one after another.

        Raises
        ------
        DataError
            If it cannot be written.
        """
        with _WRITING:
            if not self.exists():
                self._begin()
            self._change(statements, tables)

    def _change(self, statements: Sequence[Statement], tables: bytes = b"") -> None:
        job: Job = {"statements": [*((sql, ()) for sql in self.schema), *statements]}
        self._run(job, self._unwritten, LIMITS.writing_seconds, tables)

    def _begin(self) -> None:
        """Make a database without rows, whole or not at all; where another process was faster, that one's stays."""
        path = self.path.resolve()
        try:
            with partial_file(path.parent) as partial:
                try:
                    replace(self, path=partial)._change([])
                finally:
                    Path(f"{partial}.wal").unlink(missing_ok=True)
                if path.exists() and not path.stat().st_size:
                    path.unlink()
                with suppress(FileExistsError):
                    os.link(partial, path)
        except OSError as error:
            raise self._unwritten(error) from error

    def _unwritten(self, why: object) -> DataError:
        return DataError(f"The database of {self.holds}s {self.path} cannot be written ({why}).")

    def ask(self, sql: str, seconds: float = LIMITS.seconds) -> Answer:
        """Answer one SELECT.

        Values are Python's where Python has them, and text where not: infinite dates, intervals, bytes, unions.

        Raises
        ------
        SettingError
            If it is not one SELECT, is wrong, asks for what is not allowed, is beyond one of the limits, or has too
            large an answer; the message is the database's own.
        DataError
            If there is no database yet, or it cannot be opened.

        Notes
        -----
        The query is read and answered in a process of its own: the database can be interrupted between blocks of rows
        only, and one value of a billion characters, or a deeply nested query, would fill the process that asks.
        """
        _check(sql)
        return _answer(self._read({"question": sql}, lambda why: SettingError(f"The query failed: {why}"), seconds))

    def export(self, what: str, sql: str, values: Sequence[Value], target: Path) -> None:
        """Write the answer to a question into a CSV or Parquet file, by the file's ending.

        Raises
        ------
        SettingError
            If the file cannot be written.
        DataError
            If there is no database yet, or it cannot be read; `what` is the beginning of the sentence.
        """
        form = "CSV, HEADER" if target.suffix.lower() == ".csv" else "PARQUET"
        try:
            with partial_file(target.parent) as partial:
                partial.touch()
                self._read(
                    {"question": sql, "values": values, "target": str(partial.resolve()), "form": form},
                    lambda why: DataError(f"{what} cannot be exported ({why})."),
                    LIMITS.writing_seconds,
                )
                partial.replace(target)
        except OSError as error:
            raise SettingError(f"{target} cannot be written ({error}); name another file.") from error

    def _read(self, job: Job, failed: Callable[[str], IdcError], seconds: float) -> bytes:
        """Have a job that only reads done; a file of an earlier version is brought up to date before."""
        if not self.exists():
            raise DataError(f"There is no {self.holds} yet in {self.path}: run one and keep it first.")
        job["needed"] = self.needed
        try:
            return self._run(job, failed, seconds)
        except _OutdatedError:
            self.write([])
            return self._run(job, failed, seconds)

    def _run(self, job: Job, failed: Callable[[str], IdcError], seconds: float, tables: bytes = b"") -> bytes:
        """Have a job done: return the answer, an Arrow stream; `failed` makes the error, out of the reason."""
        path = str(self.path.resolve())
        given = json.dumps({**job, "path": path, "seconds": seconds}).encode() + b"\n" + tables
        command = [sys.executable, "-I", process.__file__]
        try:
            done = subprocess.run(command, input=given, capture_output=True, timeout=seconds)
        except subprocess.TimeoutExpired as error:
            sweep(path)
            raise failed(f"it took longer than {seconds:g} s and was stopped") from error
        except OSError as error:
            raise self._unopened(error) from error
        if done.returncode == 0:
            return done.stdout
        why = done.stderr.decode(errors="replace").strip()
        if done.returncode == OUTDATED:
            raise _OutdatedError(f"The database of {self.holds}s {path} is of another version ({why}).")
        if done.returncode == UNEXPECTED:
            raise self._unexpected(why)
        if done.returncode == UNOPENED:
            raise self._unopened(why)
        sweep(path)
        if done.returncode != REFUSED:
            last = why.splitlines()[-1][: LIMITS.message] if why else f"status {done.returncode}"
            why = f"its process ended early ({last}): it needs too much memory, or the file is damaged"
        raise failed(why)

    def _unopened(self, why: object) -> DataError:
        return DataError(f"The database of {self.holds}s {self.path.resolve()} cannot be opened ({why}).")

    def _unexpected(self, what: str) -> DataError:
        return DataError(
            f"{self.path} {what}; the DuckDB database of {self.holds}s was expected there: move it away, or name "
            "another folder by the environment variable IDC_HOME."
        )


def _check(sql: str) -> None:
    """Refuse what is too long or too deep to be read."""
    if len(sql) > LIMITS.characters:
        raise SettingError(
            f"The query has {len(sql):,} characters, and may have {LIMITS.characters:,}: select with fewer."
        )
    if any("\ud800" <= letter <= "\udfff" for letter in sql):
        raise SettingError("The query holds half of a character (a lone surrogate): type that part anew.")
    depth = deepest = 0
    for letter in _QUOTED.sub("", sql):
        depth += (letter in "([{") - (letter in ")]}")
        deepest = max(deepest, depth)
    if deepest > LIMITS.depth:
        raise SettingError(
            f"The query has {deepest:,} brackets inside one another, and may have {LIMITS.depth:,}: nest fewer."
        )


def _answer(stream: bytes) -> Answer:
    import pyarrow as pa

    try:
        table = pa.ipc.open_stream(stream).read_all()
    except pa.ArrowException as error:
        raise SettingError(f"The query failed: its answer cannot be read ({error}).") from error
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return Answer(tuple(table.column_names), rows[: LIMITS.rows], len(rows) > LIMITS.rows)
