"""Have the database of inspections opened by a process of its own, and say why where that fails."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from idc_core.errors import DataError, IdcError
from idc_core.inspection import database_process
from idc_core.inspection.database_process import OUTDATED, REFUSED, UNEXPECTED, UNOPENED, Job, sweep
from idc_core.inspection.limits import Limits


class OutdatedError(DataError):
    """The database lacks columns that this version needs."""


def is_there(path: Path) -> bool:
    """Return whether there is a database.

    Raises
    ------
    DataError
        If something else is in its place.
    """
    if not path.is_symlink() and not path.exists():
        return False
    if not path.is_file():
        raise _unexpected(path, "is not a file")
    return True


def _unexpected(path: Path | str, what: str) -> DataError:
    return DataError(
        f"{path} {what}; the DuckDB database of inspections was expected there: move it away, or name another folder "
        "by the environment variable IDC_HOME."
    )


def run(job: Job, failed: Callable[[str], IdcError], *, seconds: float, limits: Limits, tables: bytes = b"") -> bytes:
    """Have a job done: return the answer, an Arrow stream.

    Parameters
    ----------
    failed
        Makes the error out of the reason, where the job cannot be done.
    tables
        Arrow streams for the job's statements.

    Raises
    ------
    DataError
        If the database cannot be opened; `OutdatedError` if it lacks columns.
    """
    path = job["path"]
    given = json.dumps({**job, "seconds": seconds, "limits": asdict(limits)}).encode() + b"\n" + tables
    command = [sys.executable, "-I", database_process.__file__]
    try:
        done = subprocess.run(command, input=given, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        sweep(path)
        raise failed(f"it took longer than {seconds:g} s and was stopped") from error
    except OSError as error:
        raise DataError(f"The database of inspections {path} cannot be opened ({error}).") from error
    if done.returncode == 0:
        return done.stdout
    why = done.stderr.decode(errors="replace").strip()
    if done.returncode == OUTDATED:
        raise OutdatedError(f"The database of inspections {path} is of another version ({why}).")
    if done.returncode == UNEXPECTED:
        raise _unexpected(path, why)
    if done.returncode == UNOPENED:
        raise DataError(f"The database of inspections {path} cannot be opened ({why}).")
    sweep(path)
    if done.returncode != REFUSED:
        last = why.splitlines()[-1][: limits.message] if why else f"status {done.returncode}"
        why = f"its process ended early ({last}): it needs too much memory, or the file is damaged"
    raise failed(why)
