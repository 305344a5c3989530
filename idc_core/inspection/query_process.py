"""The process that answers one question: run by `query.ask`, which ends it where it takes too long.

A program of its own that imports nothing of the engine, so that it starts at once. It reads the question from standard
input, as JSON of `Question`, and writes the answer to standard output as an Arrow stream, or why there is none to
standard error.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

UNANSWERED, UNOPENED = 3, 4
"""How the process ends where the question is at fault, and where the file is."""

WAIT_S = 15.0
"""Seconds to wait while another process writes into the file, or asks, for which it has less time."""

MEMORY = 1 << 30
"""Bytes that the process may take. The database's own limit, half of it, does not count what single values need."""

MOST_BYTES = 64 << 20
"""An answer may be so large."""

# The database is opened so that it cannot be written, cannot reach files or the network, cannot load extensions, cannot
# take the machine's memory or disk, and so that none of this can be changed from inside.
_CONFINED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "memory_limit": "512MB",
    "max_temp_directory_size": "0B",
    "threads": "1",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
}


class Question(TypedDict):
    """What is asked: one SELECT, of which database, and how many rows of the answer are wanted."""

    path: str
    sql: str
    rows: int


def connect(path: str, **settings: Any) -> DuckDBPyConnection:
    """Open a database; wait while another process writes into it."""
    import duckdb

    end = time.monotonic() + WAIT_S
    while True:
        try:
            return duckdb.connect(path, **settings)
        except duckdb.Error as error:
            busy = "lock" in str(error).lower() or "different configuration" in str(error).lower()
            if not busy or time.monotonic() > end:
                raise
            time.sleep(0.05)


def _confine() -> None:
    """Take away memory beyond the limit, where the system can."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def main() -> None:
    """Answer the question on standard input."""
    import duckdb
    import pyarrow as pa

    question: Question = json.load(sys.stdin)
    _confine()
    try:
        connection = connect(question["path"], read_only=True, config=_CONFINED)
    except duckdb.Error as error:
        _end(UNOPENED, str(error))
    try:
        answer = connection.sql(question["sql"]).limit(question["rows"]).to_arrow_table()
    except duckdb.Error as error:
        _end(UNANSWERED, str(error))
    except (MemoryError, pa.ArrowMemoryError):
        _end(UNANSWERED, f"it needs more than {MEMORY >> 20} MB of memory")
    if answer.nbytes > MOST_BYTES:
        _end(UNANSWERED, f"the answer has {answer.nbytes >> 20:,} MB, and may have {MOST_BYTES >> 20}")
    with pa.ipc.new_stream(sys.stdout.buffer, answer.schema) as stream:
        stream.write_table(answer)


def _end(status: int, why: str) -> None:
    sys.stderr.write(why)
    sys.exit(status)


if __name__ == "__main__":
    main()
