"""What an option takes: one kind for each sort of value, which reads the text and says what it expects instead.

A kind refuses before any work. What depends on a second option, such as a layer on its network, a command's `run`
checks before it loads data.
"""

from __future__ import annotations

import argparse
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from idc_core.base import files
from idc_core.base.own_code import is_url
from idc_core.base.parameters import Parameter, Value, shown
from idc_core.base.ranges import BITS, SIDE
from idc_core.base.registry import Registry
from idc_core.cli.library_names import in_library, library_names
from idc_core.cli.registries import KINDS, RULES, read_table
from idc_core.errors import IdcError, SettingError
from idc_core.opening.files import DATA, NETWORKS, OwnFile, as_file

LONGEST = 4_000
"""Characters that one value can have."""


class Parser(argparse.ArgumentParser):
    """A parser whose mistakes are one sentence, raised as `SettingError`."""

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong, and where the options are explained."""
        name, colon, rest = message.removeprefix("argument ").partition(": ")
        if colon and message.startswith("argument "):
            message = f"{name}{':' if rest[:1].isupper() else ''} {rest}"
        text = message if len(message) <= LONGEST else f"{message[:100]}..."
        raise SettingError(f"{text.rstrip('.')}; see {self.prog} --help.")


class Argument(ABC):
    """One sort of value, given to a parser as `type`."""

    def __call__(self, text: str) -> object:
        """Return the value that a text says; argparse puts the option's name before the message."""
        try:
            if len(text) > LONGEST or not text.isprintable():
                raise SettingError(f"must be at most {LONGEST:,} characters that can be printed, not {shown(text)}.")
            return self.read(text)
        except IdcError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    @abstractmethod
    def read(self, text: str) -> object:
        """Return the value that a text says, or raise `IdcError`: with a capital a sentence, else its end."""


@dataclass(frozen=True)
class Number(Argument):
    """A number in the range of a parameter."""

    parameter: Parameter

    def read(self, text: str) -> Value:
        """Return the number."""
        value = self.parameter.said(text)
        if value is None:
            raise SettingError(self.parameter.fault(text))
        return value


@dataclass(frozen=True)
class Numbers(Argument):
    """Different numbers with commas between them."""

    parameter: Parameter
    example: str

    def read(self, text: str) -> tuple[Value, ...]:
        """Return the numbers."""
        values = tuple(self.parameter.said(part) for part in text.split(","))
        if None in values or len(set(values)) < len(values):
            expected = f"different whole numbers from {self.parameter.low} to {self.parameter.high}"
            raise SettingError(
                f"must be {expected} with commas between them, such as {self.example}, not {shown(text)}"
            )
        return tuple(value for value in values if value is not None)


@dataclass(frozen=True)
class Name(Argument, Container[str]):
    """A name of a registry, by the word that `list` takes for it, or one of some words beside it.

    For a network or a data set a name of the library may be given (see `library_names`), or a path (see
    `idc_core.opening.files`); for a rule a table of rules (`idc_core.lrp.tables`).
    Given as `choices` too where the help lists the names: all are let through there, and only then looked up.
    """

    kind: str
    more: tuple[str, ...] = ()

    def __contains__(self, name: object) -> bool:
        """Whether a name is let through."""
        return True

    def __iter__(self) -> Iterator[str]:
        """Yield the names; most registries need torch, so this is for a help text or a mistake."""
        return iter((*KINDS[self.kind].entries, *self.more))

    def read(self, text: str) -> str | OwnFile:
        """Return the name, or the path in its place."""
        entries = KINDS[self.kind].entries
        if text in entries or text in self.more:
            return text
        if self.kind == RULES and ":" in text:
            return read_table(text)
        name, equals, file = text.partition("=")
        if self.kind == NETWORKS and equals and name in entries and (path := as_file(self.kind, file)):
            return replace(path, architecture=name)
        if own := in_library(self.kind, text, entries):
            return own
        if path := as_file(self.kind, text):
            return path
        _refuse_name(self.kind, text, entries)


def _is_there(path: Path | str) -> bool:
    """Whether a file or folder is there; not where its name is too long."""
    return os.path.exists(path)  # noqa: PTH110


def _refuse_name(kind: str, text: str, entries: Mapping[str, object]) -> NoReturn:
    if isinstance(entries, Registry):
        entries[text]
    names = dict.fromkeys((*entries, *library_names(kind)))
    raise SettingError(f"There is no {KINDS[kind].one} {shown(text)}; the {KINDS[kind].one}s are {', '.join(names)}")


@dataclass(frozen=True)
class Word(Argument):
    """One of a few words."""

    words: tuple[str, ...]
    kind: type[str | int] = str

    def read(self, text: str) -> str | int:
        """Return the word, or the number that it is."""
        if text not in self.words:
            raise SettingError(f"must be {' or '.join(self.words)}, not {shown(text)}")
        return self.kind(text)


@dataclass(frozen=True)
class Text(Argument):
    """Any text but none, such as the name of a class; `form` is what it must look like, and `example` shows it."""

    form: str = r".*\S.*"
    example: str = "a name"

    def read(self, text: str) -> str:
        """Return the text."""
        if not re.fullmatch(self.form, text):
            raise SettingError(f"must be {self.example}, not {shown(text)}")
        return text


DEVICE = Text(r"auto|cpu|mps|cuda(:\d{1,4})?", "auto, cpu, cuda, cuda:1 or mps")
"""Where networks run."""


@dataclass(frozen=True)
class Texts(Argument):
    """Different names with commas between them."""

    def read(self, text: str) -> tuple[str, ...]:
        """Return the names."""
        names = tuple(text.split(","))
        if not all(name.strip() for name in names) or len(set(names)) < len(names):
            raise SettingError(f"must be different names with commas between them, not {shown(text)}")
        return names


@dataclass(frozen=True)
class Decimals(Argument):
    """Numbers with commas between them, some of which may be equal."""

    parameter: Parameter

    def read(self, text: str) -> tuple[Value, ...]:
        """Return the numbers."""
        values = tuple(self.parameter.said(part) for part in text.split(","))
        if None in values:
            expected = f"numbers from {self.parameter.low:g} to {self.parameter.high:g} with commas between them"
            raise SettingError(f"must be {expected}, such as 0.5,0.25, not {shown(text)}")
        return tuple(value for value in values if value is not None)


@dataclass(frozen=True)
class Assignment(Argument):
    """A name with a number, such as ``limit=0.5``: (name, text of the number)."""

    expected: str
    number: Parameter

    def read(self, text: str) -> tuple[str, str]:
        """Return the name, and the text of its number."""
        name, _, value = text.rpartition("=")
        if not name or self.number.said(value) is None:
            raise SettingError(f"Expected {self.expected}, not {shown(text)}")
        return name, value


@dataclass(frozen=True)
class FileToRead(Argument):
    """A regular file that is there."""

    def read(self, text: str) -> Path:
        """Return its path."""
        if fault := files.unreadable(Path(text)):
            raise SettingError(f"names {shown(text)}, which {fault}: name another file")
        return Path(text)


@dataclass(frozen=True)
class FileToOpen(Argument):
    """A setup file, or a network or data of the person's own: a file or folder that is there, or the URL of data."""

    def read(self, text: str) -> Path | OwnFile:
        """Return a setup file's path, or whose path it is."""
        from idc_core.models.formats import NETWORK_FORMATS, REFUSED

        if is_url(text):
            return OwnFile(DATA, text)
        path = Path(text).expanduser().absolute()
        if path.suffix == ".py" or not _is_there(path):
            return FileToRead().read(text)
        ending = path.suffix.lower()
        network = (path / "config.json").exists() if path.is_dir() else ending in {*NETWORK_FORMATS, *REFUSED}
        return OwnFile(NETWORKS if network else DATA, str(path))


@dataclass(frozen=True)
class FileOrFolder(Argument):
    """A file or a folder that is there."""

    def read(self, text: str) -> Path:
        """Return its path."""
        return Path(text) if _is_there(Path(text)) and Path(text).is_dir() else FileToRead().read(text)


@dataclass(frozen=True)
class FolderToRead(Argument):
    """A folder that is there."""

    def read(self, text: str) -> Path:
        """Return its path."""
        try:
            is_there = bool(text) and Path(text).is_dir()
        except OSError:  # its name is too long
            is_there = False
        if not is_there:
            raise SettingError(f"names {shown(text)}, which is no folder: name another one")
        return Path(text).absolute()


@dataclass(frozen=True)
class Size(Argument):
    """Rows and columns, such as ``32x32``."""

    def read(self, text: str) -> tuple[int, int]:
        """Return both."""
        sides = [SIDE.said(part) for part in text.split("x")]
        if len(sides) != 2 or None in sides:
            expected = f"rows and columns from {SIDE.low} to {SIDE.high:,}, such as 32x32"
            raise SettingError(f"must be {expected}, not {shown(text)}")
        return int(sides[0] or 0), int(sides[1] or 0)


@dataclass(frozen=True)
class FileToWrite(Argument):
    """A file that can be written, in a folder that is there."""

    def read(self, text: str) -> Path:
        """Return its path."""
        if fault := files.unwritable(Path(text)) if text else "is empty":
            raise SettingError(f"names {shown(text)}, which {fault}: make the folder, or name another file")
        return Path(text)


@dataclass(frozen=True)
class FolderToWrite(Argument):
    """A folder that is there, or can be made, and can be written into."""

    def read(self, text: str) -> Path:
        """Return its path."""
        if fault := files.unmakeable(Path(text)) if text else "is empty":
            raise SettingError(f"names {shown(text)}, which {fault}: name another folder")
        return Path(text)


@dataclass(frozen=True)
class Network(Argument):
    """A network: its name or path, ``NAME=FILE`` for other weights, or ``NAME:BITS`` for a coarser copy."""

    def read(self, text: str) -> str | OwnFile:
        """Return the text, or the path in its place."""
        name, equals, file = text.partition("=")
        name, colon, bits = (name, "", "") if equals else text.rpartition(":") if ":" in text else (text, "", "")
        if file.endswith(".safetensors") and not _is_there(file.removesuffix("safetensors") + "json"):
            return Name(NETWORKS).read(text)  # weights without a card, which may be a person's own
        network = Name(NETWORKS).read(name)
        if equals:
            FileToRead().read(file)
        if colon and BITS.said(bits) is None:
            raise SettingError(
                f"Expected NAME:BITS with a whole number of bits from {BITS.low} to {BITS.high}, such as {name}:4, "
                f"not {shown(text)}"
            )
        return replace(network, rest=f"{colon}{bits}") if isinstance(network, OwnFile) else network + text[len(name) :]


class Distinct(argparse.Action):
    """Keep several values as a list, each of them once."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        """Keep the values, or refuse one that is there twice; an assignment is known by its name."""
        listed = list(values or ())
        keys = [item[0] if isinstance(item, tuple) else item for item in listed]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise argparse.ArgumentError(self, f"names {shown(twice)} twice: name each once")
        setattr(namespace, self.dest, listed)
