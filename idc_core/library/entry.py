"""One entry of the library: where it came from, how it is read, and what was found."""

from __future__ import annotations

import hashlib
import os
import stat
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from idc_core.datasets.preparation import Preparation
from idc_core.errors import DataError
from idc_core.library.contents import FOLDER, contents_folder
from idc_core.models.scaling import Scaling

Kind = Literal["network", "data"]

_MOST_NAME = 120
"""Characters of a name as it is shown."""

_MOST_FILES = 200_000
"""Files of a folder that are looked at."""

_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@dataclass(frozen=True)
class Stamp:
    """What tells that a file or folder has changed: its bytes, and a digest of names, sizes and times."""

    size: int
    digest: str

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """Look at a file or folder.

        Raises
        ------
        DataError
            If it is gone, cannot be read, is a pipe or a device, or holds too many files.
        """
        try:
            about = path.stat()
            if stat.S_ISREG(about.st_mode):
                files = [("", about.st_size, about.st_mtime_ns)]
            elif stat.S_ISDIR(about.st_mode):
                files = sorted(_files(path))
            else:
                raise DataError(f"{path} is a pipe or a device; expected a file or a folder.")
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}.") from error
        except ValueError as error:
            raise DataError(f"{str(path)!r} is no name of a file.") from error
        digest = hashlib.blake2b(repr(files).encode(errors="surrogateescape"), digest_size=8).hexdigest()
        return cls(sum(size for _, size, _ in files), digest)


def _files(folder: Path) -> list[tuple[str, int, int]]:
    """Return names, sizes and times of the files below a folder."""
    files = []
    for parent, _, names in os.walk(folder):
        for name in names:
            file = Path(parent) / name
            about = file.lstat()
            files.append((str(file.relative_to(folder)), about.st_size, about.st_mtime_ns))
            if len(files) > _MOST_FILES:
                raise DataError(f"{folder} holds more than {_MOST_FILES:,} files; name a smaller folder.")
    return files


@dataclass(frozen=True)
class NetworkFacts:
    """What a network's file told; layers are known once its data are."""

    format: str
    parameters: int
    fingerprint: str
    takes: str = ""
    layers: tuple[str, ...] = ()
    default_layer: str = ""


@dataclass(frozen=True)
class DataFacts:
    """What reading the data told; `notes` say how files became inputs, each in a few words."""

    format: str
    fingerprint: str
    shape: tuple[int, ...]
    task: Literal["classification", "regression"]
    class_names: tuple[str, ...]
    train: int
    test: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class NetworkSettings:
    """How a network is used.

    Its data, the layer that is opened first ("": the usual one), its scaling as JSON, which scores are explained, by a
    name of `idc_core.lrp.explained` ("": those it returns), the output that they are read from ("": the likeliest),
    what its outputs are called, in their order (none: as its file says), inputs that are held at a number, by name, and
    the layout of scores with three axes ("": told by a batch of two).
    """

    data: str = ""
    layer: str = ""
    scaling: dict[str, object] | None = None
    explain: str = ""
    output: str = ""
    output_names: tuple[str, ...] = ()
    held: dict[str, float] = field(default_factory=dict)
    output_layout: str = ""


@dataclass(frozen=True)
class DataSettings:
    """How data are read: what was given of a `Preparation`, as JSON."""

    preparation: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """One network or data set.

    Attributes
    ----------
    id : str
        16 hexadecimal digits, the name of its file.
    kind : {"network", "data"}
    name : str
        Its name in the registries and in addresses.
    label : str
        Its name for people.
    source : str
        The path that it is read from, or the name that an uploaded file had.
    content : str
        Name of the uploaded content; empty where the entry refers to a path.
    stamp : Stamp
        Of the file when it was added, or read last.
    owner : str
        Whose it is: a digest of a person or of a browser's key; empty: everybody's.
    added : str
        When, in UTC.
    network, data : facts
        What was found when it was read; None before.
    network_settings, data_settings : settings
    check : dict or None
        What `idc_core.analysis.network_check` found, as plain values.
    shared : bool
        Whether others see it too.
    """

    id: str
    kind: Kind
    name: str
    label: str
    source: str
    content: str
    stamp: Stamp
    owner: str
    added: str
    network: NetworkFacts | None = None
    data: DataFacts | None = None
    network_settings: NetworkSettings = field(default_factory=NetworkSettings)
    data_settings: DataSettings = field(default_factory=DataSettings)
    check: dict[str, Any] | None = None
    shared: bool = False

    @property
    def path(self) -> Path:
        """Where it is read from."""
        if not self.content:
            return Path(self.source)
        place = contents_folder() / self.content
        # A file lies alone in a folder: no reader finds others beside it.
        return place if self.content.endswith(FOLDER) else place / self.content

    @property
    def scaling(self) -> Scaling | None:
        """What is done to inputs in front of the network; None for nothing."""
        plain = self.network_settings.scaling
        return None if plain is None else Scaling.from_json(dict(plain), f"The scaling of {self.label}")

    @property
    def preparation(self) -> Preparation:
        """How the files become inputs."""
        return Preparation.from_json(dict(self.data_settings.preparation), f"The preparation of {self.label}")

    @property
    def facts(self) -> NetworkFacts | DataFacts | None:
        """What was found when it was read."""
        return self.network if self.kind == "network" else self.data


def plain_name(text: str) -> str:
    """Return a name in one line, without characters that are not seen or turn the direction of reading, cut to 120."""
    seen = "".join(" " if unicodedata.category(character) in _INVISIBLE else character for character in text)
    return " ".join(seen.split())[:_MOST_NAME]
