"""What is tried: a network from elsewhere, inputs that suit it, and what its own runtime computes of them."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Runtime = Callable[[NDArray[np.generic]], dict[str, NDArray[np.generic]]]
"""From a batch of inputs to the outputs by name."""


@dataclass(frozen=True)
class Case:
    """A network made ready for a trial.

    Attributes
    ----------
    network : str
        A path, or with `setup` the name that the setup file gives it.
    inputs : array, (n, ...)
        Two thirds are training inputs, the others tests.
    runtime : callable
        What the network's own runtime returns, by name of output.
    options : tuple of str
        Of the command line, such as ("--explain", "mean-pixels"); they are part of the row.
    setup : Path, optional
        A setup file that enters network and data; without one the inputs are written to a file.
    regression : bool
        Whether outputs are numbers, not scores of classes.
    """

    network: str
    inputs: NDArray[np.generic]
    runtime: Runtime
    options: tuple[str, ...] = ()
    setup: Path | None = None
    regression: bool = False


@dataclass(frozen=True)
class Subject:
    """A network by name: where it comes from, and a function that makes it ready in an empty folder."""

    source: str
    name: str
    package: str  # of which the version is told
    case: Callable[[Path], Case] = field(repr=False)
    by_library: bool = False  # tried by functions of the library, where the commands would take hours

    @property
    def version(self) -> str:
        """The version of its package; "" where that is not installed."""
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return ""


SOURCES = {
    "pypi": "ONNX files that ship in packages of PyPI",
    "sklearn": "scikit-learn, exported by skl2onnx",
    "keras": "Keras, exported as ONNX",
    "packages": "Tables, sound, graphs, series, videos, detection: architectures of packages, as torch modules",
    "timm": "timm, as torch modules, by the library in place of the commands",
    "huggingface": "Hugging Face folders, those of pictures by the library",
}
"""Sources in the order of the document; each is the module `from_NAME` beside this one, with a function `subjects`."""


def subjects(sources: list[str]) -> Iterator[Subject]:
    """Return the networks of some sources; those whose module is not there have none."""
    for source in sources:
        if (Path(__file__).parent / f"from_{source}.py").exists():
            yield from importlib.import_module(f"benchmarks.wild.from_{source}").subjects()
