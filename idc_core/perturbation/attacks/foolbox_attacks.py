"""Attacks along the gradient, through foolbox: FGSM, BIM, PGD, DeepFool and Carlini-Wagner."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from idc_core.base.parameters import Parameter
from idc_core.perturbation.attacks.registry import Batch, Preset, register_attack
from idc_core.perturbation.inputs import stream

_EPSILON = Parameter("epsilon", "Epsilon", "Largest change of a value, as a share of its range.", 0.3, 0.001, 1.0)
_USUAL_STEPS = 5
"""Steps after which DeepFool has fooled the network, in most batches."""

_GIT = "GIT_PYTHON_REFRESH"

STEPS_HELP = "More steps find more adversarial inputs and take longer."


@register_attack(
    "fgsm",
    "FGSM",
    "One step along the sign of the gradient: fast, and visible.",
    "Goodfellow, Shlens, Szegedy, ICLR 2015, section 4",
    _EPSILON,
)
def _fgsm(batch: Batch, epsilon: float) -> Tensor:
    # Foolbox's own FGSM, the same step, takes no goal.
    attack = load_foolbox().attacks.LinfBasicIterativeAttack(abs_stepsize=epsilon, steps=1)
    return run_foolbox(batch, attack, calls=1, epsilon=epsilon)


@register_attack(
    "bim",
    "BIM",
    "FGSM in small steps, never further than epsilon from the input.",
    "Kurakin, Goodfellow, Bengio, ICLR workshop 2017, section 2.2",
    _EPSILON,
    Parameter("step", "Step size", "Change per step, as a share of the value range.", 0.1, 0.0005, 1.0),
    Parameter("steps", "Steps", STEPS_HELP, 10, 1, 1000),
    passes=lambda steps, **_: steps,
)
def _bim(batch: Batch, epsilon: float, step: float, steps: int) -> Tensor:
    attack = load_foolbox().attacks.LinfBasicIterativeAttack(abs_stepsize=step, steps=steps)
    return run_foolbox(batch, attack, calls=steps, epsilon=epsilon)


@register_attack(
    "pgd",
    "PGD",
    "BIM from a random start within epsilon of the input.",
    "Madry et al., ICLR 2018, section 2.1",
    _EPSILON,
    Parameter("step", "Step size", "Change per step, as a share of the value range.", 0.01, 0.0005, 1.0),
    Parameter("steps", "Steps", STEPS_HELP, 40, 1, 1000),
    random=True,
    passes=lambda steps, **_: steps,
)
def _pgd(batch: Batch, epsilon: float, step: float, steps: int) -> Tensor:
    foolbox = load_foolbox()

    class Seeded(foolbox.attacks.LinfProjectedGradientDescentAttack):  # type: ignore[misc,name-defined]
        """Foolbox draws one start for the batch; here each input has the start of its own number."""

        def get_random_start(self, x0: Tensor, epsilon: float) -> object:
            away = [
                stream(batch.seed, int(number)).uniform(-epsilon, epsilon, x0.shape[1:]).astype(np.float32)
                for number in batch.numbers
            ]
            return x0 + torch.tensor(np.stack(away)).to(batch.inputs)

    return run_foolbox(batch, Seeded(abs_stepsize=step, steps=steps), calls=steps, epsilon=epsilon)


@register_attack(
    "deepfool",
    "DeepFool",
    "Moves to the nearest decision boundary of the linearised network.",
    "Moosavi-Dezfooli, Fawzi, Frossard, CVPR 2016, algorithm 2",
    Parameter("steps", "Maximum steps", "Inputs that are not fooled by then count as failed.", 50, 1, 500),
    Parameter("candidates", "Classes", "Number of most probable classes whose boundaries are considered.", 10, 2, 1000),
    Parameter("overshoot", "Overshoot", "Distance beyond the boundary, as a share of the way to it.", 0.02, 0.0, 1.0),
    takes_goal=False,
    batch_size=64,
    passes=lambda steps, candidates, **_: 1 + min(steps, _USUAL_STEPS) * (candidates - 1),
)
def _deepfool(batch: Batch, steps: int, candidates: int, overshoot: float) -> Tensor:
    attack = load_foolbox().attacks.L2DeepFoolAttack(steps=steps, candidates=candidates, overshoot=overshoot)
    # A step asks once an alternative class; most batches are done after a few of the steps.
    return run_foolbox(batch, attack, calls=1 + steps * (min(candidates, batch.scores.classes) - 1))


@register_attack(
    "cw",
    "Carlini-Wagner L2",
    "Searches for the smallest change that fools the network: slow, and hardly visible.",
    "Carlini, Wagner, IEEE S&P 2017, section VI.A",
    Parameter(
        "learning_rate",
        "Learning rate",
        "Step size of Adam: larger is faster and less precise.",
        5e-3,
        1e-5,
        1.0,
        logarithmic=True,
    ),
    Parameter("search_steps", "Search steps", "Number of binary search steps for the constant.", 5, 1, 20),
    Parameter("iterations", "Iterations", "Adam steps per search step.", 1000, 1, 10000),
    Parameter(
        "initial_constant",
        "Initial constant",
        "Initial weight of misclassification against the size of the change.",
        1e-2,
        1e-6,
        1e6,
        logarithmic=True,
    ),
    Parameter("confidence", "Confidence", "Margin by which the score of the wrong class must lead.", 0.0, 0.0, 100.0),
    batch_size=64,
    passes=lambda search_steps, iterations, **_: search_steps * iterations,
    presets={
        "paper": Preset(
            "the paper's: learning rate 0.005, constant from 0.01, 1,000 iterations",
            {"learning_rate": 5e-3, "search_steps": 5, "iterations": 1000, "initial_constant": 1e-2},
            "on 64 MNIST tests and LeNet-5 they fool all, with a mean change of 1.35 (L2); with 100 iterations 8 %",
        ),
        "sensible": Preset(
            "sensible: learning rate 0.1, constant from 1, 100 iterations",
            {"learning_rate": 0.1, "search_steps": 5, "iterations": 100, "initial_constant": 1.0},
            "on the same tests they fool all, with 1.36, in a tenth of the steps",
        ),
    },
)
def _carlini_wagner(
    batch: Batch, learning_rate: float, search_steps: int, iterations: int, initial_constant: float, confidence: float
) -> Tensor:
    attack = load_foolbox().attacks.L2CarliniWagnerAttack(
        binary_search_steps=search_steps,
        steps=iterations,
        stepsize=learning_rate,
        confidence=confidence,
        initial_const=initial_constant,
        # Stopping early would go by the loss of the whole batch, so that an input's result would depend on others.
        abort_early=False,
    )
    pictures = run_foolbox(batch, attack, calls=search_steps * iterations)
    # Where it finds nothing, foolbox gives a black picture, which might even count as a success.
    nothing = (pictures == 0).flatten(1).all(1)
    return torch.where(nothing[:, None, None, None], batch.inputs, pictures)


def run_foolbox(batch: Batch, attack: Any, calls: int, **settings: object) -> Tensor:
    """Run one of foolbox's attacks, which asks the network `calls` times at most."""
    foolbox, seeded = load_foolbox(), seeded_tensors(batch.seed)
    network = asked_network(batch, calls, seeded)
    aim = (
        foolbox.criteria.Misclassification(batch.labels)
        if batch.goal is None
        else foolbox.criteria.TargetedMisclassification(batch.goal)
    )
    pictures: Tensor = attack.run(network, seeded(batch.inputs), aim, **settings).raw
    return pictures.detach()


def asked_network(batch: Batch, calls: int, seeded: Any) -> Any:
    """Return the network in foolbox's form; each call tells how far the attack is that asks `calls` times at most."""
    foolbox, asked = load_foolbox(), 0

    def ask(inputs: Tensor) -> object:
        nonlocal asked
        batch.tick(min(1.0, asked / calls))
        asked += 1
        return seeded(batch.scores(inputs))

    dummy = foolbox.models.base.ep.astensor(batch.inputs[:0])
    return foolbox.models.base.ModelWithPreprocessing(ask, bounds=(0, 1), dummy=dummy)


def seeded_tensors(seed: int) -> Any:
    """Return foolbox's kind of tensor with draws that follow from a seed, not from what else the process draws.

    All inputs of a batch get the same draws, so that none depends on the others or on how many there are. What is
    drawn for pictures has five axes where each has several draws, four where it has one, else it is for all of them.
    """
    base: Any = load_foolbox().models.base.ep.PyTorchTensor

    class Seeded(base):  # type: ignore[misc]
        draws = torch.Generator().manual_seed(seed)

        def normal(self, shape: int | tuple[int, ...], mean: float = 0.0, stddev: float = 1.0) -> object:
            return self._drawn(torch.randn, shape, mean, stddev)

        def uniform(self, shape: int | tuple[int, ...], low: float = 0.0, high: float = 1.0) -> object:
            return self._drawn(torch.rand, shape, low, high - low)

        def _drawn(
            self, draw: Callable[..., Tensor], shape: int | tuple[int, ...], start: float, width: float
        ) -> object:
            shape = (shape,) if isinstance(shape, int) else tuple(shape)
            drawn_shape = {5: (shape[0], 1, *shape[2:]), 4: (1, *shape[1:])}.get(len(shape), shape)
            values = draw(drawn_shape, generator=self.draws, dtype=torch.float32).to(self.raw) * width + start
            return type(self)(values.expand(shape).contiguous())

    return Seeded


def load_foolbox() -> Any:
    """Return foolbox, imported when it is first needed: it takes a second."""
    # It asks GitPython for published networks, which refuses to be imported where there is no git.
    setting = os.environ.get(_GIT)
    os.environ[_GIT] = setting or "quiet"
    try:
        import foolbox
    finally:
        if setting is None:
            del os.environ[_GIT]
        else:
            os.environ[_GIT] = setting
    return foolbox
