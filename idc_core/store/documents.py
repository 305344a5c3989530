"""Folders of small documents, one file each: written whole or not at all, listed, found and deleted by whoever may.

A file is read once as long as it stays as it is. One that is damaged hides no other: it is left out, with the reason.
Whose a document is says a word that tells nothing else of a person, such as a digest; without one it is everybody's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from idc_core.base.files import cache_folder, keeping, write_whole
from idc_core.errors import DataError, SettingError
from idc_core.guarded import open_sealed_text, read_content, read_json


class _Owned(Protocol):
    """What is somebody's, who may share it with others."""

    @property
    def owner(self) -> str: ...

    @property
    def shared(self) -> bool: ...


_D = TypeVar("_D", bound=_Owned)
_T = TypeVar("_T")


def may_see(owner: str, asker: str | None, *, shared: bool = False) -> bool:
    """Whether somebody sees what is an owner's; an asker of None is whoever runs the program, who sees everything."""
    return asker is None or shared or owner in ("", asker)


def may_change(owner: str, asker: str | None, *, shared: bool = False) -> bool:
    """Whether somebody may change it; an asker without a name is at the server's computer, and may what is shared."""
    return asker in (None, owner) or (shared and asker == "")


def read_sealed(path: Path, where: str, kind: type[_T]) -> _T:
    """Read JSON that carries a checksum, as `read_json` does; `where` begins the sentence that says it is damaged."""
    return read_json(open_sealed_text(read_content(path, where), where), where, kind)


@dataclass(frozen=True, eq=False)
class Documents(Generic[_D]):
    """The documents of one folder, each by its id, the name of its file; other files there are left alone.

    An `asker` is who wants to see or change them; None may everything.

    Attributes
    ----------
    place : str
        The folder, below the one of all that is kept.
    ids : str
        What an id looks like, as a regular expression: one from outside must not lead elsewhere.
    read : callable
        Reads a file; raises `DataError` where it is damaged.
    unknown : str
        The sentence that says that there is none, with "{id}" for its id.
    what : str
        What is kept there, for messages: the beginning of a sentence.
    remedy : str
        The sentence behind the one that says why a document cannot be read.
    order : callable
        What they are listed by; by default their ids.
    ending : str
    """

    place: str
    ids: str
    read: Callable[[Path], _D]
    unknown: str
    what: str = ""
    remedy: str = ""
    order: Callable[[_D], str] = lambda document: ""
    ending: str = ".json"

    @property
    def folder(self) -> Path:
        """The folder, which need not exist."""
        return cache_folder() / self.place

    def is_id(self, text: str) -> bool:
        """Whether a text is the id of a document, which need not be there any more."""
        return re.fullmatch(self.ids, text) is not None

    def path(self, id: str) -> Path:
        """Return the file of a document, which need not be there; SettingError where it is no id."""
        if not self.is_id(id):
            raise self._missing(id)
        return self.folder / f"{id}{self.ending}"

    def write(self, id: str, content: bytes) -> None:
        """Write a document, in place of the one of its id; DataError where it cannot be written."""
        path = self.path(id)
        with keeping(path.parent, self.what):
            write_whole(path, content)

    def state(self) -> tuple[tuple[Path, int, int, int], ...]:
        """Return the files by id, each with its inode, time and size: equal as long as none has changed."""
        files = []
        for path in sorted(self.folder.glob(f"*{self.ending}"), key=lambda path: path.stem):
            if self.is_id(path.stem):
                with suppress(OSError):  # it was deleted meanwhile
                    about = path.stat() if path.exists() else path.lstat()
                    files.append((path, about.st_ino, about.st_mtime_ns, about.st_size))
        return tuple(files)

    def listed(self, asker: str | None = None) -> dict[str, _D]:
        """Return by id, in their order, the documents that can be read and that somebody may see."""
        whole = [(id, document) for id, document in self._all().items() if not isinstance(document, str)]
        whole.sort(key=lambda item: self.order(item[1]))
        return {id: document for id, document in whole if may_see(document.owner, asker, shared=document.shared)}

    def damaged(self) -> dict[str, str]:
        """Return by id why documents cannot be read: those that `listed` leaves out."""
        return {id: reason for id, reason in self._all().items() if isinstance(reason, str)}

    def find(self, id: str, asker: str | None = None) -> _D:
        """Return a document.

        Raises
        ------
        SettingError
            If there is none of that id, or it is somebody else's.
        DataError
            If it is damaged.
        """
        document: _D | str | None = next(
            (_read(self, path, *changed) for path, *changed in self.state() if path.stem == id), None
        )
        if isinstance(document, str):
            raise DataError(document)
        if document is None or not may_see(document.owner, asker, shared=document.shared):
            raise self._missing(id)
        return document

    def own(self, id: str, asker: str | None) -> _D:
        """Return a document that somebody may change; raises as `find`, also where they only see it."""
        document = self.find(id, asker)
        if not may_change(document.owner, asker, shared=document.shared):
            label = getattr(document, "label", "This")
            raise SettingError(f"{label} is somebody else's, who shares it: only they can change it.")
        return document

    def delete(self, id: str, asker: str | None = None, *, missing_ok: bool = False) -> None:
        """Delete a document; a damaged one tells not whose it is, and goes for None alone.

        Raises
        ------
        SettingError
            If there is none of that id, unless that is no mistake, or it is not the asker's to change.
        DataError
            If it cannot be deleted.
        """
        path = self.path(id)
        if asker is not None:
            self.own(id, asker)
        try:
            path.unlink(missing_ok=missing_ok)
        except FileNotFoundError as error:
            raise self._missing(id) from error
        except OSError as error:
            raise DataError(f"{path} cannot be deleted: {error.strerror}.") from error

    def _all(self) -> dict[str, _D | str]:
        """Return by id every document, or why it cannot be read."""
        return {path.stem: _read(self, path, *changed) for path, *changed in self.state()}

    def _missing(self, id: str) -> SettingError:
        return SettingError(self.unknown.format(id=id))


@lru_cache(maxsize=1 << 14)
def _read(documents: Documents[_D], path: Path, *changed: int) -> _D | str:
    """Read a document, or return why that fails; `changed` tells a new file of the same name."""
    try:
        return documents.read(path)
    except DataError as error:
        return f"{error} {documents.remedy}".rstrip()
