"""Options that say how data given by a path become inputs: the fields of a `Preparation`, one each."""

from __future__ import annotations

import argparse
from dataclasses import replace

from idc_core.cli.arguments import FolderToRead, Number, Size, Text, Word
from idc_core.datasets.preparation import FITS, RESAMPLES, TASKS, Preparation
from idc_core.errors import SettingError
from idc_core.limits import MARGIN, SEED, TEST_SHARE, TOKENS

FIELDS = {
    "size": "size",
    "fit": "fit",
    "resample": "resample",
    "margin": "margin",
    "channels": "channels",
    "inputs": "inputs",
    "targets": "targets",
    "task": "task",
    "tokenizer": "tokenizer",
    "length": "length",
    "test_share": "test_share",
    "split_seed": "seed",
}
"""Fields of the preparation by the names of their options."""


def add_preparation(parser: argparse.ArgumentParser) -> None:
    """Add the options to a command that takes data."""
    add = parser.add_argument_group("data from files, given by a path").add_argument
    add("--size", type=Size(), metavar="ROWSxCOLUMNS", help="what pictures are brought to, such as 32x32")
    add("--fit", type=Word(tuple(FITS)), metavar="{stretch,crop,pad}", help="how (stretch)")
    filters = "filter by which they are brought to it (bilinear)"
    add("--resample", type=Word(RESAMPLES), metavar=f"{{{','.join(RESAMPLES)}}}", help=filters)
    add("--margin", type=Number(MARGIN), metavar="N", help="rows and columns more, cut off again at the edges (0)")
    add("--channels", type=Word(("1", "3")), metavar="{1,3}", help="make pictures grey or RGB")
    add("--inputs", type=Text(), metavar="NAME", help="array or column of the inputs; columns: NAME,NAME,...")
    add("--targets", type=Text(), metavar="NAME", help="array or column of the targets")
    add("--task", type=Word(TASKS), metavar="{classification,regression}", help="what numbers as targets are")
    add("--tokenizer", type=FolderToRead(), metavar="FOLDER", help="of a Hugging Face tokenizer, for texts")
    add("--length", type=Number(TOKENS), metavar="N", help="tokens that texts are cut or padded to")
    add("--test-share", type=Number(TEST_SHARE), metavar="X", help="drawn as tests where the files give no split (0.2)")
    add("--split-seed", type=Number(SEED), metavar="N", help="draws them (0)")


def preparation_of(arguments: argparse.Namespace, expected: Preparation | None = None) -> Preparation | None:
    """Return what the options say, and for the rest what a network expects; None where neither says anything."""
    said = {field: getattr(arguments, name, None) for name, field in FIELDS.items()}
    given = {field: value for field, value in said.items() if value is not None}
    if "channels" in given:
        given["channels"] = int(given["channels"])
    return replace(expected or Preparation(), **given) if given else expected


def check_used(arguments: argparse.Namespace, has_path: bool) -> None:
    """Raise `SettingError` where an option is given and no data by a path."""
    alone = next((name for name in FIELDS if getattr(arguments, name, None) is not None), None)
    if alone is not None and not has_path:
        raise SettingError(f"{_option(alone)} is for data that are given by a path; leave it out, or give one.")


def words_of(arguments: argparse.Namespace) -> list[str]:
    """Return the words of a command line that say the same."""
    words = []
    for name in FIELDS:
        value = getattr(arguments, name, None)
        if value is not None:
            text = "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
            words.append(f"{_option(name)}={text}")
    return words


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
