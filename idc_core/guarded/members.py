"""Files of a folder that somebody sent: each lies inside it, whatever its name or a link says."""

from __future__ import annotations

from pathlib import Path

from idc_core.errors import DataError

_MOST_SAID = 60


def member(folder: Path, name: str) -> Path | None:
    """Return the path of a file of a folder, or None where there is none.

    Raises
    ------
    DataError
        If the name or a link leads out of the folder. The links that a download of the Hugging Face Hub is made of
        stay inside: they lead to the files beside it.
    """
    path = folder / name
    if not name or Path(name).name != name or name == ".." or "\0" in name or "\\" in name:
        raise DataError(f"{folder} names the file {name[:_MOST_SAID]!r}; expected a file of the folder itself.")
    try:
        there, resolved, root = path.exists() or path.is_symlink(), path.resolve(), folder.resolve()
    except (OSError, RuntimeError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    if not there:
        return None
    if not any(resolved.is_relative_to(allowed) for allowed in (root, *_downloaded(root))):
        raise DataError(f"{path} is a link that leads out of its folder; copy the file itself into it.")
    return path


def _downloaded(root: Path) -> tuple[Path, ...]:
    """Return where the files of a folder lie that the Hub's client has downloaded: snapshots hold links to blobs."""
    return (root.parent.parent / "blobs",) if root.parent.name == "snapshots" else ()
