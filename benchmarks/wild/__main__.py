"""Try all networks that have no result yet: `python -m benchmarks.wild [SOURCE ...] [--again] [--only TEXT]`.

docs/WILD.md is written from all results after each. `--again` tries also what has a result; `--only` networks whose
name holds the text.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.wild.report import RESULTS, read_rows, write_document
from benchmarks.wild.subjects import SOURCES, Subject, subjects
from benchmarks.wild.trial import run

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["benchmarks.wild.trial"])
_SECONDS = 900
_BYTES = 12 << 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="*", help=f"of {', '.join(SOURCES)} (all)")
    parser.add_argument("--again", action="store_true", help="try also what has a result")
    parser.add_argument("--only", default="", help="only networks whose name holds this")
    arguments = parser.parse_args()
    for source in arguments.sources or list(SOURCES):
        rows = read_rows(source)
        for subject in subjects([source]):
            if arguments.only in subject.name and (arguments.again or subject.name not in rows):
                rows[subject.name] = _tried(subject)
                _keep(source, rows)
                write_document()
                print(_said(subject, rows[subject.name]), flush=True)


def _tried(subject: Subject) -> dict[str, Any]:
    """Try one network in a process of its own, within time and memory."""
    told, telling = _PROCESSES.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as home:
        name = f"{subject.source}/{subject.name}"
        process = _PROCESSES.Process(target=run, args=(name, _BYTES, home, telling))
        process.start()
        telling.close()
        there = told.poll(_SECONDS)
        try:
            found = told.recv() if there else f"it took more than {_SECONDS} seconds"
        except EOFError:
            process.join()
            found = f"its process ended with status {process.exitcode}"
        process.kill()
        process.join()
    return _failed(subject, found) if isinstance(found, str) else found


def _failed(subject: Subject, why: str) -> dict[str, Any]:
    return {"name": subject.name, "package": subject.package, "version": subject.version, "opens": False, "failed": why}


def _keep(source: str, rows: dict[str, dict[str, Any]]) -> None:
    """Write all rows of a source, one per line, sorted by name, without the folders of this machine."""
    RESULTS.mkdir(exist_ok=True)
    text = "".join(json.dumps(rows[name]) + "\n" for name in sorted(rows))
    text = re.sub(r"(/[\w.+@-]+)+/([\w.+@-]+)", r"\2", text)
    new = RESULTS / f"{source}.new"
    new.write_text(text)
    new.replace(Path(RESULTS / f"{source}.jsonl"))


def _said(subject: Subject, row: dict[str, Any]) -> str:
    what = "grid" if "late" in row and "middle" in row else row.get("refused") or row.get("failed") or "no grid"
    raw = " RAW" if "raw" in row else ""
    return f"{subject.source}/{subject.name}:{raw} error {row.get('error')}, relevance {row.get('relevance')}: {what}"


if __name__ == "__main__":
    main()
