"""The one training loop, and the figures a card reports."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.base.devices import choose
from idc_core.base.progress import Progress, report
from idc_core.base.ranges import SEED
from idc_core.base.threads import one_thread
from idc_core.errors import ModelError
from idc_core.models.card import ModelCard
from idc_core.models.checkpoints import CheckpointRecorder
from idc_core.models.entry import ModelEntry, Recipe
from idc_core.models.network import Network
from idc_core.models.recipes import AUGMENTATIONS, OPTIMIZERS, SCHEDULES
from idc_core.models.registry import find_entry
from idc_core.models.weights import make_folder, write_weights, write_whole
from idc_core.tracing.batching import runs_channels_last

if TYPE_CHECKING:
    from idc_core.datasets import Dataset

_MEASURING_BATCH = 256
_TRIED_STEPS = 6


def train(
    name: str,
    *,
    out: Path | None,
    seed: int = 0,
    recipe: Recipe | None = None,
    device: str = "cpu",
    recorder: CheckpointRecorder | None = None,
    on_progress: Progress | None = None,
) -> ModelCard:
    """Train a network of the registry by its recipe and write its weights and card; return the card.

    `out` is the folder for `NAME.safetensors` and `NAME.json`, made if absent; None writes neither. `seed` fixes the
    first weights, the order of the inputs, augmentation and dropout; `recipe` is used instead of the network's own.
    `recorder` keeps checkpoints as well, which changes no weights. Figures are measured on the whole training and test
    split. Raises ModelError if the name is unknown or has no recipe, a folder cannot be written to or holds the
    checkpoints of another training, or training diverged; SettingError if the device is not there, the seed is
    negative, or the training has no such epochs; DataError if the data set cannot be had; CancelledError if
    `on_progress` returned False: then no weights are written, and the checkpoints of finished epochs stay.

    Notes
    -----
    On the CPU the same seed gives the same weights on the same kind of processor with the same version of
    torch: training runs on one thread for that reason. Elsewhere the accuracy is the same within the spread of seeds.
    """
    entry = find_entry(name)
    entry = replace(entry, recipe=_recipe(entry) if recipe is None else recipe)
    recipe = _recipe(entry)
    choose(device)
    SEED.check(seed)
    if out is not None:
        make_folder(out)  # now, not after a quarter of an hour of training
    kept = () if recorder is None else recorder.prepare(entry, seed)
    from idc_core.datasets import DATASETS, load_dataset  # here: loading a model needs no readers of data

    training = load_dataset(entry.dataset, "train", on_progress=on_progress)
    test = load_dataset(entry.dataset, "test", on_progress=on_progress)
    licence = f"Weights: {entry.licence}. Data: {DATASETS[entry.dataset].licence}"
    describe = partial(_card, entry, training, test, seed=seed, licence=licence)
    with reproducible(seed, device):
        network = entry.build()

        def keep(epoch: int) -> None:
            if recorder is not None and epoch in kept:
                recorder.write(network, epoch, kept[-1], partial(describe, splits=("test",)))

        keep(0)
        fit(
            network,
            training,
            recipe,
            seed=seed,
            device=device,
            label=entry.label,
            on_epoch=keep,
            on_progress=on_progress,
        )
        _arrange(network.cpu(), torch.contiguous_format)
        card = describe(network)
    if out is not None:
        write_weights(network, out / f"{name}.safetensors")
        write_whole(out / f"{name}.json", card.to_json().encode())
    return card


def fit(
    network: nn.Module,
    data: Dataset,
    recipe: Recipe,
    *,
    seed: int,
    device: str = "cpu",
    label: str = "",
    steps: int | None = None,
    without: int = 0,
    loss_of: Callable[[Tensor, Tensor], Tensor] | None = None,
    on_epoch: Callable[[int], None] | None = None,
    on_progress: Progress | None = None,
) -> None:
    """Train a network in place: the one training loop. It is moved to the device and left there, in training mode.

    Class targets are learnt by cross entropy, angles by mean squared error. `seed` is for the order of the inputs and
    the augmentation; first weights and dropout come from torch's own generator, which `reproducible` seeds. `steps` per
    epoch give data sets of several sizes the same number; default: once through the inputs. `without` so many of the
    last inputs, steps and order are those of all: batches lack what is left out. `loss_of` scores and targets is
    another loss. `on_epoch` is called with the number of epochs done, after each; it must leave the network
    in training mode. Raises ModelError if the loss stops being a finite number.
    """
    generator = torch.Generator().manual_seed(seed)
    augment = AUGMENTATIONS[recipe.augmentation]
    share = SCHEDULES[recipe.schedule]
    loss_of = loss_of or partial(_loss, task=data.task)
    # On the CPU convolutions train about 15 % faster in this layout.
    where = choose(device)
    if runs_channels_last(network.to(where)):
        _arrange(network, torch.channels_last)
    network.train()
    optimizer = OPTIMIZERS[recipe.optimizer](network.parameters(), recipe.learning_rate, recipe.weight_decay)
    batch = min(recipe.batch, len(data))
    each = steps or len(data) // batch
    total = each * recipe.epochs
    for step, chosen in enumerate(islice(_orders(len(data), batch, generator), total)):
        chosen = chosen[chosen < len(data) - without]
        some, targets = torch.from_numpy(data.inputs[chosen]), torch.from_numpy(data.targets[chosen])
        some, targets = augment(some, targets, generator)
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate * share(step, total)
        loss = loss_of(network(some.to(where)), targets.to(where))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = loss.item()
        if not math.isfinite(value):
            raise ModelError(f"Training {label} diverged: loss {value} at step {step + 1} of {total}.")
        report(
            on_progress,
            step + 1,
            total,
            f"Training {label}: epoch {step // each + 1} of {recipe.epochs}, loss {value:.3f}",
        )
        if on_epoch is not None and (step + 1) % each == 0:
            on_epoch((step + 1) // each)


def expected_seconds(name: str, data: Dataset) -> float:
    """Return how long training a network by its recipe takes on this machine as it is now, judged by a few steps."""
    entry = find_entry(name)
    recipe = _recipe(entry)
    moments: list[float] = []

    def note(done: int, total: int, label: str) -> bool:
        moments.append(time.perf_counter())
        return True

    with reproducible(0):
        network = entry.build()
        fit(network, data, replace(recipe, epochs=1), seed=0, steps=_TRIED_STEPS, on_progress=note)
    # The first step also sets up what the others use again; a slow one among the others is the machine's business.
    each = float(np.median(np.diff(moments)))
    return each * recipe.epochs * (len(data) // min(recipe.batch, len(data)))


def measure(network: nn.Module, data: Dataset) -> dict[str, float]:
    """Return `accuracy` as a fraction for classes, or `rmse` in the target's unit for regression, in eval mode."""
    training = network.training
    network.eval()
    try:
        with torch.inference_mode():
            # Copied because torch shares memory with a read-only array only under a warning.
            starts = range(0, len(data), _MEASURING_BATCH)
            pieces = (torch.from_numpy(data.inputs[at : at + _MEASURING_BATCH].copy()) for at in starts)
            outputs = torch.cat([network(some) for some in pieces]).numpy()
    finally:
        network.train(training)
    if data.task == "classification":
        return {"accuracy": float(np.mean(outputs.argmax(1) == data.targets))}
    errors = outputs[:, 0].astype(np.float64) - data.targets
    return {"rmse": float(np.sqrt(np.mean(errors**2)))}


def _recipe(entry: ModelEntry) -> Recipe:
    if entry.recipe is None:
        raise ModelError(f"{entry.name!r} is not trained here, but published with its weights; it has no recipe.")
    return entry.recipe


def _orders(count: int, batch: int, generator: torch.Generator) -> Iterator[NDArray[np.int64]]:
    """Yield the positions of batch after batch without end, all inputs in an order that is new every time.

    A last batch of a few inputs would make a wild step, so each round drops it, a different one each time.
    """
    while True:
        order = torch.randperm(count, generator=generator).numpy()
        for start in range(0, count - batch + 1, batch):
            yield order[start : start + batch]


def _arrange(network: nn.Module, layout: torch.memory_format) -> None:
    """Put the kernels of 2-D convolutions into a memory layout; their values stay."""
    for parameter in network.parameters():
        if parameter.dim() == 4:
            parameter.data = parameter.data.contiguous(memory_format=layout)


def _loss(outputs: Tensor, targets: Tensor, task: str) -> Tensor:
    if task == "regression":
        return F.mse_loss(outputs.squeeze(1), targets)
    return F.cross_entropy(outputs, targets)


@contextmanager
def reproducible(seed: int, device: str = "cpu") -> Iterator[None]:
    """Seed torch and fix its threads, and put both back afterwards.

    How sums are split over threads changes their last bits, and training amplifies those: one thread gives the same
    weights on every machine with the same kind of processor.
    """
    devices = [where] if (where := choose(device)).type == "cuda" else []
    with torch.random.fork_rng(devices=devices), one_thread():
        torch.manual_seed(seed)
        yield


def _card(
    entry: ModelEntry,
    training: Dataset,
    test: Dataset,
    network: Network,
    *,
    seed: int,
    licence: str,
    splits: Sequence[str] = ("test", "train"),
) -> ModelCard:
    data = {"test": test, "train": training}
    metrics = {f"{split}_{key}": value for split in splits for key, value in measure(network, data[split]).items()}
    if entry.task == "regression":
        errors = test.targets.astype(np.float64) - training.targets.mean(dtype=np.float64)
        metrics["test_rmse_of_training_mean"] = float(np.sqrt(np.mean(errors**2)))
    return entry.card(
        network,
        metrics={key: round(value, 5) for key, value in metrics.items()},
        recipe={} if entry.recipe is None else asdict(entry.recipe),
        seed=seed,
        split=f"{len(training):,} training and {len(test):,} test inputs, the fixed split of {entry.dataset}",
        licence=licence,
        versions={"torch": torch.__version__},
    )
