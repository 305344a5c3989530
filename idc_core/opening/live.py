"""Live objects: a network and data of a person's own process, entered in the registries without a file."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from idc_core.base.foreign import said_foreign
from idc_core.datasets import load_dataset
from idc_core.datasets.registry import dataset
from idc_core.errors import DataError, ModelError
from idc_core.models import MODELS, ModelEntry
from idc_core.models.registry import network
from idc_core.opening.entering import kept_on_mistakes, try_out

if TYPE_CHECKING:
    from torch.nn import Module

    from idc_core.lrp.explained import Explain

_CALL = "idc.launch"
"""Where mistakes of live objects are, for messages."""


class _LiveNetwork:
    """Gives a copy of a network as it is now: what the person goes on to do with their own does not change it."""

    def __init__(self, given: Module) -> None:
        self.given = given
        self._kept = _copied(given)

    def __call__(self) -> Module:
        """Return the copy, which whoever makes it ready copies again."""
        return self._kept

    def __repr__(self) -> str:
        return _CALL


class _LiveData:
    """Reads the splits that a person handed over: arrays, a torch Dataset, an idc Dataset, or a name."""

    def __init__(self, train: object, test: object) -> None:
        self._given = {"train": train, "test": test}

    def __call__(self, split: str) -> object:
        """Return one split as it was handed over."""
        given = self._given[split]
        return load_dataset(given, "train" if split == "train" else "test") if isinstance(given, str) else given

    def __repr__(self) -> str:
        return _CALL


def enter_live(
    model: Module,
    train: object,
    test: object = None,
    *,
    name: str = "",
    layer: str = "",
    class_names: Sequence[str] = (),
    explain: Explain | None = None,
) -> ModelEntry:
    """Enter a copy of a network and its data in `MODELS` and `DATASETS`; parameters are as in `idc_core.launch`.

    The network of this name that was entered here before is replaced.

    Raises
    ------
    ModelError, DataError
        If they are not what is expected or do not fit each other, or if a built-in network has the name. The
        registries are as before then.
    """
    if not hasattr(model, "named_modules"):
        expected = "expected a torch.nn.Module with its weights."
        raise ModelError(f"{_CALL} got a {type(model).__name__}; {expected}{said_foreign(model)}")
    chosen = name or _name_of(model)
    if chosen in MODELS and not isinstance(MODELS[chosen].build, _LiveNetwork):
        raise ModelError(f"{_CALL}: there is a network {chosen!r} already; give yours another name.")
    with kept_on_mistakes():
        data = _enter_data(f"{chosen}-data", train, test, class_names)
        network(chosen, data=data, layer=layer or None, explain=explain)(_LiveNetwork(model))
        try_out([chosen])
    return MODELS[chosen]


def _enter_data(name: str, train: object, test: object, class_names: Sequence[str]) -> str:
    """Return the name under which the data are in the registry."""
    if isinstance(train, str) and (test is None or test == train):
        return load_dataset(train, "train", 1).name
    if train is None or test is None:
        raise DataError(
            f"{_CALL} got no {'train' if train is None else 'test'}; expected both: train=(inputs, targets), from "
            "which neurons and clusters are learnt, and test=(inputs, targets)."
        )
    dataset(name, class_names=class_names)(_LiveData(train, test))
    try_out([name])
    return name


def _name_of(model: Module) -> str:
    """Return the name that this very network has, or one that no network has."""
    known = (name for name, entry in MODELS.items() if getattr(entry.build, "given", None) is model)
    free = (("model" if number == 1 else f"model-{number}") for number in itertools.count(1))
    return next(known, None) or next(name for name in free if name not in MODELS)


def _copied(model: Module) -> Module:
    from idc_core.models.behaviour import copied

    try:
        return copied(model)
    except Exception as error:
        raise ModelError(
            f"{_CALL} cannot copy the network ({type(error).__name__}: {error}); give it in a setup file, whose "
            "`build` makes it anew."
        ) from error
