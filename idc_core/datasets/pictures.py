"""Pictures in class folders, in a folder or a zip file: decoded as they are needed, and kept as bytes."""

from __future__ import annotations

import hashlib
import os
import shlex
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from idc_core.base.files import cache_folder
from idc_core.base.parameters import shown
from idc_core.base.progress import Progress, report
from idc_core.datasets.archived_pictures import MAX_EXPANSION
from idc_core.datasets.class_folders import class_folders
from idc_core.datasets.dataset import Items
from idc_core.datasets.formats import ASIDE, data_format, ending_of
from idc_core.datasets.other_files import from_here, line_that_converts
from idc_core.datasets.picture_processor import PictureProcessor
from idc_core.datasets.preparation import Preparation, said_of_pictures
from idc_core.datasets.pretrained import contents_digest
from idc_core.datasets.row_cache import Put, RowCache, digest
from idc_core.datasets.streamed import IN_MEMORY, StreamedInputs
from idc_core.datasets.text_folders import read_texts, texts_among
from idc_core.errors import DataError
from idc_core.guarded import Archive, Folder, PictureHeader, open_archive, picture_header, read_photo
from idc_core.guarded.photos import ENDINGS
from idc_core.store.cache import Record, stored


class _PictureFiles:
    """The pictures of a folder or a zip file.

    Attributes
    ----------
    where : str
        The path, for messages.
    names : tuple of str
        Pictures by their endings, with "/" between folders, sorted.
    notes : tuple of str
        What is left out, in a few words.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.where = path, str(path)
        self._folder = Folder(path, self.where) if path.is_dir() else None
        if self._folder is not None:
            names, hidden = self._folder.names, self._folder.hidden
            stamps: object = [(name, *self._folder.stamp(name)) for name in names if is_picture(name)]
        else:
            with open_archive(path, self.where, expansion=MAX_EXPANSION) as archive:
                seen = [name for name in archive.names if not _is_hidden(name)]
                names, hidden = tuple(seen), len(archive.names) - len(seen)
            stat = path.stat()
            stamps = [stat.st_size, stat.st_mtime_ns]
        self.names = tuple(name for name in names if is_picture(name))
        self.others = tuple(name for name in names if not is_picture(name))
        self.notes = _left_out(self.others, hidden)
        self.stamp = hashlib.blake2b(repr((str(path.resolve()), stamps)).encode("utf-8", "replace")).hexdigest()

    @contextmanager
    def reading(self) -> Iterator[Callable[[str], bytes]]:
        """Give a function from a name to the content of its file, which several threads may call."""
        if self._folder is not None:
            yield self._folder.read
            return
        lock = threading.Lock()
        with open_archive(self.path, self.where, expansion=MAX_EXPANSION) as archive:

            def read(name: str) -> bytes:
                with lock:
                    return archive.read(name)

            yield read

    def headers(self, names: list[str], turned: bool) -> Iterator[PictureHeader]:
        """Yield what the headers of pictures say."""
        if self._folder is not None:
            yield from (self._header(self._folder, name, turned) for name in names)
            return
        with open_archive(self.path, self.where, expansion=MAX_EXPANSION) as archive:
            yield from (self._header(archive, name, turned) for name in names)

    def said(self, name: str) -> str:
        """Return how messages begin that speak of one picture."""
        return f"{self.where}: the picture {name!r}"

    def _header(self, place: Folder | Archive, name: str, turned: bool) -> PictureHeader:
        stream: IO[bytes]
        with place.open(name) as stream:
            return picture_header(stream, self.said(name), turned=turned)  # type: ignore[arg-type]


def is_picture(name: str) -> bool:
    """Return whether a name ends like a picture."""
    return name.lower().endswith(ENDINGS)


def _is_hidden(name: str) -> bool:
    """Return whether a name in a zip file is one that file managers leave: hidden, or in a hidden folder."""
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))


def _left_out(others: tuple[str, ...], hidden: int) -> tuple[str, ...]:
    """Say what is left out."""
    kinds = Counter(PurePosixPath(name).suffix.lower() or "no ending" for name in others)
    if hidden:
        kinds["hidden"] += hidden
    if not kinds:
        return ()
    text = ", ".join(f"{count:,} {kind!a}" if kind[0] == "." else f"{count:,} {kind}" for kind, count in kinds.items())
    return (f"left out, as they are no pictures: {text[:200]}",)


def _no_pictures(files: _PictureFiles) -> DataError:
    """Return what is said of a folder or zip file without pictures."""
    if any(PurePosixPath(name).name == "config.json" for name in files.others):
        return DataError(
            f"{files.where} holds a network (config.json) and no data: open it as the network, with --model."
        )
    table = next((name for name in files.others if ending_of(name) not in ("", ASIDE)), None)
    if table is not None and not files.path.is_dir():
        name = from_here(str(files.path))
        name, folder = shlex.quote(name), shlex.quote(name.removesuffix(files.path.suffix))
        return DataError(
            f"{files.where} holds no pictures but {shown(table)}, which is read once it is unpacked. Open the folder "
            f"that this command makes: python -m zipfile -e {name} {folder}."
        )
    lines = (line_that_converts(from_here(str(files.path / name))) for name in files.others)
    if files.path.is_dir() and (line := next(filter(None, lines), "")):
        return DataError(
            f"{files.where} holds no pictures, but files of a kind that is not read. In Python, such a line for each "
            f"of them makes it one that is: {line}."
        )
    return DataError(
        f"{files.where} holds no pictures ({', '.join(ENDINGS)}) and no texts (.txt); expected class folders such as "
        f"cat/1.png, or train/cat/1.png and test/cat/2.png{''.join(f' ({note})' for note in files.notes)}."
    )


_SURVEYED = 2_000
"""Pictures whose headers are read to tell size and channels where the preparation does not."""

_VERSION = 3
"""Another number whenever the same files are decoded to other bytes."""

_THREADS = max(2, min(8, os.cpu_count() or 1))
_TOGETHER = 16


@dataclass(frozen=True)
class _Form:
    """What every picture is brought to; `told` is whether size and channels were given, not seen in the files."""

    channels: int
    size: tuple[int, int]
    fit: str
    told: tuple[bool, bool]
    alpha: str
    resample: str = "bilinear"
    margin: int = 0
    processor: Path | None = field(default=None, repr=False)
    made_by: str = ""  # digest of the processor's files

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of a picture."""
        return (self.channels, *self.size)


@data_format("/", ".zip", label="Pictures or texts in class folders")
def read_pictures(
    path: Path, preparation: Preparation, split: str, limit: int | None, on_progress: Progress | None
) -> Items:
    """Read one split of the pictures in class folders, or its first `limit`.

    Small sets are arrays in memory, others a `StreamedInputs`; only what is asked for is decoded.

    Raises
    ------
    DataError
        If there are no pictures in class folders, or one of them cannot be read.
    """
    files = _PictureFiles(path)
    if not files.names and (texts := texts_among(files.others)):
        with files.reading() as read:
            return read_texts(texts, read, files.where, preparation, split)
    if not files.names:
        raise _no_pictures(files)
    folders = class_folders(files.names, files.where, preparation)
    turned = preparation.size is None
    of = {"files": files.stamp, "of": _SURVEYED, "turned": turned, "version": _VERSION}
    survey = stored("picture_headers", of, partial(_survey, files, turned))
    form = _form(files, preparation, survey)
    number = {name: at for at, name in enumerate(files.names)}
    numbers = np.array([number[name] for name in folders.names[split][:limit]], np.int64)
    source = _PictureRows(files, form)
    source.make(numbers, on_progress)
    inputs = StreamedInputs(source, numbers)
    values = np.asarray(inputs) if inputs.nbytes <= IN_MEMORY else inputs
    return Items(
        cast("NDArray[np.generic]", values),
        folders.targets[split][: len(numbers)],
        class_names=folders.class_names,
        notes=(*_said(form, survey), *folders.notes, *files.notes),
        whole=len(numbers) == len(folders.names[split]),
    )


class _PictureRows:
    """The pictures of a folder or zip file in one form, by their number among its names."""

    def __init__(self, files: _PictureFiles, form: _Form) -> None:
        self.where, self.shape, self._files, self._form = files.where, form.shape, files, form
        key = hashlib.sha256(repr((_VERSION, files.stamp, form)).encode()).hexdigest()[:32]
        self._cache = RowCache(cache_folder() / "pictures" / key, len(files.names), int(np.prod(form.shape)))
        self._digests, self._made = self._cache.digests()

    @cached_property
    def _processor(self) -> PictureProcessor | None:
        form = self._form
        return None if form.processor is None else PictureProcessor(form.processor, form.channels)

    def make(self, numbers: NDArray[np.int64], on_progress: Progress | None = None) -> None:
        """Decode pictures that have not been decoded yet."""
        missing = np.unique(numbers[~self._made[numbers]])
        self._cache.used()
        if len(missing):
            self._decode(missing.tolist(), on_progress)

    def read(self, numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return some pictures, uint8 (k, C, H, W); what is damaged on disk is decoded again."""
        pixels, good = self._cache.read(numbers, self._digests[numbers])
        if not good.all():
            before = self._digests[numbers].copy()
            self._decode(np.unique(numbers[~good]).tolist(), None)
            if not np.array_equal(before, self._digests[numbers]):
                raise DataError(f"{self.where} changed after it was opened: open it again.")
            pixels, good = self._cache.read(numbers, before)
        if not good.all():
            raise DataError(
                f"{self.where}: decoded pictures cannot be kept in {self._cache.folder}, or are changed there by "
                "another program: name another folder by the environment variable IDC_HOME."
            )
        return pixels.reshape(len(numbers), *self.shape)

    def digest(self, numbers: NDArray[np.int64]) -> bytes:
        """Return the digests of some pictures' bytes, one after the other."""
        return repr(self.shape).encode() + self._digests[numbers].tobytes()

    def _decode(self, numbers: Sequence[int], on_progress: Progress | None) -> None:
        """Decode pictures in several threads, as Pillow leaves the interpreter's lock, and keep them."""
        parts = [numbers[start : start + _TOGETHER] for start in range(0, len(numbers), _TOGETHER)]
        done, _ = 0, self._processor  # opened by one thread
        with self._cache.writing(len(numbers)) as put, self._files.reading() as read:
            pool = ThreadPoolExecutor(_THREADS)
            try:
                report(on_progress, 0, len(numbers), "pictures decoded")
                for part in pool.map(partial(self._decode_part, read, put), parts):
                    done += part
                    report(on_progress, done, len(numbers), "pictures decoded")
            finally:
                pool.shutdown(cancel_futures=True)

    def _decode_part(self, read: Callable[[str], bytes], put: Put, numbers: Sequence[int]) -> int:
        for number in numbers:
            name = self._files.names[number]
            pixels = self._picture(read(name), name)
            put(number, pixels)
            self._digests[number] = np.frombuffer(digest(pixels.reshape(-1)), np.uint8)
            self._made[number] = True
        return len(numbers)

    def _picture(self, content: bytes, name: str) -> NDArray[np.uint8]:
        form, where = self._form, self._files.said(name)
        if self._processor is not None:
            return self._processor.photo(content, where, form.alpha, form.size)
        return read_photo(
            content,
            where,
            channels=form.channels,
            size=form.size,
            fit=form.fit if form.told[0] else None,
            resample=form.resample,
            margin=form.margin,
            alpha=form.alpha,
            only_grey=form.channels == 1 and not form.told[1],
        )


def _form(files: _PictureFiles, preparation: Preparation, survey: Record) -> _Form:
    """Return what all pictures are brought to: as the preparation says, else as they all are."""
    alpha = preparation.alpha
    given = preparation.size is not None, preparation.channels is not None
    if (folder := preparation.processor) is not None:
        size, channels = preparation.size, preparation.channels or 3
        if size is None:
            with files.reading() as read:
                content, where = read(files.names[0]), files.said(files.names[0])
            first = PictureProcessor(folder, channels).photo(content, where, alpha)
            size = first.shape[1], first.shape[2]
        made_by = contents_digest(folder, "AutoImageProcessor")
        return _Form(channels, size, "", (True, True), alpha, processor=folder, made_by=made_by)
    if preparation.size is None and len(survey["sizes"]) > 1:
        raise DataError(_several_sizes(files, survey))
    size = preparation.size or (int(survey["sizes"][0][0]), int(survey["sizes"][0][1]))
    channels = preparation.channels or (1 if survey["grey"] else 3)
    return _Form(channels, size, preparation.fit, given, alpha, preparation.resample, preparation.margin)


def _survey(files: _PictureFiles, turned: bool) -> dict[str, object]:
    """Read the headers of some pictures, evenly spread: sizes, most frequent first, and how many are of each kind."""
    places = np.unique(np.linspace(0, len(files.names) - 1, min(_SURVEYED, len(files.names))).astype(np.int64))
    headers = list(files.headers([files.names[at] for at in places], turned))
    sizes = Counter((header.rows, header.columns) for header in headers)
    return {
        "sizes": [[*size, count] for size, count in sizes.most_common()],
        "grey": all(header.is_grey for header in headers),
        "clear": sum(header.is_clear for header in headers),
        "deep": sum(header.is_deep for header in headers),
        "of": f"{len(headers):,} pictures{' looked at' if len(headers) < len(files.names) else ''}",
    }


def _several_sizes(files: _PictureFiles, found: Record) -> str:
    sizes = sorted(found["sizes"], key=lambda size: size[0] * size[1])
    (low, high), usual = ((f"{size[0]} x {size[1]}" for size in (sizes[0], sizes[-1])), found["sizes"][0])
    return (
        f"{files.where} holds pictures of {len(sizes):,} sizes (rows x columns), from {low} to {high}, most often "
        f"{usual[0]} x {usual[1]}; networks take one size. Give it as the size of the preparation, such as 224 x 224."
    )


def _said(form: _Form, survey: Record) -> list[str]:
    """Say what is done to the pictures."""
    parts = []
    if form.processor is not None:
        parts.append(f"made {form.size[0]} x {form.size[1]} by the image processor {form.processor.name}")
    elif form.told[0]:
        how = {"stretch": "each side on its own", "crop": "the middle of the longer side", "pad": "with a black border"}
        parts.append(f"brought to {form.size[0]} x {form.size[1]}, {how[form.fit]}, {form.resample}")
    if form.told[1]:
        parts.append("grey" if form.channels == 1 else "RGB")
    return [*parts, "turned as Exif says", *said_of_pictures(survey["clear"], survey["deep"], survey["of"], form.alpha)]
