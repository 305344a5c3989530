"""The kinds of suites: original tests, noise, guided noise, each transform, change of texts, corruption and attack."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from torch import nn

from idc_core.base.arrays import Array
from idc_core.base.parameters import Parameter, settle
from idc_core.base.progress import Progress
from idc_core.base.registry import Registry
from idc_core.datasets import Dataset
from idc_core.errors import CancelledError, SettingError
from idc_core.models.weights import fingerprint as fingerprint_of
from idc_core.perturbation import (
    ATTACKS,
    TEXT_CHANGES,
    TRANSFORMS,
    attack,
    change_texts,
    guided_noise,
    random_noise,
    transform,
)
from idc_core.perturbation.attacks import Attack, Preset
from idc_core.perturbation.corruptions import CITATION, CORRUPTIONS, SEVERITY, corrupt
from idc_core.perturbation.corruptions.registry import Corruption
from idc_core.perturbation.inputs import SHARE, Pictures, check_seed
from idc_core.perturbation.noise import DEVIATION
from idc_core.perturbation.texts import TextChange
from idc_core.perturbation.transforms import Transform
from idc_core.suites.attacked import cached_block
from idc_core.suites.suite import Positions, ProvenanceStep, Suite, SuitePart, content_address, original, union

_Family = Literal["original", "noise", "transform", "text", "corruption", "attack"]

_SLOW_BLOCK = 64
"""Inputs of one file of what takes long to make: what is lost, at most, when the work is stopped."""

_Apply = Callable[..., Array]
"""Called with (model, inputs, targets, *, numbers, seed, on_progress, **settings), of texts with `reading` as well;
returns inputs of the same shape."""


@dataclass(frozen=True)
class SuiteKind:
    """What a menu, the command line or the documentation says about a kind of suite, and how it is made.

    `symbol` is the paper's, as U_O+S, of our own kinds one like them; `random` says whether the inputs follow from the
    seed; `apply` is None for the original tests.
    """

    name: str
    label: str
    help: str
    citation: str
    symbol: str
    family: _Family
    parameters: tuple[Parameter, ...] = ()
    presets: Mapping[str, Preset] = field(default_factory=dict)
    needs_model: bool = False
    random: bool = False
    apply: _Apply | None = None


_NOISE = (
    Parameter("share", "Share of pixels", "Share of the pixels of an image that get noise.", SHARE, 0.0001, 1.0),
    Parameter(
        "deviation", "Strength", "Standard deviation of the noise, share of the value range.", DEVIATION, 0.01, 10
    ),
)
_PAPER = "Gerasimou, Eniser, Sen, Cakan, ICSE 2020, RQ2"


def _attacked(name: str) -> _Apply:
    def apply(model: nn.Module, inputs: Pictures, targets: Array, **settings: Any) -> Pictures:
        result = attack(model, inputs, targets, name, **settings)
        if not result.complete:
            raise CancelledError(f"Stopped on request while {len(inputs)} inputs were attacked by {name}.")
        return result.inputs

    return apply


_OF_THE_TESTS = {
    kind.name: kind
    for kind in (
        SuiteKind("original", "Original tests", "The tests as they are.", _PAPER, "U_O", "original"),
        SuiteKind(
            "noise",
            "Random noise",
            "Gaussian noise on a few random pixels of every test.",
            _PAPER,
            "U_O+S",
            "noise",
            _NOISE,
            random=True,
            apply=lambda model, inputs, targets, *, on_progress, **settings: random_noise(inputs, **settings),
        ),
        SuiteKind(
            "guided",
            "Relevance-guided noise",
            "The same noise on the pixels with the highest relevance.",
            _PAPER,
            "U_O+DI",
            "noise",
            _NOISE,
            needs_model=True,
            random=True,
            apply=lambda model, inputs, targets, **settings: guided_noise(model, inputs, **settings),
        ),
    )
}


def _of_transform(one: Transform) -> SuiteKind:
    citation, symbol = "Tian et al., ICSE 2018", f"U_O+{one.name}"
    return SuiteKind(
        one.name,
        one.label,
        one.help,
        citation,
        symbol,
        "transform",
        one.parameters,
        random=one.random,
        apply=lambda model, inputs, targets, **settings: transform(inputs, one.name, **settings),
    )


def _of_text_change(one: TextChange) -> SuiteKind:
    return SuiteKind(
        one.name,
        one.label,
        one.help,
        one.citation,
        f"U_O+{one.name}",
        "text",
        one.parameters,
        random=True,
        apply=lambda model, inputs, targets, *, on_progress, **settings: change_texts(
            inputs, name=one.name, **settings
        ),
    )


def _of_corruption(one: Corruption) -> SuiteKind:
    return SuiteKind(
        one.name,
        one.label,
        one.help,
        CITATION,
        f"U_O+{one.name}",
        "corruption",
        (SEVERITY,),
        random=one.random,
        apply=lambda model, inputs, targets, **settings: corrupt(inputs, one.name, **settings),
    )


def _of_attack(one: Attack) -> SuiteKind:
    return SuiteKind(
        one.name,
        one.label,
        one.help,
        one.citation,
        f"U_O+{one.name.upper()}",
        "attack",
        one.parameters,
        one.presets,
        needs_model=True,
        random=one.random,
        apply=_attacked(one.name),
    )


class _SuiteKinds(Mapping[str, SuiteKind]):
    """Kinds of suites by name, as menus show them: the tests, noise, transforms, texts, corruptions, attacks."""

    def _all(self) -> Registry[SuiteKind]:
        transforms = {name: _of_transform(entry) for name, entry in TRANSFORMS.items()}
        texts = {name: _of_text_change(entry) for name, entry in TEXT_CHANGES.items()}
        corruptions = {name: _of_corruption(entry) for name, entry in CORRUPTIONS.items()}
        attacks = {name: _of_attack(entry) for name, entry in ATTACKS.items()}
        return Registry("kind of suite", {**_OF_THE_TESTS, **transforms, **texts, **corruptions, **attacks})

    def __getitem__(self, name: str) -> SuiteKind:
        return self._all()[name]

    def get(self, name: str, default: Any = None, /) -> Any:
        """Return a kind, or the default where there is none."""
        return self._all().get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._all()

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def values(self) -> ValuesView[SuiteKind]:
        """Return all kinds, gathered once: one by one, each would gather all."""
        return self._all().values()

    def items(self) -> ItemsView[str, SuiteKind]:
        """Return all kinds with their names, gathered once."""
        return self._all().items()


SUITES = _SuiteKinds()
"""Kinds of suites by name; what is entered into a registry of perturbations is here at once."""


def make_suite(
    name: str,
    test: Dataset,
    model: nn.Module | None = None,
    *,
    with_original: bool = True,
    seed: int = 0,
    preset: str | None = None,
    **settings: object,
) -> Suite:
    """Make a suite of a data set: the original tests (unless not `with_original`), and what is made of each of them.

    `name` is a key of `SUITES`; all else as in `perturbed`, whose errors it raises.
    """
    start = original(test)
    kind = SUITES[name]
    if kind.apply is None:
        settle((), settings, kind.label)
        return start
    made = perturbed(start, name, model, seed=seed, preset=preset, **settings)
    return union([start, made], name, f"{made.label} ({kind.symbol})") if with_original else made


def perturbed(
    source: Suite,
    name: str,
    model: nn.Module | None = None,
    *,
    seed: int = 0,
    preset: str | None = None,
    **settings: object,
) -> Suite:
    """Make one new input of each input of a suite; inputs are made when they are asked for.

    `name` is a key of `SUITES` other than "original", `settings` are its parameters, `preset` names values of an
    attack's. Relevance-guided noise and attacks need the `model`, not to be trained further while the suite is used;
    changes of texts need a suite of texts.
    What is random depends on `seed` and the input's origin alone (its position where it has none). Raises SettingError
    if there is no such kind, preset or parameter, a value is outside its range, or the network is missing.

    Attacks are made in blocks of `_SLOW_BLOCK` inputs and kept on disk (`cached_block`): take a subset first and attack
    it, rather than the other way round. All else is made anew whenever it is asked for.
    """
    kind = SUITES[name]
    if kind.apply is None:
        raise SettingError("The original tests are not made of others; use idc_core.suites.original.")
    if kind.needs_model and model is None:
        raise SettingError(f"{kind.label} looks into the network: pass model.")
    if kind.family == "text" and source.reading is None:
        raise SettingError(
            f"{kind.label} changes words: it is for texts that are read as whole words or characters, which "
            f"{source.label!r} does not hold."
        )
    if preset is not None and preset not in kind.presets:
        raise SettingError(f"{kind.label} has no preset {preset!r}; its presets: {', '.join(kind.presets) or 'none'}.")
    values = settle(kind.parameters, {**(kind.presets[preset].settings if preset else {}), **settings}, kind.label)
    seed = check_seed(seed)
    network = fingerprint_of(model) if kind.needs_model and model is not None else ""
    step = ProvenanceStep(name, kind.label, values, seed, network)
    made = _maker(source, kind, model, step)
    return replace(
        source,
        name=name,
        label=kind.label,
        provenance=(*source.provenance, step),
        parts=(SuitePart(content_address(source.fingerprint, _key(step)), len(source), made, source.at_a_time),),
    )


def _key(step: ProvenanceStep) -> tuple[object, ...]:
    return step.recipe, tuple(sorted(step.settings.items())), step.seed, step.model


def _maker(
    source: Suite, kind: SuiteKind, model: nn.Module | None, step: ProvenanceStep
) -> Callable[[Positions, Progress | None], Array]:
    numbers = np.where(source.origin >= 0, source.origin, np.arange(len(source)))
    reading = {"reading": source.reading} if kind.family == "text" else {}

    def apply(positions: Positions, inputs: Array, on_progress: Progress | None) -> Array:
        if kind.apply is None or not len(positions):
            return np.empty(inputs.shape, np.float32 if inputs.dtype.kind == "f" else inputs.dtype)
        return kind.apply(
            model,
            inputs,
            source.targets[positions],
            numbers=numbers[positions],
            seed=step.seed,
            on_progress=on_progress,
            **reading,
            **step.settings,
        )

    def make(positions: Positions, on_progress: Progress | None) -> Array:
        return apply(positions, source.take(positions), on_progress)

    def make_or_read(positions: Positions, on_progress: Progress | None) -> Array:
        pictures = np.empty((len(positions), *source.shape), np.float32)
        for block in np.unique(positions // _SLOW_BLOCK):
            first = int(block) * _SLOW_BLOCK
            rows = np.arange(first, min(first + _SLOW_BLOCK, len(source)), dtype=np.int64)
            inputs = source.take(rows)
            key = (_key(step), source.targets[rows].tolist(), numbers[rows].tolist())
            made = cached_block(inputs, key, partial(apply, rows, inputs, on_progress))
            mine = np.flatnonzero(positions // _SLOW_BLOCK == block)
            pictures[mine] = made[positions[mine] - first]
        return pictures

    return make_or_read if kind.family == "attack" else make
