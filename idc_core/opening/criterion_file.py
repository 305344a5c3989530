"""A coverage criterion of a person's own, from a Python file that registers it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from idc_core.coverage import CRITERIA
from idc_core.errors import SetupError
from idc_core.opening.setup_files import run_file


def open_criterion(path: Path) -> tuple[str, str]:
    """Run a file that registers one criterion, and return its name and a digest of the file.

    Raises
    ------
    SetupError
        If it cannot be read or run, registers none or several, or takes a name that is there already: file, line and
        the mistake. The registry is as before then.
    """
    before = dict(CRITERIA)
    try:
        run_file(path.absolute())
        names = [name for name in CRITERIA if name not in before]
        if len(names) != 1:
            raise SetupError(
                f"{path} registers {len(names)} criteria; expected one: decorate a class with "
                "idc_core.coverage.registry.criterion."
            )
    except BaseException:
        for name in set(CRITERIA) - set(before):
            del CRITERIA[name]
        raise
    return names[0], hashlib.sha256(path.read_bytes()).hexdigest()[:16]
