"""The process that opens a database for `Database`, which ends it where it takes too long.

A program of its own that imports nothing of the engine, so that it starts at once. The first line of standard input is
a job, as JSON of `Job`; the Arrow streams of its tables follow. An answer goes to standard output as an Arrow stream, a
reason why there is none to standard error. A damaged file can end this process, but not the one that started it.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from duckdb.sqltypes import DuckDBPyType


class _Limits(NamedTuple):
    """What a query, its answer, and the process in which a database is opened may take.

    Attributes
    ----------
    characters, depth
        Length of a query, and brackets of it that may be open at once.
    seconds
        Time of a query, the start of its process included.
    writing_seconds
        Time to write into a database, or to export from it.
    waiting_seconds
        Time to wait for another process that writes into the database; less than the time of the whole.
    rows
        Rows of an answer; more are cut off.
    values, answer_bytes
        Values of an answer (those in lists count singly), and its size; a larger answer is refused.
    message
        Characters of an error message; more are cut off.
    memory, database_memory
        Bytes of the process, and of the database inside it, which does not count what single values need.
    file_bytes
        Size of a file that is written; a query can write none.
    """

    characters: int = 20_000
    depth: int = 100
    seconds: float = 10.0
    writing_seconds: float = 120.0
    waiting_seconds: float = 15.0
    rows: int = 10_000
    values: int = 1_000_000
    answer_bytes: int = 16 << 20
    message: int = 1_000
    memory: int = 900 << 20
    database_memory: int = 512_000_000
    file_bytes: int = 16 << 30


LIMITS = _Limits()

REFUSED, UNOPENED, OUTDATED, UNEXPECTED = 3, 4, 5, 6
"""How the process ends where the job is at fault, the file is, columns are missing, or the file is of another kind."""

_DUCKDB, _SQLITE = b"DUCK", b"SQLite format 3\0"
"""What files of databases begin with; DuckDB's begin with a checksum of eight bytes."""

_LOCKED = ("could not set lock on file", "being used by another process")
"""What the database says where another process has the file open, on Unix and on Windows."""

_NUMBERS = ("tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint", "hugeint")
_TIMES = ("date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp with time zone")
_VALUES = {*_NUMBERS, *_TIMES, "boolean", "float", "double", "decimal", "varchar", "uuid", "null"}
"""Types that are answered as values, also in lists, structs and maps; all others are answered as text."""

_MOST_NESTED = 16
"""Lists and structs inside one another that are answered as values; Arrow has a limit."""

# The database cannot reach files or the network, cannot load extensions, cannot take the machine's memory or disk, and
# none of this can be changed from inside.
_CONFINED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "temp_directory": "",
    "max_temp_directory_size": "0B",
    "memory_limit": f"{LIMITS.database_memory}B",
    "threads": "1",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
}


Value = str | int | float | None

Statement = tuple[str, Sequence[Value] | None]
"""SQL and the values of its parameters; with None the next table is given to it under the name `given`."""


class Job(TypedDict, total=False):
    """What is done with a database: statements that write, or a question, exported where a target is named."""

    path: str
    seconds: float
    needed: Sequence[tuple[str, str]]
    statements: Sequence[Statement]
    question: str
    values: Sequence[Value]
    target: str
    form: str


class _EndError(Exception):
    """Ends the process with a status and a reason."""


def main() -> None:
    """Do the job on standard input."""
    # Neither duckdb nor pyarrow needs it for what is done here, and to import it takes a third of the start.
    sys.modules["numpy"] = None  # type: ignore[assignment]
    job: Job = json.loads(sys.stdin.buffer.readline())
    _confine(job)
    try:
        _do(job)
    except _EndError as end:
        status, why = end.args
        # The further lines are for developers of the database, or name settings that are locked here.
        why = why.splitlines()[0] if why.startswith(("INTERNAL Error", "Out of Memory Error")) else why
        sys.stderr.buffer.write(why[: LIMITS.message].encode(errors="replace"))
        sys.exit(status)


def _do(job: Job) -> None:
    import duckdb
    import pyarrow as pa

    _look(job["path"])
    try:
        wait = min(LIMITS.waiting_seconds, 0.7 * job["seconds"])
        connection = connect(job["path"], read_only="statements" not in job, wait=wait)
        there = connection.execute("SELECT table_name, column_name FROM duckdb_columns()").fetchall()
        missing = set(map(tuple, job.get("needed", ()))).difference(there)
    except duckdb.Error as error:
        raise _EndError(UNOPENED, str(error)) from error
    sweep(job["path"])
    if missing:
        raise _EndError(OUTDATED, f"columns are missing: {missing}")
    try:
        if "statements" in job:
            _write(connection, job["statements"])
        elif "target" in job:
            _export(connection, job)
        else:
            _answer(connection, job["question"])
        connection.close()
    except duckdb.IOException as error:  # a query reaches no other file, so that the database's own is damaged
        raise _EndError(REFUSED if "target" in job else UNOPENED, str(error)) from error
    except duckdb.Error as error:
        raise _EndError(REFUSED, str(error)) from error
    except (MemoryError, pa.ArrowMemoryError) as error:
        raise _EndError(REFUSED, f"it needs more than {LIMITS.memory >> 20} MB of memory") from error


def sweep(path: str) -> None:
    """Delete what the database put beside its file when its memory was full, and an earlier end left there."""
    folder = Path(f"{path}.tmp")
    # What may not be deleted hinders nothing, and another process may delete it at the same time.
    with suppress(OSError):
        if folder.is_dir() and not folder.is_symlink():
            for file in folder.glob("duckdb_temp*"):
                file.unlink(missing_ok=True)
            if not any(folder.iterdir()):
                folder.rmdir()


def _confine(job: Job) -> None:
    """Take away memory, files and time beyond the limits, where the system can."""
    if sys.platform != "win32":
        import resource

        signal.alarm(int(job["seconds"]) + 2)  # also where nobody is left to end this process
        written = LIMITS.file_bytes if "target" in job or "statements" in job else 0
        for what, most in (("DATA", LIMITS.memory), ("FSIZE", written), ("CORE", 0)):
            kind = getattr(resource, f"RLIMIT_{what}")
            hard = resource.getrlimit(kind)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (most, most))


def _look(path: str) -> None:
    """End where a file is there that is no DuckDB database: DuckDB would look for an extension that reads it."""
    try:
        with Path(path).open("rb") as file:
            start = file.read(len(_SQLITE))
    except FileNotFoundError:
        return
    except OSError as error:
        raise _EndError(UNOPENED, str(error)) from error
    log = Path(f"{path}.wal")
    if log.exists() and not log.is_file():
        raise _EndError(UNEXPECTED, "has a log (.wal) that is not a file")
    if start and start[8:12] != _DUCKDB:
        raise _EndError(UNEXPECTED, f"is {'an SQLite' if start == _SQLITE else 'not a DuckDB'} database")


def connect(path: str = ":memory:", *, read_only: bool = False, wait: float = 0.0) -> DuckDBPyConnection:
    """Open a confined database; wait so many seconds while another process writes into it."""
    import duckdb

    end = time.monotonic() + wait
    while True:
        try:
            return duckdb.connect(path, read_only=read_only, config=_CONFINED)
        except duckdb.Error as error:
            if not any(text in str(error).lower() for text in _LOCKED) or time.monotonic() > end:
                raise
            time.sleep(0.05)


def _write(connection: DuckDBPyConnection, statements: Sequence[Statement]) -> None:
    """Change the database as a whole, or not at all."""
    import pyarrow as pa

    connection.execute("BEGIN")
    for sql, values in statements:
        if values is None:
            connection.register("given", pa.ipc.open_stream(sys.stdin.buffer))
        connection.execute(sql, values)
    connection.execute("COMMIT")


def _export(connection: DuckDBPyConnection, job: Job) -> None:
    """Write the answer into a file, from another database: this one can reach none."""
    import duckdb

    writer = duckdb.connect(":memory:", config={"temp_directory": "", "threads": "1"})
    chosen = connection.sql(job["question"], params=job["values"])
    if job["form"].startswith("CSV"):
        chosen = chosen.project(", ".join(map(_inert, chosen.columns, chosen.types)))
    writer.register("chosen", chosen.to_arrow_reader())
    place = job["target"].replace("'", "''")
    writer.execute(f"COPY chosen TO '{place}' (FORMAT {job['form']})")


def _inert(name: str, kind: DuckDBPyType) -> str:
    """Return the SQL of a column in which no text is a formula of a spreadsheet, as `base.spreadsheets` writes it."""
    quoted = '"' + name.replace('"', '""') + '"'
    if kind.id != "varchar":
        return quoted
    formula = f"regexp_matches({quoted}, '^[=+\\-@\\t\\r]') AND TRY_CAST({quoted} AS DOUBLE) IS NULL"
    return f"CASE WHEN {formula} THEN chr(39) || {quoted} ELSE {quoted} END AS {quoted}"


def _answer(connection: DuckDBPyConnection, sql: str) -> None:
    """Write the answer to standard output."""
    import duckdb
    import pyarrow as pa

    statements = connection.extract_statements(sql)
    try:
        kinds = [statement.type for statement in statements]
    except ValueError:  # a kind that the Python package has no name for
        kinds = []
    if kinds != [duckdb.StatementType.SELECT]:
        raise _EndError(REFUSED, "only one SELECT is allowed; nothing in the database can be changed from here")
    relation = connection.sql(statements[0].query).limit(LIMITS.rows + 1)
    as_text = {place for place, kind in enumerate(relation.types) if not _is_value(kind)}
    table = _table(relation, as_text)
    unheld = {place for place, column in enumerate(table.columns) if not _is_held(column)}
    if unheld:
        table = _table(relation, as_text | unheld)
        for name, column in zip(relation.columns, table.columns, strict=True):
            if not _is_held(column):
                raise _EndError(REFUSED, f"the column {name!r} holds text that is not UTF-8")
    with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as stream:
        stream.write_table(table)


def _table(relation: DuckDBPyRelation, as_text: set[int]) -> pa.Table:
    """Read an answer, some columns of it as text."""
    names = relation.columns
    if as_text:
        parts = (f"CAST(#{at + 1} AS VARCHAR)" if at in as_text else f"#{at + 1}" for at in range(len(names)))
        relation = relation.project(", ".join(parts))
    table = relation.to_arrow_table().rename_columns(names)
    values = sum(_values(chunk) for column in table.columns for chunk in column.chunks)
    for number, most, unit in (
        (values, LIMITS.values, "values"),
        (table.nbytes >> 20, LIMITS.answer_bytes >> 20, "MB"),
    ):
        if number > most:
            raise _EndError(
                REFUSED, f"the answer has {number:,} {unit}, and may have {most:,}: select fewer rows or columns"
            )
    return table


def _values(array: pa.Array) -> int:
    """Count the values of an array, those in lists and structs too."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_struct(kind):
        return len(array) + sum(_values(array.field(place)) for place in range(kind.num_fields))
    if pa.types.is_map(kind):
        return len(array) + _values(array.keys) + _values(array.items)
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return len(array) + _values(array.values)
    return len(array)


def _is_value(kind: DuckDBPyType, deeper: int = _MOST_NESTED) -> bool:
    """Return whether Python has a type for the values of a type."""
    if kind.id in ("list", "array", "struct", "map"):
        within = [child for _, child in kind.children if not isinstance(child, (int, list))]
        return bool(within) and deeper > 0 and all(_is_value(child, deeper - 1) for child in within)
    return kind.id in _VALUES


def _is_held(column: pa.ChunkedArray) -> bool:
    """Return whether Python can hold the values of a column: not infinite dates, nor text that is not UTF-8."""
    import pyarrow as pa

    try:
        column.validate(full=True)
        if pa.types.is_temporal(column.type) or pa.types.is_nested(column.type):
            column.to_pylist()
    except (OverflowError, ValueError, KeyError):  # the last: a time zone that Python does not know
        return False
    return True


if __name__ == "__main__":
    main()
