"""The suites that a setup can be challenged with, and how each is opened: one catalogue for all pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from idc_core.analysis.filtering import of_classes
from idc_core.base.progress import Progress
from idc_core.errors import SettingError
from studio.jobs import suite_addresses
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View, open_data
from studio.jobs.suite_addresses import SuiteAddress
from studio.state import address, visitor
from studio.state.setup import fitting_data
from studio.text import lower

if TYPE_CHECKING:
    from idc_core.suites import ProvenanceStep, Suite

_SAVED = JobKind("kept", kept=6, lives="everywhere")

_SUITES = "suites"
"""Name in the address: the chosen suites, by commas."""

PERTURBED = "perturbed"
"""Name in the address: of how many tests the made suites are made."""

_ALL_UP_TO, _SMALL = 1000, 32 * 32
"""Pictures of at most `_SMALL` pixels up to which all are changed; of more, as many are drawn at random."""

_ALL_LARGE_UP_TO = 400
"""The same of larger pictures, on which relevance takes longer."""

_UNSURE = 0.9
"""Confidence up to which a test is offered as one of which the network is less sure."""


@dataclass(frozen=True)
class SuiteOption:
    """A suite that can be chosen: its name in the address, label, help, and kind as `suite_style` takes it.

    It `joins` where it is compared together with the original tests (U_O+X), is `judged` where its true classes are
    those of the network, `made` where its inputs are made of the tests, and `within` where it is a part of them.
    """

    name: str
    label: str
    help: str
    kind: str
    joins: bool = True
    judged: bool = True
    made: bool = False
    within: bool = False


def _catalogue(view: View) -> dict[str, SuiteOption]:
    """Return what can be chosen for a setup, by name: kinds, parts of the tests, other data sets, the person's own."""
    return {option.name: option for option in (*_perturbations(view), *_parts(view), *_data_sets(view), *_saved(view))}


def suite_options(view: View) -> dict[str, SuiteOption]:
    """Return the catalogue, and what else the address names: kinds with settings of their own, unions."""
    options = _catalogue(view)
    for name in chosen_names():
        if name not in options:
            described = _described(view, name, options)
            if described is not None:
                options[name] = described
    return options


def chosen_names() -> list[str]:
    """Return the names of the suites that the address asks for."""
    return list(dict.fromkeys(name for name in address.read(_SUITES).split(",") if name))


def keep_names(names: Sequence[str]) -> None:
    """Ask for suites, in the address of all pages."""
    address.keep(_SUITES, ",".join(dict.fromkeys(names)))


def usual(found: Mapping[str, SuiteOption]) -> list[str]:
    """Return which of the suites that are found the setup is compared on when none is named."""
    names = ("noise", "guided") if "noise" in found else ("original~answers=wrong", "original~answers=right")
    return [name for name in names if name in found]


def perturbed_count(view: View) -> int:
    """Return of how many tests the made suites are made."""
    count = address.position(address.read(PERTURBED))
    return min(len(view.chosen), count) if count else usual_count(view)


def usual_count(view: View) -> int:
    """Return of how many tests suites are made when the address does not say."""
    return min(len(view.chosen), _ALL_UP_TO if pixels(view) <= _SMALL else _ALL_LARGE_UP_TO)


def base_suite(view: View) -> Suite:
    """Return the setup's own tests that pass the filter."""
    from idc_core.suites import original, select_tests

    suite = original(view.test)
    return suite if len(view.chosen) == len(view.test) else replace(select_tests(suite, view.chosen), label=suite.label)


def open_suite(waiting: Waiting, view: View, name: str, known: Mapping[str, SuiteOption]) -> Suite:
    """Open one of the `known` `suite_options`, with the original tests first where it joins them.

    Its inputs are made when needed. Raises SettingError or DataError if there is no such suite, a setting is outside
    its range, or no test is left; CancelledError if the person stopped it.
    """
    from idc_core.suites import union

    if name not in known:
        raise SettingError(f"There is no suite {name!r} for this network and these tests. Choose another one.")
    label = known[name].label
    made = [_open(waiting, view, suite_addresses.parse(part)) for part in suite_addresses.split(name)]
    together = [base_suite(view), *made] if known[name].joins else made
    if len(together) == 1:
        return replace(made[0], label=label)
    return union(together, known[name].kind, label)


def _open(waiting: Waiting, view: View, recipe: SuiteAddress) -> Suite:
    """Open what one recipe says, without the original tests."""
    from idc_core.suites import SUITES, find_tests, original, perturbed, sample_tests, select_tests

    if recipe.base in SUITES:
        suite = base_suite(view)
        if SUITES[recipe.base].apply is not None:
            source = sample_tests(suite, perturbed_count(view))
            settings = _settings(view, recipe)
            suite = perturbed(source, recipe.base, view.model, seed=recipe.seed, **settings)
    elif recipe.base in {saved.name for saved in _saved(view)}:
        suite = _of_classes(view, open_kept(waiting, recipe.base))
    else:
        suite = _of_classes(view, original(open_data(waiting, recipe.base, "test")))
        # Classes of other names are as many; whether an answer is right is not asked then.
        suite = replace(suite, class_names=view.test.class_names)
    if not recipe.is_part:
        return suite

    def look_for(report: Progress) -> tuple[NDArray[np.int64], ProvenanceStep]:
        return find_tests(
            suite,
            classes=recipe.classes or None,
            correct={"": None, "right": True, "wrong": False}[recipe.answers],
            confidence=recipe.confidence,
            model=view.model,
            on_progress=report,
        )

    key = (view.card.fingerprint, suite.fingerprint, replace(recipe, settings={}).text)
    return select_tests(suite, *waiting.get(JobKind("parts"), key, "selecting tests", look_for))


def open_kept(waiting: Waiting, name: str) -> Suite:
    """Return a saved suite, read once; the visitor is one who may see it."""
    from idc_core.suites import open_saved

    return waiting.get(_SAVED, name, "reading a saved suite", lambda report: open_saved(name))


def _of_classes(view: View, suite: Suite) -> Suite:
    """Return the tests of the true classes that the setup looks at; other conditions are of its own tests."""
    from idc_core.suites import select_tests

    classes = view.setup.classes
    return select_tests(suite, of_classes(suite.targets, suite.class_names, classes)) if classes else suite


def _settings(view: View, recipe: SuiteAddress) -> dict[str, Any]:
    """Return a kind's settings; a number of pixels as a share of them."""
    settings = dict(recipe.settings)
    if "pixels" in settings:
        settings["share"] = settings.pop("pixels") / pixels(view)
    return settings


def pixels(view: View) -> int:
    """Return how many pixels a test has."""
    return int(np.prod(view.test.inputs.shape[2:]))


def _perturbations(view: View) -> list[SuiteOption]:
    """Return what can be made of the tests: of pictures noise, transforms, corruptions, attacks; of texts changes."""
    from idc_core.datasets.reading import Reading
    from idc_core.suites import SUITES

    families = {"noise", "transform", "corruption"} if view.test.inputs.ndim == 4 else set()
    if view.test.inputs.ndim == 4 and view.correct is not None:
        families.add("attack")
    if Reading.of(view.test) is not None:
        families.add("text")
    return [
        SuiteOption(kind.name, kind.label, kind.help, kind.name, made=True)
        for kind in SUITES.values()
        if kind.family in families
    ]


def _parts(view: View) -> list[SuiteOption]:
    """Offer parts of the tests that exist."""
    if not view.is_classifier or not len(view.chosen):
        return []
    several = [
        (SuiteAddress("original", classes=(int(view.test.targets[view.chosen[0]]),)), "The tests of some classes.")
    ]
    if (view.analysis.confidence[view.chosen] <= _UNSURE).any():
        several.append((SuiteAddress("original", most=_UNSURE), "The tests with low confidence."))
    if view.correct is not None and len(np.unique(view.correct[view.chosen])) == 2:
        several.append((SuiteAddress("original", answers="wrong"), "The misclassified tests."))
        several.append((SuiteAddress("original", answers="right"), "The correctly classified tests."))
    names = view.test.class_names
    return [
        SuiteOption(recipe.text, recipe.words("", names), text, "own", joins=False, within=True)
        for recipe, text in several
    ]


def _data_sets(view: View) -> list[SuiteOption]:
    """Offer other data sets that the network can take."""
    from idc_core.datasets import DATASETS
    from idc_core.models import MODELS
    from idc_core.suites import SAVED

    return [
        SuiteOption(
            name,
            DATASETS[name].label,
            f"The tests of {DATASETS[name].label}.",
            "own",
            joins=False,
            judged=tuple(DATASETS[name].class_names) == view.train.class_names,
        )
        for name in fitting_data(MODELS[view.setup.model])
        if name != view.setup.data and not SAVED.is_id(name)
    ]


def _saved(view: View) -> list[SuiteOption]:
    """Offer the person's own suites that fit, but for the one that is the tests."""
    from idc_core.suites import saved_suites

    return [
        SuiteOption(suite.name, suite.label, f"{suite.inputs:,} tests that you saved.", suite.kind)
        for suite in saved_suites(view.test, visitor.person()).values()
        if suite.name != view.setup.data
    ]


def _described(view: View, name: str, found: dict[str, SuiteOption]) -> SuiteOption | None:
    """Describe a suite that the catalogue does not list; None where it cannot be made of what is listed."""
    try:
        several = [suite_addresses.parse(part) for part in suite_addresses.split(name)]
    except SettingError:
        return None
    whole = SuiteOption("original", "Original tests", "Original tests.", "original", joins=False, within=True)
    bases = [found.get(one.base, whole if one.base == "original" and one.is_part else None) for one in several]
    known = [base for base in bases if base is not None]
    if not several or len(known) < len(several):
        return None
    names = view.test.class_names
    labels = [one.words(base.label, names) for one, base in zip(several, known, strict=True)]
    label = " + ".join([labels[0], *(lower(one) for one in labels[1:])])
    kind = known[-1].kind if known[-1].kind != "original" else "own"
    return SuiteOption(
        name,
        label,
        " ".join(base.help for base in known),
        kind,
        joins=any(base.joins for base in known),
        judged=all(base.judged for base in known),
        made=all(base.made for base in known),
        within=all(base.within for base in known),
    )
