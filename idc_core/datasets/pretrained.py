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
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from idc_core.base.files import cache_folder
from idc_core.errors import DataError, IdcError, needing
from idc_core.guarded import Budget, member, read_content, read_json

_Result = TypeVar("_Result")

_CONFIG = "config.json"
TOKENIZER, TOKENIZER_SETTINGS = "tokenizer.json", "tokenizer_config.json"
VOCABULARIES = (TOKENIZER, "vocab.txt", "vocab.json")
"""Files of which a folder with a tokenizer has one."""

PROCESSORS = ("preprocessor_config.json", "processor_config.json")
"""Files of which a folder with an image processor has one."""

_OTHERS = """
special_tokens_map.json added_tokens.json merges.txt bpe.codes dict.txt vocab-src.json vocab-tgt.json target_vocab.json
entity_vocab.json word_shape.json word_pronunciation.json normalizer.json emoji.json prophetnet.tokenizer byte_maps.json
"""
_COPIED = {"AutoTokenizer": (*VOCABULARIES, TOKENIZER_SETTINGS, *_OTHERS.split()), "AutoImageProcessor": PROCESSORS}
"""Files that each kind of reader is given. SentencePiece's `.model` is none: reading it needs another package, and what
transformers has saved since 2020 holds the same as `tokenizer.json`."""

_OF_CONFIG = ("model_type", "model_name", "tokenizer_class", "image_processor_type", "transformers_version")
"""What of the network's configuration says which class reads the files."""

_ELSEWHERE = re.compile(r"gguf_file|.*_kwargs")
"""Settings that name files or options of other programs."""

_MOST_WORDS = 2_000_000
"""Entries of a vocabulary; the largest published ones have 262,144."""

_MOST_PATTERN, _MOST_WORD = 2_000, 1_000
_MOST_SAID = 300
_SAID = 60

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
    files = _copied(folder, reader)
    what = "tokenizer" if reader == "AutoTokenizer" else "image processor"
    where = f"The {what} in {folder}"
    with quiet(), TemporaryDirectory(prefix="pretrained-", dir=_made(cache_folder())) as copy:
        import transformers

        for name, content in files.items():
            (Path(copy) / name).write_bytes(content)
        more = {} if what == "tokenizer" else {"backend": "pil"}
        auto = getattr(transformers, reader)
        opening = partial(auto.from_pretrained, copy, local_files_only=True, trust_remote_code=False, **more)
        _check_class(files, reader, where)
        return explained(where, opening)


def contents_digest(folder: Path, reader: str) -> str:
    """Return 32 hexadecimal digits that change with the files that a reader of transformers is given, and with it."""
    from importlib.metadata import version

    files = sorted(_copied(folder, reader).items())
    return hashlib.sha256(repr((version("transformers"), files)).encode()).hexdigest()[:32]


def explained(where: str, work: Callable[[], _Result]) -> _Result:
    """Call a library on a person's files; whatever it makes of damaged ones, panics too, is a `DataError`."""
    try:
        return work()
    except IdcError:
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        text = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{where} cannot be used ({text[:_MOST_SAID]}). Save it again, or give another one.") from error


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


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _copied(folder: Path, reader: str) -> dict[str, bytes]:
    """Return the files that a reader is given by name, each checked; of the configuration what names classes."""
    budget, files = Budget(str(folder)), {}
    for name in _COPIED[reader]:
        path = member(folder, name)
        if path is None:
            continue
        files[name] = read_content(path, str(path), budget, copies=5)
        if name.endswith(".json"):
            _check(read_json(files[name], str(path), dict[str, object]), name, str(path))
        elif max(map(len, files[name].split()), default=0) > 4 * _MOST_WORD:
            raise DataError(f"{path} has a word of more than {_MOST_WORD:,} characters; expected a vocabulary.")
    path = member(folder, _CONFIG)
    config = {} if path is None else read_json(path, str(path), dict[str, object])
    kept = {name: config[name] for name in _OF_CONFIG if isinstance(config.get(name), str)}
    return files | {_CONFIG: json.dumps(kept).encode()}


def _check_class(files: dict[str, bytes], reader: str, where: str) -> None:
    """Refuse a class that transformers does not have: it would take another one without a word."""
    import transformers
    from transformers.models.auto import image_processing_auto, tokenization_auto

    settings: dict[str, Any] = {
        name: read_json(content, where, dict[str, object]) for name, content in files.items() if "config" in name
    }
    config = settings[_CONFIG]
    if reader == "AutoTokenizer":
        given = settings.get(TOKENIZER_SETTINGS, {}).get("tokenizer_class") or config.get("tokenizer_class")
        found = tokenization_auto.tokenizer_class_from_name(str(given)) if given else None
        base: type = transformers.PreTrainedTokenizerBase
        if not given and TOKENIZER not in files and not config.get("model_type"):
            raise DataError(
                f"{where} does not say its class: write the model_type into {_CONFIG}, or the tokenizer_class into "
                f"{TOKENIZER_SETTINGS}. From Python, tokenizer.save_pretrained(folder) writes it."
            )
    else:
        image = settings.get(PROCESSORS[1], {}).get("image_processor") or settings.get(PROCESSORS[0], {})
        old = str(image.get("feature_extractor_type") or "").replace("FeatureExtractor", "ImageProcessor")
        given = image.get("image_processor_type") or old or config.get("image_processor_type")
        name = str(given).removesuffix("Fast").removesuffix("Pil")
        found = image_processing_auto._load_backend_class(name, "pil") if given else None
        base = transformers.BaseImageProcessor
    if given and not (isinstance(found, type) and issubclass(found, base)):
        raise DataError(
            f"{where} is of the class {given!r:.{_SAID}}, which the installed transformers does not have, or not "
            "without another package. Save the folder with one of its classes."
        )


def _check(content: dict[str, object], file: str, where: str) -> None:
    """Refuse what would keep the machine busy without end, take memory without end, or lead to other files."""
    for name, value in content.items():
        if file == TOKENIZER_SETTINGS and value and _ELSEWHERE.fullmatch(name):
            raise DataError(f"{where} says {name[:_SAID]!r}, which is for another program and is not followed.")
    for inside, place in _places(content):
        longest = max(map(len, place), default=0)
        if longest > _MOST_WORD:
            raise DataError(f"{where} has a word of {longest:,} characters; expected at most {_MOST_WORD:,}.")
        pattern = place.get("Regex")
        if isinstance(pattern, str):
            _check_pattern(pattern, where)
        for name in ("id", "max_input_chars_per_word", "max_length"):
            if inside != "vocab" and type(number := place.get(name)) is int and number > _MOST_WORDS:
                raise DataError(f"{where} says {name} {number:,}; expected at most {_MOST_WORDS:,}.")


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
    plain = re.sub(r"\\.", "x", pattern)
    plain = re.sub(r"\[[^\]]*\]", "x", plain)
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
