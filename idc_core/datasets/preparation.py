"""How files become inputs: what a person can say of it, kept with the data and shown."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

from idc_core.base.parameters import option, shown
from idc_core.base.ranges import MARGIN, SEED, SIDE, TEST_SHARE, TOKENS
from idc_core.errors import SettingError
from idc_core.guarded import typed

FITS = {"stretch": "each side stretched", "crop": "the middle cropped", "pad": "black borders added"}
"""Ways to bring a picture to a size, and what each does to it."""

_RESAMPLES = ("bilinear", "bicubic", "nearest", "lanczos", "box", "hamming")
"""Filters of Pillow."""

ALPHA = {"drop": "colours kept as they are, alpha left out", "white": "put on white"}
"""What is done with an alpha channel, or a transparent colour."""

CHANNELS = {1: "grey", 3: "RGB"}
"""Numbers of channels, and what they are called."""

READ_AS = {"pictures": "grey pictures", "series": "series, as they are"}
"""What numbers (n, rows, columns) can be."""

EMPTY = {"drop": "their rows left out", "mean": "filled with the mean of their column"}
"""What is done with empty cells of a table, and with numbers that are not finite."""

FOLDERS = ("processor", "tokenizer")
"""Fields that are folders."""

OF_PROCESSOR = ("size", "fit", "resample", "margin", "channels")
"""Fields in whose place a processor stands."""

_TASKS = ("classification", "regression")

_MOST_NAME = 1_000


@dataclass(frozen=True)
class Preparation:
    """How the files of a data set become inputs; what is not given is told by the files.

    Attributes
    ----------
    size : (int, int) or None
        Rows and columns that pictures are brought to.
    fit : {"stretch", "crop", "pad"}
        How: each side on its own, the shorter side and the middle of the other, or the longer side and a black border.
    resample : {"bilinear", "bicubic", "nearest", "lanczos", "box", "hamming"}
        Filter by which pictures are brought to their size.
    margin : int
        Rows, and columns, that are cut off at the end: pictures are brought to this much more than the size before.
    alpha : {"drop", "white"}
        What becomes of transparent parts: the colours that the file has there, as ``convert("RGB")`` of Pillow keeps
        them, or white.
    channels : {1, 3} or None
        Grey or RGB.
    read_as : {"", "pictures", "series"}
        What numbers (n, rows, columns) are; "": told by the network's file where it says how many axes it takes, else
        by their values.
    inputs, targets : str
        Names of the columns or arrays that hold them; several columns with commas between them.
    task : {"", "classification", "regression"}
        What numbers as targets are: classes, or quantities.
    empty : {"", "drop", "mean"}
        What is done with empty cells of a table, and with numbers that are not finite, which count as empty; "": they
        are refused, with their rows.
    processor : Path or None
        Folder of a Hugging Face image processor that makes the pictures, in place of size, fit, resample and margin;
        where a size is given too, it is the one that comes of it.
    tokenizer : Path or None
        Folder of a Hugging Face tokenizer that makes token ids of texts; None splits them into words.
    length : int or None
        Tokens that a text is cut or padded to.
    test_share : float
        Part of the inputs that become tests where the files give no split.
    seed : int
        Draws that split.

    Raises
    ------
    SettingError
        If a value is outside what is allowed.
    """

    size: tuple[int, int] | None = option(None, "what pictures are brought to, such as 32x32")
    fit: str = option("stretch", "how (stretch)", tuple(FITS))
    resample: str = option("bilinear", "filter by which they are brought to it (bilinear)", _RESAMPLES)
    margin: int = option(0, "rows and columns more, cut off at the edges (0)", MARGIN)
    alpha: str = option("drop", "transparent parts: their colours, or white (drop)", tuple(ALPHA))
    channels: int | None = option(None, "make pictures grey or RGB", tuple(CHANNELS))
    read_as: str = option("", "what numbers (n, rows, columns) are (told by network or values)", tuple(READ_AS))
    inputs: str = option("", "array or column of the inputs; columns: NAME,NAME,...")
    targets: str = option("", "array or column of the targets")
    task: str = option("", "what numbers as targets are", _TASKS)
    empty: str = option("", "empty cells, infinite numbers too: leave their rows out, or fill in means", tuple(EMPTY))
    processor: Path | None = option(None, "of a Hugging Face image processor, for pictures, in place of size and fit")
    tokenizer: Path | None = option(None, "of a Hugging Face tokenizer, for texts")
    length: int | None = option(None, "tokens that texts are cut or padded to", TOKENS)
    test_share: float = option(0.2, "drawn as tests where the files give no split (0.2)", TEST_SHARE)
    seed: int = option(0, "draws them (0)", SEED, "split_seed")

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        if self.size is not None:
            if len(self.size) != 2:
                raise SettingError(f"size of the preparation must be (rows, columns), not {shown(self.size)}.")
            for side in self.size:
                SIDE.check(side, "the preparation")
        _check_one("fit", self.fit, tuple(FITS))
        _check_one("alpha", self.alpha, tuple(ALPHA))
        _check_one("channels", self.channels, (None, *CHANNELS))
        _check_one("resample", self.resample, _RESAMPLES)
        MARGIN.check(self.margin, "the preparation")
        _check_one("task", self.task, ("", *_TASKS))
        _check_one("read_as", self.read_as, ("", *READ_AS))
        _check_one("empty", self.empty, ("", *EMPTY))
        for name in ("inputs", "targets"):
            if len(getattr(self, name)) > _MOST_NAME:
                raise SettingError(f"{name} of the preparation must have at most {_MOST_NAME:,} characters.")
        if self.length is not None:
            TOKENS.check(self.length, "the preparation")
        TEST_SHARE.check(self.test_share, "the preparation")
        SEED.check(self.seed, "the preparation")

    def to_json(self) -> dict[str, object]:
        """Return what was given, as plain values; what is as by default is left out."""
        given = {item.name: value for item in fields(self) if (value := getattr(self, item.name)) != item.default}
        written = {"size": list, **dict.fromkeys(FOLDERS, str)}
        return {name: written[name](value) if name in written else value for name, value in given.items()}

    @classmethod
    def from_json(cls, plain: object, where: str) -> Preparation:
        """Return what `to_json` wrote; raise `DataError`, which begins with `where`, if it is anything else."""
        given = typed(plain, where, dict[str, object])
        named = typed({name: given.pop(name, None) for name in FOLDERS}, where, dict[str, str | None])
        processor, tokenizer = (Path(folder) if folder else None for folder in named.values())
        return replace(typed(given, where, cls), processor=processor, tokenizer=tokenizer)

    @property
    def says(self) -> tuple[str, ...]:
        """What was given, each in a few words; nothing of the split, which only the files tell to be drawn."""
        remarks = []
        if self.processor is not None:
            remarks.append(f"pictures by the image processor {self.processor.name}")
        elif self.size is not None:
            remarks.append(f"pictures brought to {self.size[0]} x {self.size[1]}, {FITS[self.fit]}")
        if self.resample != "bilinear":
            remarks.append(f"{self.resample} interpolation")
        if self.margin > 0:
            remarks.append(f"{self.margin} rows and columns more before the edges are cut off")
        if self.alpha != "drop":
            remarks.append(f"transparent parts {ALPHA[self.alpha]}")
        if self.channels is not None:
            remarks.append(f"pictures made {CHANNELS[self.channels]}")
        if self.read_as:
            remarks.append(f"rows and columns as {READ_AS[self.read_as]}")
        if self.inputs:
            remarks.append(f"inputs: {shown(self.inputs)}")
        if self.targets:
            remarks.append(f"targets: {shown(self.targets)}")
        if self.empty:
            remarks.append(f"empty cells: {EMPTY[self.empty]}")
        if self.tokenizer is not None:
            remarks.append(f"token ids by the tokenizer {self.tokenizer.name}")
        if self.length is not None:
            remarks.append(f"texts cut or padded to {self.length:,} tokens")
        return tuple(remarks)


def said_of_pictures(clear: int, deep: int, of: str, alpha: str) -> tuple[str, ...]:
    """Say what is not kept of pictures: `clear` that have an alpha channel, `deep` that have 16 bits, among `of`."""
    channel = f"{clear:,} of {of} have an alpha channel or a transparent colour: {ALPHA[alpha]}"
    bits = f"{deep:,} of {of} have more than 8 bits a channel: the upper 8 are kept"
    return (*[channel] * (clear > 0), *[bits] * (deep > 0))


def _check_one(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed or isinstance(value, bool):
        expected = " or ".join(repr(choice) for choice in allowed if choice not in (None, ""))
        raise SettingError(f"{name} of the preparation must be {expected}, not {shown(value)}.")
