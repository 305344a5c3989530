"""Tokenizers and image processors of Hugging Face folders: transformers' own, on checked copies of their files alone.

Whatever class a folder names, transformers reads it here, so that every setting in its files counts. It sees a copy of
the few files that can say something, each measured and parsed before: no weights, no code, no other file.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from idc_core.base.files import cache_folder
from idc_core.errors import DataError, IdcError, needing
from idc_core.guarded import Budget, member, read_content, read_json

_Result = TypeVar("_Result")

CONFIG, TOKENIZER, TOKENIZER_SETTINGS = "config.json", "tokenizer.json", "tokenizer_config.json"
PROCESSORS = ("preprocessor_config.json", "processor_config.json")
TOKENIZERS = (TOKENIZER, "vocab.txt", "vocab.json", TOKENIZER_SETTINGS)
"""Files of which a folder with an image processor, or a tokenizer, has one."""

_VOCABULARIES = """
vocab.txt vocab.json merges.txt special_tokens_map.json added_tokens.json bpe.codes dict.txt vocab-src.json
vocab-tgt.json target_vocab.json entity_vocab.json word_shape.json word_pronunciation.json normalizer.json emoji.json
prophetnet.tokenizer byte_maps.json
"""
_COPIED = {"AutoTokenizer": (TOKENIZER, *_VOCABULARIES.split(), TOKENIZER_SETTINGS), "AutoImageProcessor": PROCESSORS}
"""Files that a reader is given. SentencePiece's `.model` is none: it takes another package, and what transformers has
saved since 2020 holds the same as `tokenizer.json`."""

_CLASSES = {"AutoTokenizer": "tokenizer_class", "AutoImageProcessor": "image_processor_type"}
"""Settings that name the class."""

_OF_CONFIG = ("model_type", "model_name", *_CLASSES.values(), "transformers_version")
"""What of the network's configuration says which class reads the files."""

MOST_WORDS, _MOST_WORD, _MOST_PATTERN = 2_000_000, 1_000, 2_000
"""Entries of a vocabulary, of which the largest published ones have 262,144; characters of a word, and of a pattern."""

_MOST_SAID, _SAID = 300, 60

_ONE_AT_A_TIME = threading.RLock()
"""transformers switches default types and initialisation for the whole process while it builds a network."""


def open_pretrained(folder: Path, reader: str) -> Any:
    """Return the tokenizer or image processor of a folder, of the class that its files name.

    Parameters
    ----------
    folder : Path
    reader : {"AutoTokenizer", "AutoImageProcessor"}
        Class of transformers that opens it.

    Raises
    ------
    DataError
        If a file is damaged, would take more memory than is allowed or work without end, or names a class that the
        installed transformers does not have or cannot make of these files alone.
    """
    files, kind = _copied(folder, reader), "tokenizer" if reader == "AutoTokenizer" else "image processor"
    where = f"The {kind} in {folder}"
    home = cache_folder()
    home.mkdir(parents=True, exist_ok=True)
    with quiet(), TemporaryDirectory(prefix="pretrained-", dir=home) as copy:
        import transformers

        for name, content in files.items():
            (Path(copy) / name).write_bytes(content)
        _check_class(files, reader, where)
        given: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        given |= {} if reader == "AutoTokenizer" else {"backend": "pil"}
        return explained(where, lambda: getattr(transformers, reader).from_pretrained(copy, **given))


def contents_digest(folder: Path, reader: str) -> str:
    """Return 32 hexadecimal digits that change with the files that a reader of transformers is given, and with it."""
    return hashlib.sha256(repr((version("transformers"), _copied(folder, reader))).encode()).hexdigest()[:32]


def explained(where: str, work: Callable[[], _Result]) -> _Result:
    """Call a library on a person's files; whatever it makes of damaged ones, panics too, is a `DataError`."""
    try:
        return work()
    except IdcError:
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        text = " ".join(f"{type(error).__name__}: {error}".split())[:_MOST_SAID]
        said = "".join(sign if sign.isprintable() else " " for sign in text)
        raise DataError(f"{where} cannot be used ({said}). Save it again, or give another one.") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers offline and silent in this block, and other threads out of it."""
    with _ONE_AT_A_TIME, warnings.catch_warnings(), _kept_in_our_folder():
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY"):
            os.environ.setdefault(name, "1")  # read once, when transformers is imported
        with needing("huggingface", "A Hugging Face folder"):
            from transformers.utils import logging as their

        warnings.simplefilter("ignore")
        level, bars = their.get_verbosity(), their.is_progress_bar_enabled()
        try:
            their.set_verbosity(logging.CRITICAL)
            their.disable_progress_bar()
            yield
        finally:
            their.set_verbosity(level)
            if bars:
                their.enable_progress_bar()


@contextmanager
def _kept_in_our_folder() -> Iterator[None]:
    """Keep the folder that torch's compiler makes when it is imported in ours, not in that of temporary files."""
    name = "TORCHINDUCTOR_CACHE_DIR"
    if name in os.environ:
        yield
        return
    os.environ[name] = str(cache_folder() / "torch")
    try:
        yield
    finally:
        del os.environ[name]


def _copied(folder: Path, reader: str) -> dict[str, bytes]:
    """Return the files that a reader is given by name, each checked; of the configuration what names classes."""
    budget, files, config = Budget(str(folder)), {}, {}
    for name in (CONFIG, *_COPIED[reader]):
        if (path := member(folder, name)) is None:
            continue
        files[name] = read_content(path, str(path), budget, copies=5)
        if name == CONFIG:
            config = read_json(files[name], str(path), dict[str, object])
        elif name.endswith(".json"):
            _check(read_json(files[name], str(path), dict[str, object]), name, str(path))
        elif max(map(len, files[name].split()), default=0) > 4 * _MOST_WORD:
            raise DataError(f"{path} has a word of more than {_MOST_WORD:,} characters; expected a vocabulary.")
    kept = {name: config[name] for name in _OF_CONFIG if isinstance(config.get(name), str)}
    return files | {CONFIG: json.dumps(kept).encode()}


def _check_class(files: dict[str, bytes], reader: str, where: str) -> None:
    """Refuse a class that transformers does not have: it would take another one without a word."""
    from transformers.models.auto import image_processing_auto, tokenization_auto

    said: dict[str, Any] = {}
    for name in (CONFIG, *_COPIED[reader]):
        said |= read_json(files[name], where, dict[str, Any]) if name in files and "config" in name else {}
    said |= said.get("image_processor") or {}
    old = str(said.get("feature_extractor_type") or "").replace("FeatureExtractor", "ImageProcessor")
    given = str(said.get(_CLASSES[reader]) or (old if reader == "AutoImageProcessor" else ""))
    if given and reader == "AutoTokenizer":
        found = tokenization_auto.tokenizer_class_from_name(given)
    elif given:
        found = image_processing_auto._load_backend_class(given.removesuffix("Fast"), "pil")
    elif TOKENIZER in files or said.get("model_type"):
        return
    else:
        raise DataError(
            f"{where} does not say its class: write the model_type into {CONFIG}, or save it again from Python with "
            "save_pretrained(folder)."
        )
    if not hasattr(found, "save_pretrained") or hasattr(found, "forward"):
        raise DataError(
            f"{where} is of the class {given!r:.{_SAID}}, which the installed transformers does not have, or not "
            "without another package. Save the folder with one of its classes."
        )


def _check(content: dict[str, object], file: str, where: str) -> None:
    """Refuse what would keep the machine busy without end, take memory without end, or lead to other files."""
    for inside, place in _places(content):
        longest = max(map(len, place), default=0)
        if longest > _MOST_WORD:
            raise DataError(f"{where} has a word of {longest:,} characters; expected at most {_MOST_WORD:,}.")
        if isinstance(pattern := place.get("Regex"), str):
            _check_pattern(pattern, where)
        for name in ("id", "max_input_chars_per_word", "max_length"):
            if inside != "vocab" and type(number := place.get(name)) is int and number > MOST_WORDS:
                raise DataError(f"{where} says {name} {number:,}; expected at most {MOST_WORDS:,}.")
    for name, value in content.items() if file == TOKENIZER_SETTINGS else ():
        if value and (name == "gguf_file" or name.endswith("_kwargs")):
            raise DataError(f"{where} says {name[:_SAID]!r}, which is for another program and is not followed.")


def _places(content: object) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield all objects of a JSON document with the name that each has, but none of its merges."""
    left: list[tuple[str, object]] = [("", content)]
    while left:
        name, here = left.pop()
        if isinstance(here, dict):
            yield name, here
            left.extend((inner, value) for inner, value in here.items() if isinstance(value, dict | list))
        elif isinstance(here, list) and name not in ("merges", "vocab"):
            left.extend((name, value) for value in here)


def _check_pattern(pattern: str, where: str) -> None:
    """Refuse a pattern that repeats what repeats itself: looking for it may take longer than anybody waits."""
    if len(pattern) > _MOST_PATTERN:
        raise DataError(f"{where} has a pattern of {len(pattern):,} characters; expected at most {_MOST_PATTERN:,}.")
    plain = re.sub(r"\[[^\]]*\]", "x", re.sub(r"\\.", "x", pattern))
    repeated: list[bool] = [False]
    for place, sign in enumerate(plain):
        if sign == "(":
            repeated.append(False)
        elif sign == ")" and len(repeated) > 1:
            inner = repeated.pop()
            again = re.match(r"\)(?:[*+]|\{\d*,?(?:\d{2,})?\})", plain[place:]) is not None
            if inner and again:
                raise DataError(
                    f"{where} has the pattern {pattern[:_SAID]!r}, which repeats what repeats itself: looking for it "
                    "may never end. Give another tokenizer."
                )
            repeated[-1] = repeated[-1] or inner or again
        elif sign in "*+" or re.match(r"\{\d*,(?:\d{2,})?\}", plain[place:]):
            repeated[-1] = True
