"""Run the benchmarks: all of them into RESULTS.md, or those named on the command line to the screen only."""

import importlib
import os
import pkgutil
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import torch

import benchmarks
from benchmarks.measure import table

RESULTS = Path(__file__).with_name("RESULTS.md")


def main(wanted: list[str]) -> None:
    names = [found.name for found in pkgutil.iter_modules(benchmarks.__path__) if found.name.startswith("bench_")]
    unknown = set(wanted) - set(names)
    if unknown:
        sys.exit(f"There is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(names)}.")
    parts = [f"# Speed\n\n{machine()}"]
    print(parts[0], flush=True)
    for name in wanted or names:
        module = importlib.import_module(f"benchmarks.{name}")
        heading = (module.__doc__ or name).splitlines()[0].rstrip(".")
        parts.append(f"## {heading}\n\n{table(module.run())}")
        print(f"\n{parts[-1]}", flush=True)
    if not wanted:
        RESULTS.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def machine() -> str:
    """Describe what the figures were measured on."""
    accelerator = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "numpy", "scikit-learn", "captum"))
    load = f" The load average at the start was {os.getloadavg()[0]:.1f}." if hasattr(os, "getloadavg") else ""
    return (
        f"Measured by `make bench` on {processor()}, {os.cpu_count()} cores{accelerator}, {platform.system()}, "
        f"Python {platform.python_version()}, {packages}; {torch.get_num_threads()} torch threads, "
        f"OMP_WAIT_POLICY={os.environ['OMP_WAIT_POLICY']}; numpy on one thread but for matrix products.{load}\n\n"
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
