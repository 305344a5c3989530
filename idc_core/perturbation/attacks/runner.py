"""Attacking many inputs: in batches, with progress, keeping what is finished when the work is stopped."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.base.devices import device_of
from idc_core.base.parameters import Value, class_numbers, counted_from, settle, whole_number
from idc_core.base.progress import Progress, report
from idc_core.errors import CancelledError, DataError, SettingError
from idc_core.lrp.session import check_layers, undisturbed
from idc_core.perturbation.attacks.registry import ATTACKS, Attack, Batch
from idc_core.perturbation.attacks.result import AttackResult, sizes
from idc_core.perturbation.attacks.score_model import Scores
from idc_core.perturbation.inputs import Pictures, as_numbers, as_pictures, check_seed
from idc_core.tracing.batch_size import inputs_at_once
from idc_core.tracing.batching import placed
from idc_core.tracing.pieces import Pieces


def attack(
    model: nn.Module,
    inputs: object,
    targets: object = None,
    name: str = "fgsm",
    *,
    goal: object = None,
    preset: str | None = None,
    seed: int = 0,
    numbers: object = None,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
    **settings: object,
) -> AttackResult:
    """Change inputs slightly, so that the network misclassifies them.

    Parameters
    ----------
    model : Module
        A classifier; left as it was found.
    inputs : Tensor, array or Dataset, float (n, C, H, W)
        Pictures in 0..1.
    targets : int (n,), optional
        True classes; a `Dataset` brings its own.
    name : str
        A key of `ATTACKS`.
    goal : int or int (n,), optional
        The classes to be predicted; default: any wrong one (for JSMA one at random for each input).
    preset : str, optional
        Named values of the attack's parameters (`Attack.presets`); `settings` go before them.
    seed : int
        For random starts and random goals.
    numbers : int (n,), optional
        Number of each input in its data set, default its position: its random draws depend on this and the seed alone.
    batch_size : int, optional
        Default: as the attack and the network's size suggest.
    on_progress : Progress, optional
        Called with the number of inputs attacked, often; returning False stops the work.
    **settings
        The attack's parameters; see its entry in `ATTACKS`. Defaults are the paper's.

    Returns
    -------
    AttackResult
        Where the work was stopped, of the inputs whose batch was finished.

    Raises
    ------
    DataError, SettingError
        If the inputs are no pictures in 0..1 with one class each, there is no such attack, preset or parameter, a value
        is outside its range, or the network is no classifier.
    ModelError
        If the network fails on the inputs.
    UnsupportedOperationError
        If an attack needs gradients, and the network's scores have none to the input.

    Notes
    -----
    A network of half precision is attacked in single precision: its inputs are rounded only when it is given them.

    An input's result does not depend on the others in its batch, but for the last digits, which torch's kernels may
    round otherwise in batches of another size: where a gradient is within rounding of 0, FGSM, BIM and PGD may turn a
    value the other way, and JSMA may choose the other of two pairs as good. The walks of the boundary attack and
    HopSkipJump go on from every prediction, so that one rounded otherwise leads to other pictures as close.
    """
    chosen = ATTACKS[name]
    values = _settings(chosen, preset, settings)
    if goal is not None and not chosen.takes_goal:
        raise SettingError(f"{chosen.label} finds the nearest wrong answer; goal cannot be given.")
    pictures = as_pictures(inputs)
    targets = getattr(inputs, "targets", None) if targets is None else targets
    if targets is None:
        raise DataError("Attacks need the true classes: pass targets, one class an input, or a data set.")
    if not len(pictures):
        raise DataError("There are no inputs to attack: expected at least one.")
    seed, ids = check_seed(seed), as_numbers(numbers, len(pictures))
    if batch_size is not None:
        whole_number("batch_size", batch_size, 1)
    check_layers(model, ())
    parts: list[tuple[Pictures, NDArray[np.int64], NDArray[np.int64]]] = []
    with undisturbed(model):
        scores = Scores(model, pictures)
        labels = _check_classes(targets, len(pictures), scores.classes, "targets")
        goals = None if goal is None else _check_classes(goal, len(pictures), scores.classes, "goal")

        def attacked(rows: slice) -> tuple[Pictures, NDArray[np.int64], NDArray[np.int64]]:
            batch = _batch(model, scores, pictures, labels, goals, ids, seed, rows, chosen, on_progress)
            return _attacked(chosen, batch, values)

        try:
            for _, part in Pieces(batch_size or _at_once(model, chosen, scores))(len(pictures), attacked):
                parts.append(part)
            report(on_progress, len(pictures), len(pictures), f"inputs attacked by {chosen.label}")
        except CancelledError:
            pass  # finished batches are the result
    return _result(chosen, pictures, labels, goals, parts, {**values, "seed": seed})


def inputs_attacked_at_once(model: nn.Module, inputs: object, name: str) -> int:
    """Return how many inputs `attack` takes at a time where it is not told."""
    check_layers(model, ())
    with undisturbed(model):
        return _at_once(model, ATTACKS[name], Scores(model, as_pictures(inputs)))


def _at_once(model: nn.Module, chosen: Attack, scores: Scores) -> int:
    return min(chosen.batch_size, inputs_at_once(4 * scores.elements, device=device_of(model)))


def assess(
    model: nn.Module,
    inputs: object,
    attacked: object,
    targets: object,
    name: str,
    *,
    goal: object = None,
    settings: dict[str, Value],
) -> AttackResult:
    """Return the result of an attack whose pictures (n, C, H, W) are there already; few enough for one batch."""
    before, after = as_pictures(inputs), as_pictures(attacked)
    check_layers(model, ())
    with undisturbed(model):
        scores = Scores(model, before)
        labels = _check_classes(targets, len(before), scores.classes, "targets")
        goals = None if goal is None else _check_classes(goal, len(before), scores.classes, "goal")
        first, now = (scores(placed(model, pictures)).argmax(1).cpu().numpy() for pictures in (before, after))
    return _result(ATTACKS[name], before, labels, goals, [(after, first, now)], settings)


def _settings(chosen: Attack, preset: str | None, given: Mapping[str, object]) -> dict[str, Value]:
    if preset is not None and preset not in chosen.presets:
        known = ", ".join(chosen.presets) or "none"
        raise SettingError(f"{chosen.label} has no preset {preset!r}; its presets: {known}.")
    start = {} if preset is None else chosen.presets[preset].settings
    return settle(chosen.parameters, {**start, **given}, chosen.label)


def _batch(
    model: nn.Module,
    scores: Scores,
    pictures: Pictures,
    labels: Tensor,
    goal: Tensor | None,
    numbers: NDArray[np.int64],
    seed: int,
    rows: slice,
    chosen: Attack,
    on_progress: Progress | None,
) -> Batch:
    inputs = placed(model, pictures[rows], in_single=True)
    count, total = len(inputs), len(pictures)

    def tick(share: float) -> None:
        report(on_progress, rows.start + int(share * count), total, f"inputs attacked by {chosen.label}")

    own_goal = None if goal is None else goal[rows].to(inputs.device)
    return Batch(scores, inputs, labels[rows].to(inputs.device), own_goal, numbers[rows], seed, tick)


def _attacked(
    chosen: Attack, batch: Batch, values: dict[str, Value]
) -> tuple[Pictures, NDArray[np.int64], NDArray[np.int64]]:
    """Return attacked inputs and the answers before and after."""
    batch.scores.expect(batch.inputs)
    try:
        with torch.enable_grad():
            changed = chosen.run(batch, **values).detach().float().clamp(0, 1)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, AssertionError):
        batch.scores.check_gradient()  # says it where that is the reason
        raise
    before = batch.scores.answers(batch.inputs)
    after = batch.scores(changed.to(batch.inputs.dtype)).argmax(1)
    return changed.contiguous().cpu().numpy(), before.cpu().numpy(), after.cpu().numpy()


def _result(
    chosen: Attack,
    pictures: Pictures,
    labels: Tensor,
    goal: Tensor | None,
    found: list[tuple[Pictures, NDArray[np.int64], NDArray[np.int64]]],
    settings: dict[str, Value],
) -> AttackResult:
    inputs = np.concatenate([part[0] for part in found]) if found else pictures[:0]
    before, after = (
        np.concatenate([part[kind] for part in found]) if found else np.zeros(0, np.int64) for kind in (1, 2)
    )
    done = len(inputs)
    targets = labels[:done].numpy()
    goals = None if goal is None else goal[:done].numpy()
    success = after != targets if goals is None else after == goals
    return AttackResult(
        chosen.name,
        inputs,
        targets,
        goals,
        before,
        after,
        success,
        *sizes(pictures[:done], inputs),
        settings,
        len(pictures),
    )


def _check_classes(values: object, count: int, classes: int, what: str) -> Tensor:
    """Return one class in 0..classes - 1 per input, int64 (n,); `what` names them in the message."""
    given = torch.tensor(class_numbers(what, values, DataError))
    if given.dim() == 0:
        given = given.expand(count)
    if given.is_floating_point() or given.dtype == torch.bool or tuple(given.shape) != (count,):
        raise DataError(
            f"{what} must be one class, a whole number, for each of {count} inputs, not {given.dtype} of shape "
            f"{tuple(given.shape)}."
        )
    if count and not bool(((given >= 0) & (given < classes)).all()):
        raise DataError(
            f"{what} must lie in 0..{classes - 1}, the network's classes; found {int(given.max())}"
            f"{counted_from(int(given.min()), int(given.max()), classes)}."
        )
    return given.long()
