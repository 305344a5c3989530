"""Time the Adversarial Robustness Toolbox and the engine in turns; for the environment of the peers.

LeNet-5 and the digits. Ours also take the answers before and after, and the size of every change.
"""

import json
import sys
from functools import partial

import numpy as np
import torch
from art.attacks.evasion import FastGradientMethod, ProjectedGradientDescentPyTorch
from art.estimators.classification import PyTorchClassifier

import idc_core as idc
from benchmarks.measure import medians

LIBRARY = {
    "fgsm": partial(FastGradientMethod, eps=0.3, batch_size=512),
    "pgd": partial(
        ProjectedGradientDescentPyTorch,
        eps=0.3,
        eps_step=0.01,
        max_iter=40,
        num_random_init=1,
        batch_size=512,
        verbose=False,
    ),
}
"""Its attacks with the settings of ours."""


def main(name: str, count: int, repeats: int) -> None:
    """Time both on the first digits, and print the result as JSON."""
    model, digits = idc.load_model("lenet5-digits"), idc.load_dataset("digits")
    inputs, targets = digits.inputs[:count], digits.targets[:count]
    network = PyTorchClassifier(
        model, torch.nn.CrossEntropyLoss(), inputs.shape[1:], 10, clip_values=(0.0, 1.0), device_type="cpu"
    )
    attack = LIBRARY[name](network)
    ours, theirs = partial(idc.attack, model, inputs, targets, name), partial(attack.generate, inputs, targets)
    fooled = [float(np.mean(network.predict(changed).argmax(1) != targets)) for changed in (ours().inputs, theirs())]

    def with_answers() -> None:
        network.predict(inputs)
        network.predict(theirs())

    seconds, library, answering = medians(ours, theirs, with_answers, repeats=repeats)
    note = f"ours fools {100 * fooled[0]:.1f} % of all, ART {100 * fooled[1]:.1f} %"
    rows = [
        {"what": f"{name}, {count} digits", "ours": seconds, "theirs": library, "note": note},
        {"what": f"{name}, {count} digits, with ART's answers before and after", "ours": seconds, "theirs": answering},
    ]
    print(json.dumps(rows))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
