"""What a long pass over inputs has found so far: who asks for the same result again goes on behind it.

Each piece is a file named after the digest of its result, as `idc_core.store.results` has it, and after the first input
that it holds. So the pieces of a result are found again by the same settings and the same version alone.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from idc_core.base.config import config
from idc_core.base.files import cache_folder, keeping, make_room
from idc_core.store.result_file import ENDING, Facts, find, write
from idc_core.store.versions import version_of


@dataclass(frozen=True)
class Unfinished:
    """The pieces of one pass of a result.

    Attributes
    ----------
    result : Path
        The file that will hold the result, as `idc_core.store.place` says.
    part : str
        Which of several passes it is; one word.
    """

    result: Path
    part: str

    def find(self, start: int) -> Any:
        """Return the piece that begins with an input, or `MISSING`; a damaged one is missing, and the log says so."""
        return find(self._path(start))

    def keep(self, start: int, piece: object) -> None:
        """Keep a piece; DataError where it cannot be written.

        Above the limit of kept results, the pieces of other results go that were used longest ago.
        """
        path, made = self._path(start), datetime.now(UTC).isoformat(timespec="seconds")
        with keeping(path.parent, "What a pass has found so far"):
            write(path, piece, Facts("piece", version_of("piece"), made, 0.0, {}, {}))
            own = {file.name for file in path.parent.glob(f"{self.result.stem}-*{ENDING}")}
            make_room(path.parent, f"*{ENDING}", config().store, own)

    def _path(self, start: int) -> Path:
        return _folder() / f"{self.result.stem}-{self.part}-{start}{ENDING}"


def forget_pieces(result: Path) -> None:
    """Remove the pieces of a result."""
    for path in _folder().glob(f"{result.stem}-*{ENDING}"):
        with suppress(OSError):  # it goes when room is made
            path.unlink()


def forget_finished(results: Path) -> None:
    """Remove the pieces of all results that lie in a folder: whoever kept them was killed just then."""
    for path in _folder().glob(f"*{ENDING}"):
        result = results / f"{path.name.partition('-')[0]}{ENDING}"
        if result.exists():
            forget_pieces(result)


def _folder() -> Path:
    return cache_folder() / "unfinished"
