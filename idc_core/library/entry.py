"""One entry of the library: where it came from, how it is read, and what was found."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from idc_core.library.places import content_path

Kind = Literal["network", "data"]

_MOST_NAME = 120
"""Characters of a name as it is shown."""

_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@dataclass(frozen=True)
class Stamp:
    """What tells that a file or folder has changed: its bytes, and a digest of names, sizes and times."""

    size: int
    digest: str


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

    Its data, the layer that is opened first ("": the usual one), its scaling as JSON, and which scores are explained,
    by a name of `idc_core.explained` ("": those it returns).
    """

    data: str = ""
    layer: str = ""
    scaling: dict[str, Any] | None = None
    explain: str = ""


@dataclass(frozen=True)
class DataSettings:
    """How data are read: what was given of a `Preparation`, as JSON."""

    preparation: dict[str, Any] = field(default_factory=dict)


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
        return content_path(self.content) if self.content else Path(self.source)

    @property
    def facts(self) -> NetworkFacts | DataFacts | None:
        """What was found when it was read."""
        return self.network if self.kind == "network" else self.data


def plain_name(text: str) -> str:
    """Return a name in one line, without characters that are not seen or turn the direction of reading, cut to 120."""
    seen = "".join(" " if unicodedata.category(one) in _INVISIBLE else one for one in text)
    return " ".join(seen.split())[:_MOST_NAME]


def slug(label: str) -> str:
    """Return what a registry calls something of this label: small letters, digits and hyphens."""
    plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-") or "unnamed"
