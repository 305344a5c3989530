"""The `config.json` of a Hugging Face folder: read as plain data and checked before transformers sees it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from idc_core.errors import ModelError, of_a_network
from idc_core.guarded import member, read_json

_CONFIG = "config.json"
WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"

ADAPTERS = ("adapter_config.json", "adapter_model.safetensors")
"""Files of an adapter of peft, which changes the weights beside it."""

MOST_SAID = 60
"""Characters of a name from outside that a message shows."""

_MOST_NAME = 200
"""Characters of the name of a class."""

MOST_LABELS = 50_000
"""Classes; ImageNet-21k has 21,843."""

_MOST = 1 << 24
_MOST_PARTS = 1_024
_PARTS = re.compile(r"layer|depth|stage|block|expert|head", re.IGNORECASE)
"""In names of numbers that count parts of a network, each of which is built in a loop."""

_HEADS: dict[str, Literal["text", "pictures"]] = {
    "ForSequenceClassification": "text",
    "ForImageClassification": "pictures",
    "ForImageClassificationWithTeacher": "pictures",
    "ForObjectDetection": "pictures",
    "ForSemanticSegmentation": "pictures",
}
_NO_PART = """
architectures dtype torch_dtype attn_implementation experts_implementation transformers_version name_or_path
fusion_config kernel_config use_kernels distributed_config transformers_weights custom_pipelines output_attentions
output_hidden_states return_dict use_cache torchscript gradient_checkpointing problem_type chunk_size_feed_forward
num_labels
"""
_LEFT_OUT = frozenset(_NO_PART.split())
"""Settings of how transformers runs or loads a network, and not of what it computes; and what is set here."""


@dataclass(frozen=True)
class Configuration:
    """What a folder says of its network.

    Attributes
    ----------
    folder : Path
    kind : {"text", "pictures"}
        What it classifies.
    model_type, architecture : str
        As in the file: "bert", "BertForSequenceClassification".
    class_names : tuple of str
        As in the file, on one line each.
    values : dict
        All that transformers builds the network from.
    padding : int or None
        Token id of padding, where the file says it.
    """

    folder: Path
    kind: Literal["text", "pictures"]
    model_type: str
    architecture: str
    class_names: tuple[str, ...]
    values: dict[str, object]
    padding: int | None

    @property
    def where(self) -> str:
        """The file, for messages."""
        return str(self.folder / _CONFIG)


@of_a_network()
def read_configuration(folder: Path) -> Configuration:
    """Read and check the `config.json` of a folder.

    Raises
    ------
    ModelError
        If it is absent or damaged, brings code, is quantised, asks for sizes beyond any network, or describes no
        classifier of texts or pictures.
    """
    where = str(folder / _CONFIG)
    settings = read_member(folder, _CONFIG)
    if settings is None:
        raise ModelError(
            f"{folder} is no Hugging Face folder: it has no {_CONFIG}. Give a folder that `save_pretrained` wrote."
        )
    _refuse_code(settings, where)
    _refuse_sizes(settings, where)
    architecture = _architecture(settings, where)
    model_type = settings.get("model_type")
    if not isinstance(model_type, str) or not re.fullmatch(r"[\w.-]{1,100}", model_type):
        raise ModelError(f"{where} says the model_type {_short(model_type)}; expected a name such as 'bert'.")
    kind = next((kind for head, kind in _HEADS.items() if architecture.endswith(head)), None)
    if kind is None:
        raise ModelError(
            f"{where} describes a {architecture}, which classifies neither texts nor pictures nor parts of them; "
            f"expected {', '.join(f'...{head}' for head in _HEADS)}."
        )
    names = _class_names(settings, where)
    padding = settings.get("pad_token_id")
    if padding is not None and (type(padding) is not int or padding < 0):
        raise ModelError(f"{where} says pad_token_id {_short(padding)}; expected a whole number from 0.")
    values = _cleaned(settings) | {
        "id2label": dict(enumerate(names)),
        "label2id": {name: number for number, name in enumerate(names)},
    }
    return Configuration(folder, kind, model_type, architecture, names, values, padding)


@of_a_network()
def weight_files(folder: Path) -> tuple[Path, ...]:
    """Return the safetensors files of a folder; ModelError where there are none, or their index names others."""
    whole = member(folder, WEIGHTS)
    if whole is not None:
        return (whole,)
    index = read_member(folder, _INDEX)
    if index is None:
        others = [path.name for path in sorted(folder.iterdir()) if path.suffix in (".bin", ".pt", ".pth", ".h5")][:3]
        if any(member(folder, name) is not None for name in ADAPTERS):
            raise ModelError(
                f"{folder} holds an adapter ({ADAPTERS[0]}) and no {WEIGHTS}. Merge it in Python with its network's "
                "merge_and_unload(), and save that with save_pretrained(folder)."
            )
        has = f" and {', '.join(others)} can run code and is never opened" if others else ""
        raise ModelError(
            f"{folder} has no {WEIGHTS}{has}. Where you trust its maker, save it again from Python with "
            "model.save_pretrained(folder, safe_serialization=True)."
        )
    named = index.get("weight_map")
    if not isinstance(named, dict) or not named or not all(isinstance(file, str) for file in named.values()):
        raise ModelError(f"{folder / _INDEX} has no weight_map from tensors to files.")
    paths = []
    for name in sorted(set(named.values())):
        path = member(folder, name)
        if path is None or path.suffix != ".safetensors":
            raise ModelError(
                f"{folder / _INDEX} names {one_line(name, MOST_SAID)!r}; expected a safetensors file that is there."
            )
        paths.append(path)
    return tuple(paths)


def _refuse_code(found: dict[str, object], where: str) -> None:
    for place, name, value in _settings(found):
        if name == "auto_map":
            raise ModelError(
                f"{where} asks for code of its folder (auto_map), which is never run. Where you trust its maker, build "
                "the network in a setup file, or save it in an architecture of transformers."
            )
        if name in ("quantization_config", "compression_config") and value is not None:
            method = value.get("quant_method", "") if isinstance(value, dict) else ""
            raise ModelError(
                f"{where} describes quantised weights ({place} {_short(method)}); save the network with float weights."
            )


def _refuse_sizes(found: dict[str, object], where: str) -> None:
    """Refuse numbers that no network has, before anything of that size is built."""
    for place, name, value in _settings(found):
        for number in _numbers(value):
            most = _MOST_PARTS if _PARTS.search(name) else _MOST
            most = MOST_LABELS if name == "num_labels" else most
            if abs(number) > most:
                raise ModelError(f"{where} says {place} {number:,}; expected at most {most:,}.")


def _numbers(value: object) -> Iterator[int]:
    """Yield the whole numbers of a setting, and of lists in it."""
    if isinstance(value, list):
        for part in value:
            yield from _numbers(part)
    elif type(value) is int:
        yield value


def _settings(found: dict[str, object]) -> Iterator[tuple[str, str, object]]:
    """Yield all settings, nested ones too, as place, name and value; the names of classes are none."""
    left: list[tuple[str, dict[str, object]]] = [("", found)]
    while left:
        before, inner = left.pop()
        for name, value in inner.items():
            place = f"{before}{one_line(name, MOST_SAID)}"
            yield place, name, value
            for part in value if isinstance(value, list) else (value,):
                if isinstance(part, dict) and name not in ("id2label", "label2id"):
                    left.append((f"{place}.", part))


def _architecture(found: dict[str, object], where: str) -> str:
    given = found.get("architectures")
    if not isinstance(given, list) or len(given) != 1 or not isinstance(given[0], str) or not given[0].isidentifier():
        raise ModelError(f"{where} names the architectures {_short(given)}; expected one, as `save_pretrained` writes.")
    return str(given[0][:_MOST_NAME])


def _class_names(found: dict[str, object], where: str) -> tuple[str, ...]:
    """Return class names on one line each; as many as num_labels where there are none."""
    given = found.get("id2label")
    if given is None:
        count = found.get("num_labels", 2)
        if type(count) is not int or not 1 <= count <= MOST_LABELS:
            raise ModelError(f"{where} says num_labels {_short(count)}; expected 1 to {MOST_LABELS:,}.")
        return tuple(f"LABEL_{number}" for number in range(count))
    labels = given if isinstance(given, dict) else {}
    count = len(labels)
    if not 1 <= count <= MOST_LABELS or set(labels) != {str(number) for number in range(count)}:
        raise ModelError(
            f"{where}: id2label must name the classes 0, 1, 2 ... without gaps, {MOST_LABELS:,} at most; got {count:,}."
        )
    names = tuple(one_line(str(labels[str(number)])) for number in range(count))
    return names if len(set(names)) == count else tuple(f"{name} ({place})" for place, name in enumerate(names))


def _cleaned(value: object) -> Any:
    """Leave out, on all levels, what is no part of what the network computes."""
    if isinstance(value, list):
        return [_cleaned(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {name: _cleaned(part) for name, part in value.items() if name not in _LEFT_OUT and name[:1] != "_"}


def read_member(folder: Path, name: str) -> dict[str, object] | None:
    """Return the JSON object of a file of a folder, or None where there is none."""
    path = member(folder, name)
    return None if path is None else read_json(path, str(path), dict[str, object])


def one_line(name: str, most: int = _MOST_NAME) -> str:
    """Return a name from outside on one line: no control characters, none that turn the direction of writing."""
    shown = "".join(character if character.isprintable() else " " for character in name)
    return " ".join(shown.split())[:most] or "(no name)"


def _short(value: object) -> str:
    return repr(value)[:MOST_SAID]
