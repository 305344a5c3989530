"""DeepXplore's Table 12: how long a search takes until two LeNet-1 differ that were trained almost alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from idc_core.base.progress import Progress, report
from idc_core.base.threads import number
from idc_core.datasets import Dataset
from idc_core.errors import CancelledError, SettingError
from idc_core.experiments.beside import Beside, counted, repeated
from idc_core.experiments.deepxplore.trained_networks import trained_network
from idc_core.generation import differential_search
from idc_core.models.entry import Recipe
from idc_core.models.lenet import LeNet
from idc_core.models.network import Network
from idc_core.models.registry import find_entry
from idc_core.models.weights import fingerprint
from idc_core.store.cache import Record, stored

FORMAT = 1
"""Goes up when the numbers of a record change."""

_STEP, _MOST = 1.0, 600
"""Grey levels of a step and most steps: light has been tried from end to end, both ways, after 510."""


@dataclass(frozen=True)
class NearNetwork:
    """How a network differs from the control: fewer training inputs, more filters, more epochs, another seed."""

    what: str
    difference: int
    less: int = 0
    filters: int = 0
    epochs: int = 0
    seed: int = 0

    @property
    def case(self) -> str:
        """The row of the table."""
        return f"{self.what}, {self.difference}"


_SAMPLES, _FILTERS, _EPOCHS = "training inputs left out", "filters more", "epochs more"

NEAR = (
    *(NearNetwork(_SAMPLES, one, less=one) for one in (1, 100, 1_000, 10_000)),
    *(NearNetwork(_FILTERS, one, filters=one) for one in (1, 2, 3, 4)),
    *(NearNetwork(_EPOCHS, one, epochs=one) for one in (5, 10, 20)),
    NearNetwork("another training seed", 1, seed=1),
)
"""Networks beside the control. Epochs 40 is left out: it alone takes as long as four of the others."""

PUBLISHED = {
    **{f"{_SAMPLES}, {one}": steps for one, steps in ((100, 616.1), (1_000, 503.7), (10_000, 256.9))},
    **{f"{_FILTERS}, {one}": steps for one, steps in ((1, 69.6), (2, 53.9), (3, 33.1), (4, 18.7))},
    **{f"{_EPOCHS}, {one}": steps for one, steps in ((5, 453.8), (10, 433.9), (20, 348.7))},
}
"""Mean iterations to the first difference; within 1,000 none came with one training input left out."""


def near_networks(
    name: str,
    train: Dataset,
    test: Dataset,
    near: Sequence[NearNetwork] = NEAR,
    size: int = 100,
    recipe: Recipe | None = None,
    on_progress: Progress | None = None,
) -> list[Beside]:
    """Search, from the same `size` tests, for differences between a control and each of several networks like it.

    `name` is a LeNet's of the registry; `recipe` by default its own. A search starts from tests on which both agree,
    and takes steps of one grey level by light. Networks that would have no training input are left out. Trained
    networks and searches are kept. CancelledError if `on_progress` returned False.

    Notes
    -----
    K. Pei et al., DeepXplore, SOSP 2017, Table 12: 100 seeds, 60,000 samples and 10 epochs for the control. All
    networks are of one seed: of one shape they have the same first weights, and the order of inputs is the same, of
    which batches lack those that are left out. Departures: the learning rate falls to zero over the epochs, so that
    more epochs are another training from its start; the step is of one grey level.
    """
    chosen = recipe or find_entry(name).recipe or Recipe("adamw", 3e-3, batch=128, epochs=10)
    control = _trained(name, train, NearNetwork("control", 0), chosen, on_progress)
    rows: list[Beside] = []
    near = [one for one in near if one.less < len(train)]
    for done, one in enumerate(near):
        report(on_progress, done, len(near), one.case)
        other = _trained(name, train, one, chosen, on_progress)
        found = _differences(control, other, test, size, on_progress)
        steps = found["steps"]
        rows.append(counted("Table 12", one.case, "seeds with a difference", len(steps), found["seeds"]))
        paper = PUBLISHED.get(one.case)
        rows.append(repeated("Table 12", one.case, "steps to a difference", "steps", steps, paper))
    return rows


def _trained(name: str, train: Dataset, one: NearNetwork, recipe: Recipe, on_progress: Progress | None) -> Network:
    """Return a network that differs from the control as told."""
    about = f"{name} with {one.filters} more filters" + (f" and without {one.less} inputs" if one.less else "")
    recipe = replace(recipe, epochs=recipe.epochs + one.epochs)
    build = partial(_built, name, one.filters)
    return trained_network(build, about, train, recipe, one.seed, on_progress, without=one.less)


def _built(name: str, filters: int) -> Network:
    """Return a fresh LeNet with so many filters more in each of its convolutions."""
    network = find_entry(name).build()
    if not isinstance(network, LeNet):
        raise SettingError(f"Networks with more filters are made of a LeNet; {name} is none.")
    if not filters:
        return network
    sizes = {key: len(value) for key, value in network.state_dict().items()}
    channels = (sizes["conv1.weight"] + filters, sizes["conv2.weight"] + filters)
    return LeNet(channels, [sizes[f"{layer}.weight"] for layer in network.dense], int(network.conv1.padding[0]))


def _differences(control: Network, other: Network, test: Dataset, size: int, on_progress: Progress | None) -> Record:
    """Search from tests that both networks answer alike, and return seeds and steps as plain values."""
    key = {
        "format": FORMAT,
        "threads": number(),
        "networks": [fingerprint(control), fingerprint(other)],
        "test": test.fingerprint,
        "size": size,
        "step": _STEP,
        "most": _MOST,
    }
    return stored("near_differences", key, partial(_searched, control, other, test, size, on_progress))


def _searched(control: Network, other: Network, test: Dataset, size: int, on_progress: Progress | None) -> Record:
    order = np.random.default_rng(0).permutation(len(test))[: 2 * size]
    found = differential_search(
        [control, other],
        test.inputs[order],
        "light",
        objective="scores",
        step=_STEP,
        iterations=_MOST,
        on_progress=on_progress,
    )
    if found.stopped:
        raise CancelledError("Stopped on request while differences were searched for.")
    agree = np.flatnonzero((found.seed_predictions == found.seed_predictions[:, :1]).all(1))[:size]
    steps = dict(zip(found.seed_index.tolist(), found.iterations.tolist(), strict=True))
    return {"seeds": len(agree), "steps": [steps[one] for one in agree.tolist() if one in steps]}
