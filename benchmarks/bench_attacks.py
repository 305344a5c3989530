"""Attacks against foolbox called directly.

LeNet-5 and the digits. Ours also take the answers before and after, and the size of every change; foolbox's call checks
which inputs are fooled.
"""

from functools import partial
from typing import Any

import foolbox
import torch

import idc_core as idc
from benchmarks.measure import Row, medians

LIBRARY = {
    "fgsm": (foolbox.attacks.LinfFastGradientAttack, {}, 0.3, 540),
    "bim": (foolbox.attacks.LinfBasicIterativeAttack, {"abs_stepsize": 0.1, "steps": 10}, 0.3, 540),
    "pgd": (foolbox.attacks.LinfPGD, {"abs_stepsize": 0.01, "steps": 40}, 0.3, 256),
    "deepfool": (foolbox.attacks.L2DeepFoolAttack, {}, None, 128),
    "cw": (
        foolbox.attacks.L2CarliniWagnerAttack,
        {"binary_search_steps": 5, "steps": 100, "stepsize": 0.1, "initial_const": 1.0}, None, 64,
    ),
}  # fmt: skip
"""Foolbox's attack with the settings of ours, its epsilon, and how many inputs it gets."""

OURS: dict[str, dict[str, Any]] = {"cw": {"preset": "sensible"}}


def run() -> list[Row]:
    model, digits = idc.load_model("lenet5-digits"), idc.load_dataset("digits")
    network = foolbox.PyTorchModel(model, bounds=(0, 1), device="cpu")
    rows = []
    for name, (kind, settings, epsilon, count) in LIBRARY.items():
        inputs, targets = digits.inputs[:count], digits.targets[:count]
        ours = partial(idc.attack, model, inputs, targets, name, **OURS.get(name, {}))
        theirs = partial(kind(**settings), network, torch.tensor(inputs), torch.tensor(targets), epsilons=epsilon)
        seconds, library = medians(ours, theirs, repeats=5)
        rows.append(Row(f"{name}, {count} digits", seconds, "foolbox", library, at_most=1.1))
    return rows
