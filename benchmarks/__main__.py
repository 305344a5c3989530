"""Run the benchmarks: all of them into RESULTS.md, or those named on the command line to the screen only.

Ratios are compared with those of the last kept run (`last.json`), which a whole run replaces. What cannot be measured
has a row that says why, and the others go on. With `--quick` everything is tried once, on little, and nothing kept.
"""

import argparse
import importlib
import os
import pkgutil
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path

import torch

import benchmarks
from benchmarks import results
from benchmarks.measure import QUICK, Row, measured, quick, table

RESULTS = Path(__file__).with_name("RESULTS.md")


def main(arguments: list[str]) -> None:
    names = [found.name for found in pkgutil.iter_modules(benchmarks.__path__) if found.name.startswith("bench_")]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("wanted", nargs="*", metavar="NAME", help=f"one of {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="try everything once, on little, and keep nothing")
    given = parser.parse_args(arguments)
    wanted = given.wanted
    unknown = set(wanted) - set(names)
    if unknown:
        sys.exit(f"There is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(names)}.")
    if given.quick:
        os.environ[QUICK] = "1"
    about, began = machine(), time.monotonic()
    print(about, flush=True)
    sections: dict[str, list[Row]] = {}
    notes: dict[str, str] = {}
    modules = [importlib.import_module(f"benchmarks.{name}") for name in wanted or names]
    for module in modules:
        heading = module.__doc__.splitlines()[0].rstrip(".")
        sections[heading] = [row for label, part in module.PARTS.items() for row in measured(label, part)]
        if note := getattr(module, "NOTE", ""):
            notes[heading] = note
        print(f"\n## {heading}\n\n{table(sections[heading]) if sections[heading] else notes[heading]}", flush=True)
    failed = sum(bool(row.failed) for rows in sections.values() for row in rows)
    if quick():
        sys.exit(f"{failed} parts failed." if failed else None)
    for sentence in results.worse(results.ratios(sections), results.last()):
        print(f"worse: {sentence}", flush=True)
    if not wanted:
        about += f" The whole run took {(time.monotonic() - began) / 60:.0f} minutes."
        RESULTS.write_text(results.document(about, sections, notes), encoding="utf-8")
        results.keep(sections)


def machine() -> str:
    """Describe what the figures were measured on."""
    accelerator = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "numpy", "scikit-learn", "captum"))
    load = f" The load average at the start was {os.getloadavg()[0]:.1f}." if hasattr(os, "getloadavg") else ""
    return (
        f"Measured by `make bench` on {processor()}, {os.cpu_count()} cores{accelerator}, {platform.system()}, "
        f"Python {platform.python_version()}, {packages}; {torch.get_num_threads()} torch threads, "
        f"OpenMP as torch finds it; numpy on one thread but for matrix products.{load}\n\n"
        "Contenders of one row ran in turns in one process; times are medians of at least five runs unless a row "
        "says otherwise."
    )


def processor() -> str:
    """Name the processor; Linux tells it only in a file."""
    listing = Path("/proc/cpuinfo")
    if listing.is_file():
        for line in listing.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    main(sys.argv[1:])
