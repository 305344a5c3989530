"""What corrupted tests cover beyond others by each criterion, beside the same tests as they are; how much is valid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from idc_core.base.arrays import Floats
from idc_core.base.progress import Progress, report
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import Criterion
from idc_core.coverage.streamed import fit_all, profile_all, update_all
from idc_core.datasets import Dataset
from idc_core.errors import DataError
from idc_core.evidence.validity import REJECTED
from idc_core.filling import fit_judge
from idc_core.models.network import Network
from idc_core.perturbation import CORRUPTIONS, corrupt
from idc_core.perturbation.inputs import Pictures, as_pictures
from idc_core.store.cache import Record
from idc_core.worth.measuring import usual_criterion
from idc_core.worth.validity import Gain, valid_gain


@dataclass(frozen=True)
class CorruptionSettings:
    """Which tests are corrupted, and how.

    Attributes
    ----------
    inputs : int
        Tests that are added, as they are and corrupted, to one half of the pool; they are of the other half.
    severities : tuple of int
        1 to 5, of each corruption.
    seed : int
    """

    inputs: int = 200
    severities: tuple[int, ...] = (1, 2, 3, 4, 5)
    seed: int = 0


def corrupted_gains(
    model: Network,
    train: Dataset,
    pool: Dataset,
    names: Sequence[str],
    settings: CorruptionSettings | None = None,
    *,
    on_progress: Progress | None = None,
) -> Record:
    """Count what corrupted tests cover beyond one half of a pool, and what the same tests cover as they are.

    Criteria have their default settings. A detector is fitted to training inputs and calibrated on that half.

    Returns
    -------
    dict
        "inputs", "tests": how many are added, and to how many; "detector": its name; "bad": the share of known-bad
        inputs that it accepts; "refused": the share that it refuses of the tests as they are ("0") and at each severity
        (mean over the corruptions); "gains": by criterion, for the same keys and by corruption (mean over the
        severities) the mean number of new targets and that of those which only refused inputs reach.

    Raises
    ------
    DataError
        If the inputs are no pictures, no criterion has targets, or there are fewer than 100 tests in that half.
    """
    settings = settings or CorruptionSettings()
    random = np.random.default_rng(settings.seed).permutation(len(pool))
    half = len(pool) // 2
    base, added = pool.only(random[:half]), pool.only(random[half : half + settings.inputs])
    judge = fit_judge(model, model.card.default_layer, train, base, seed=settings.seed, on_progress=on_progress)
    counted = _Counted([usual_criterion(model, name) for name in names], train, base, on_progress)

    def measured(pictures: Pictures) -> tuple[list[Gain], float]:
        p = judge.p(pictures)
        return counted.gains(pictures, p), float((p <= REJECTED).mean())

    found = {("", 0): measured(np.array(as_pictures(added.inputs)))}
    steps = [(name, severity) for name in CORRUPTIONS for severity in settings.severities]
    for done, (name, severity) in enumerate(steps):
        report(on_progress, done, len(steps), f"tests corrupted: {CORRUPTIONS[name].label}")
        made = corrupt(added.inputs, name, severity, seed=settings.seed, numbers=added.ids)
        found[name, severity] = measured(made)
    levels = (0, *settings.severities)
    kept = [place for place, total in enumerate(counted.totals) if total != 0]
    if not kept:
        raise DataError(f"Of the criteria {', '.join(names)} none has targets, of which new ones can be counted.")
    parts = {str(level): [one for (_, at), one in found.items() if at == level] for level in levels}
    of_kind = {name: [one for (what, _), one in found.items() if what == name] for name in CORRUPTIONS}
    return {
        "inputs": len(added),
        "tests": half,
        "detector": judge.validity.detector,
        "bad": judge.validity.bad.share,
        "refused": {level: float(np.mean([refused for _, refused in part])) for level, part in parts.items()},
        "gains": {
            names[place]: {key: _mean([gains[place] for gains, _ in part]) for key, part in (parts | of_kind).items()}
            for place in kept
        },
    }


def _mean(gains: Sequence[Gain]) -> list[float]:
    return [round(float(np.mean([getattr(gain, what) for gain in gains])), 3) for what in ("gained", "invalid")]


class _Counted:
    """Criteria that are fitted and know what the tests cover."""

    def __init__(
        self, criteria: Sequence[Criterion], train: Dataset, base: Dataset, on_progress: Progress | None
    ) -> None:
        self.criteria = criteria
        fit_all(criteria, train, on_progress=on_progress)
        self.known: list[Profiles] = profile_all(criteria, base.inputs, on_progress=on_progress)
        self.totals = [known.total for known in self.known]
        update_all(criteria, base.inputs, on_progress=on_progress)  # clusters of what comes next go on from theirs

    def gains(self, pictures: Pictures, p: Floats) -> list[Gain]:
        """Return what pictures cover beyond the tests, by criterion; nothing where it has no targets."""
        added = profile_all(self.criteria, pictures)
        return [
            Gain(0, 0) if known.total == 0 else valid_gain(known, more, p)
            for known, more in zip(self.known, added, strict=True)
        ]
