"""Attacks against foolbox called directly.

LeNet-5 and the digits. Ours also take the answers before and after, and the size of every change; foolbox's call checks
which inputs are fooled. Carlini-Wagner is also measured on correctly classified MNIST tests drawn at random: what it
achieves, not only how long it takes.
"""

import time
from functools import partial
from typing import Any

import foolbox
import numpy as np
import torch

import idc_core as idc
from benchmarks.measure import Row, few, medians

LIBRARY = {
    "fgsm": (foolbox.attacks.LinfFastGradientAttack, {}, 0.3, 540),
    "bim": (foolbox.attacks.LinfBasicIterativeAttack, {"abs_stepsize": 0.1, "steps": 10}, 0.3, 540),
    "pgd": (foolbox.attacks.LinfPGD, {"abs_stepsize": 0.01, "steps": 40}, 0.3, 256),
    "deepfool": (foolbox.attacks.L2DeepFoolAttack, {}, None, 128),
    "cw": (
        foolbox.attacks.L2CarliniWagnerAttack,
        {"binary_search_steps": 5, "steps": 100, "stepsize": 0.1, "initial_const": 1.0},
        None,
        64,
    ),
}
"""Foolbox's attack with the settings of ours, its epsilon, and how many inputs it gets."""

OURS: dict[str, dict[str, Any]] = {"cw": {"preset": "sensible"}}


MNIST_TESTS = few(256)
BATCH = 64
"""Inputs of one call on MNIST, for both."""


def on_digits(name: str) -> list[Row]:
    """Attack tests of the digits."""
    model, digits = idc.load_model("lenet5-digits"), idc.load_dataset("digits")
    network = foolbox.PyTorchModel(model, bounds=(0, 1), device="cpu")
    kind, settings, epsilon, most = LIBRARY[name]
    count = few(most, 16)
    inputs, targets = digits.inputs[:count], digits.targets[:count]
    ours = partial(idc.attack, model, inputs, targets, name, **OURS.get(name, {}))
    theirs = partial(kind(**settings), network, torch.tensor(inputs), torch.tensor(targets), epsilons=epsilon)
    seconds, library = medians(ours, theirs, repeats=5)
    return [Row(f"{name}, {count} digits", seconds, "foolbox", library, at_most=1.1)]


def fooled_on_mnist(name: str, least: float) -> list[Row]:
    """Attack all MNIST tests with epsilon 0.3; say how many of the correctly classified ones are fooled.

    Raises
    ------
    RuntimeError
        If fewer than a share are fooled.
    """
    model, mnist = idc.load_model("lenet5-mnist"), idc.load_dataset("mnist", limit=few(10_000))
    before = time.perf_counter()
    result = idc.attack(model, mnist, name=name)
    seconds = time.perf_counter() - before
    right = int((result.before == result.targets).sum())
    if result.success_rate < least:
        raise RuntimeError(f"{name} fools {100 * result.success_rate:.1f} %, fewer than {100 * least:.0f} %.")
    note = f"one run; epsilon 0.3 fools {100 * result.success_rate:.1f} % of the {right:,} correctly classified"
    return [Row(f"{name}, {len(mnist):,} MNIST tests", seconds, note=note)]


def carlini_wagner_on_mnist() -> list[Row]:
    """Attack correctly classified tests with the sensible numbers, batch by batch in turns; say what both achieve.

    Raises
    ------
    RuntimeError
        If fewer than 99 % are fooled, or the mean change is above the library's.
    """
    model, mnist = idc.load_model("lenet5-mnist"), idc.load_dataset("mnist", limit=few(10_000, 200))
    network = foolbox.PyTorchModel(model, bounds=(0, 1), device="cpu")
    kind, settings, _, _ = LIBRARY["cw"]
    right = np.flatnonzero(idc.attack(model, mnist, name="fgsm").before == mnist.targets)
    rows = np.random.default_rng(0).permutation(right)[:MNIST_TESTS]
    seconds, fooled, lengths = np.zeros(2), [[], []], [[], []]
    for start in range(0, MNIST_TESTS, BATCH):
        inputs, targets = (values[rows[start : start + BATCH]] for values in (mnist.inputs, mnist.targets))
        before = time.perf_counter()
        ours = idc.attack(model, inputs, targets, "cw", preset="sensible")
        between = time.perf_counter()
        given = torch.tensor(inputs)
        _, found, success = kind(**settings)(network, given, torch.tensor(targets), epsilons=None)
        seconds += (between - before, time.perf_counter() - between)
        length = (found - given).flatten(1).norm(dim=1).numpy()
        for place, (won, moved) in enumerate(((ours.success, ours.l2), (success.numpy(), length))):
            fooled[place].append(won)
            lengths[place].append(moved[won])
    rates = [float(np.concatenate(one).mean()) for one in fooled]
    means = [float(np.concatenate(one).mean()) for one in lengths]
    said = [f"fools {100 * rate:.1f} % at mean L2 {mean:.4f}" for rate, mean in zip(rates, means, strict=True)]
    if rates[0] < 0.99 or means[0] > means[1] + 1e-4:
        raise RuntimeError(f"Carlini-Wagner {said[0]}; foolbox {said[1]}.")
    note = f"one run, batches in turns; ours {said[0]}, foolbox {said[1]}"
    return [Row(f"cw, {MNIST_TESTS} MNIST tests", seconds[0], "foolbox", seconds[1], at_most=1.1, note=note)]


PARTS = {
    **{f"{name}, digits": partial(on_digits, name) for name in LIBRARY},
    "fgsm, MNIST": partial(fooled_on_mnist, "fgsm", 0.80),
    "bim, MNIST": partial(fooled_on_mnist, "bim", 0.95),
    "cw, MNIST": carlini_wagner_on_mnist,
}
