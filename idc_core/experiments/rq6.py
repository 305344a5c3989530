"""RQ6: whether training with inputs that raise IDC helps more than with as many random ones, or with none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from numpy.typing import NDArray
from torch import nn

from idc_core.analysis.analysis import Analysis
from idc_core.cache import UnitFolder, runs_folder
from idc_core.datasets import Dataset
from idc_core.datasets.dataset import Task
from idc_core.errors import CancelledError, SettingError
from idc_core.experiments.candidates import CLUSTERED, NONE, RAISING, RANDOM, Candidates, Settings
from idc_core.experiments.random_neurons import Seeds, check_seeds
from idc_core.experiments.retraining_results import Retraining, Unit
from idc_core.experiments.robustness import Examples, Test, retrain, usual_recipe
from idc_core.models.weights import fingerprint
from idc_core.perturbation import attack, guided_noise, random_noise
from idc_core.progress import Progress
from idc_core.suites.suite import content_address

ADDITIONS = {NONE: "nothing added", RANDOM: "as many random perturbed inputs", RAISING: "inputs that raise IDC"}
"""The additions by name, for a person."""

TESTS = {
    "clean": "tests as they are",
    "noise": "random noise",
    "guided": "relevance-guided noise",
    "fgsm": "FGSM on the network as it was",
    "bim": "BIM on the network as it was",
    "fgsm-anew": "FGSM on each retrained network",
}
"""The tests by name, for a person."""

MOST_ATTACKED = 2_000
"""Tests that are attacked: the first ones."""

BIM_STEPS = 10

APART = 1_000_003
"""Added to the seed of the tests' noise, so that no test gets the very noise of an input that was added."""


def make_tests(
    model: nn.Module, test: Dataset, settings: Settings, *, on_progress: Progress | None = None
) -> dict[str, Test]:
    """Make the tests: as they are, with noise, with noise on the most relevant pixels, and for classifiers attacked.

    Parameters
    ----------
    model : Module
        The network as it is before retraining: relevance and fixed attacks are its own.
    test : Dataset
        Pictures.
    settings : Settings
    on_progress : Progress, optional

    Returns
    -------
    dict of str to Test
        By name, a key of `TESTS`. "fgsm-anew" is a function that attacks the network it is given.

    Raises
    ------
    DataError
        If the tests are no pictures.
    CancelledError
        If `on_progress` returned False.
    """
    noise: dict[str, Any] = {"share": settings.share, "deviation": settings.deviation, "seed": APART}
    targets = test.targets
    found: dict[str, Test] = {
        "clean": (test.inputs, targets),
        "noise": (random_noise(test.inputs, numbers=test.ids, **noise), targets),
        "guided": (guided_noise(model, test.inputs, numbers=test.ids, on_progress=on_progress, **noise), targets),
    }
    if test.task != "classification":
        return found
    some = slice(0, MOST_ATTACKED)
    attacked = partial(_attacked, inputs=test.inputs[some], targets=targets[some], epsilon=settings.epsilon)
    found["fgsm"] = attacked(model, "fgsm", on_progress=on_progress)
    found["bim"] = attacked(model, "bim", on_progress=on_progress)
    found["fgsm-anew"] = partial(attacked, name="fgsm")
    return found


def _attacked(
    model: nn.Module,
    name: str,
    inputs: NDArray[Any],
    targets: NDArray[Any],
    epsilon: float,
    on_progress: Progress | None = None,
) -> Examples:
    steps: dict[str, Any] = {"step": 2 * epsilon / BIM_STEPS, "steps": BIM_STEPS} if name == "bim" else {}
    result = attack(model, inputs, targets, name, epsilon=epsilon, on_progress=on_progress, **steps)
    if not result.complete:
        raise CancelledError(f"Stopped on request while {len(inputs)} tests were attacked by {name}.")
    return result.inputs, targets


def test_names(task: Task) -> tuple[str, ...]:
    """Return the names of the tests that `make_tests` makes: attacks are on classifiers."""
    return tuple(TESTS) if task == "classification" else ("clean", "noise", "guided")


def gathered(
    model: nn.Module, train: Dataset, settings: Settings, seeds: Seeds, units: dict[tuple[str, int], Unit]
) -> Retraining:
    """Return finished units of a run, by addition and seed, as its result so far."""
    start = settings.start
    steps = len(train) // min(usual_recipe(model, start).batch, len(train))
    return Retraining(
        tuple(ADDITIONS),
        check_seeds(seeds),
        test_names(train.task),
        train.task,
        settings.epochs,
        steps,
        len(train),
        start,
        units,
    )


def run_store(model: nn.Module, train: Dataset, test: Dataset, settings: Settings) -> UnitFolder:
    """Return the folder of a run's finished units; it follows from network, data and settings."""
    data = [(one.fingerprint, len(one)) for one in (train, test)]
    asked = {one.name: getattr(settings, one.name) for one in fields(settings)}
    for one in fields(settings):
        # Left out where it is as usual: runs from before these could be set are found again.
        if one.name in CLUSTERED and asked[one.name] == one.default:
            del asked[one.name]
    return UnitFolder(runs_folder() / "rq6" / content_address(fingerprint(model), data, asked))


@dataclass(frozen=True, eq=False)
class RQ6:
    """A run that is ready to begin.

    Attributes
    ----------
    model, train, settings
        As given.
    candidates : Candidates
    tests : dict of str to Test
    store : UnitFolder
    """

    model: nn.Module
    train: Dataset
    settings: Settings
    candidates: Candidates
    tests: dict[str, Test]
    store: UnitFolder

    @staticmethod
    def prepare(
        model: nn.Module,
        train: Dataset,
        test: Dataset,
        learnt: Analysis,
        settings: Settings,
        *,
        on_progress: Progress | None = None,
    ) -> RQ6:
        """Make the tests, and what makes the additions.

        Raises
        ------
        SettingError
            If `learnt` is of another layer, m or clustering than `settings`.
        IdcError
            As `make_tests` and `Candidates`.
        """
        if (learnt.layer, learnt.m) != (settings.layer, settings.m):
            raise SettingError(
                f"The cells are of layer {learnt.layer} with m = {learnt.m}; the settings ask for layer "
                f"{settings.layer} with m = {settings.m}."
            )
        if any(learnt.settings[name] != value for name, value in settings.clustered.items()):
            held = {name: learnt.settings[name] for name in CLUSTERED}
            raise SettingError(f"The cells' neurons were clustered by {held}; the settings say {settings.clustered}.")
        candidates = Candidates(model, train, learnt, settings)
        tests = make_tests(model, test, settings, on_progress=on_progress)
        return RQ6(model, train, settings, candidates, tests, run_store(model, train, test, settings))

    def run(
        self,
        seeds: int | tuple[int, ...] = 5,
        additions: tuple[str, ...] = tuple(ADDITIONS),
        *,
        on_result: Callable[[str, int, Unit], None] | None = None,
        on_progress: Progress | None = None,
    ) -> Retraining:
        """Retrain; units that are in the store are not run again.

        Raises
        ------
        IdcError
            As `retrain` and `Candidates.pool`.
        """
        wanted = {name: addition for name, addition in self.candidates.additions().items() if name in additions}
        return retrain(
            self.model,
            self.train,
            wanted,
            self.tests,
            seeds=seeds,
            epochs=self.settings.epochs,
            start=self.settings.start,
            store=self.store,
            on_result=on_result,
            on_progress=on_progress,
        )
