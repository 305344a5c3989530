"""Checkpoints: a network's weights between the epochs of its training, those shipped and those kept by a person.

A checkpoint is a description, `epoch-004.json`, and the weights that it names, `epoch-004.safetensors`. The weights are
written first, both whole or not at all: a description that is there is of an epoch that is finished. A training that
is stopped leaves the epochs it has finished.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from idc_core.base.files import SHIPPED, cache_folder
from idc_core.errors import DataError, ModelError, SettingError
from idc_core.guarded import seal_text
from idc_core.models.card import ModelCard
from idc_core.models.registry import find_entry

if TYPE_CHECKING:
    from idc_core.models.entry import ModelEntry
    from idc_core.models.network import Network

_Stored = Literal["float32", "float16", "seed", "weights"]
"""How weights are kept: in a file, as the seed they follow from, or as the project's own weights."""

SHIPPED_FOLDER = SHIPPED / "assets" / "checkpoints"
"""Where the checkpoints that come with the project are, a folder a network."""

_EVERY = 10
"""Trainings of so many epochs keep each of them; longer ones keep those that double."""


def kept_folder(name: str) -> Path:
    """Return where a person's own trainings of a network keep checkpoints, in IDC_HOME."""
    return cache_folder() / "checkpoints" / name


def _usual_epochs(total: int) -> tuple[int, ...]:
    """Return every epoch of a short training; of one longer than `_EVERY` 0, 1, 2, 4, 8 and so on, and the last."""
    if total <= _EVERY:
        return tuple(range(total + 1))
    doubling = [2**power for power in range(total.bit_length()) if 2**power < total]
    return (0, *doubling, total)


def _chosen_epochs(total: int, wanted: tuple[int, ...]) -> tuple[int, ...]:
    """Return the first and last epoch and those asked for, or the usual ones; SettingError if there is none such."""
    beyond = [epoch for epoch in wanted if not 0 <= epoch <= total]
    if beyond:
        raise SettingError(f"This training has the epochs 0 to {total}, not {', '.join(map(str, beyond))}.")
    return tuple(sorted({0, *wanted, total})) if wanted else _usual_epochs(total)


@dataclass(frozen=True)
class Checkpoint:
    """A network after some epochs of its training; the card's metrics are of the test split alone.

    `trained` is the fingerprint of the weights as training left them; `card.fingerprint` is of those that are opened,
    which differ where they were rounded to 16 bits.
    """

    epoch: int
    epochs: int
    trained: str
    stored: _Stored
    card: ModelCard

    @property
    def stem(self) -> str:
        """Name of its files without ending."""
        return f"epoch-{self.epoch:03d}"

    def to_json(self) -> str:
        """Return the description as indented JSON text."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read a description that `to_json` wrote; ModelError if it is none."""
        where, again = f"The checkpoint {path}", "Delete it, or train again with the checkpoints kept."
        try:
            from idc_core.guarded import is_sealed, open_sealed_text, read_content, read_json, typed

            text = read_content(path, where)
            # Those of the project are plain JSON, for anybody to read; those kept by a person carry a checksum.
            content = read_json(open_sealed_text(text, where) if is_sealed(text) else text, where, dict[str, object])
            if set(content) != {item.name for item in fields(cls)}:
                raise DataError(f"{where} has the fields {', '.join(content)[:200]}, which are not a checkpoint's.")
            card = ModelCard.of(content["card"], f"in the checkpoint {path}")
            checkpoint = typed(content, where, cls)
        except (DataError, ModelError) as error:
            raise ModelError(f"{error} {again}") from error
        if not 0 <= checkpoint.epoch <= checkpoint.epochs or path.stem != checkpoint.stem:
            raise ModelError(
                f"{where} says epoch {checkpoint.epoch:,} of {checkpoint.epochs:,}, which cannot be. {again}"
            )
        return replace(checkpoint, card=card)


@dataclass(frozen=True)
class Series:
    """The checkpoints of one training by epoch, one at least; `folder` holds those that are kept in files."""

    model: str
    folder: Path
    checkpoints: tuple[Checkpoint, ...]

    @property
    def epochs(self) -> tuple[int, ...]:
        """The epochs that are there."""
        return tuple(checkpoint.epoch for checkpoint in self.checkpoints)

    @property
    def complete(self) -> bool:
        """Whether training went to its end."""
        return self.checkpoints[-1].epoch == self.checkpoints[-1].epochs

    @cached_property
    def own(self) -> bool:
        """Whether this training led to the project's own weights, to the last bit."""
        return self.complete and self.checkpoints[-1].trained == _own_fingerprint(self.model)

    def open(self, epoch: int) -> Network:
        """Return the network at an epoch, in eval mode, with its card; ModelError if its file is absent or damaged."""
        known = {checkpoint.epoch: checkpoint for checkpoint in self.checkpoints}
        if epoch not in known:
            there = ", ".join(map(str, known))
            raise ModelError(f"There is no checkpoint of {self.model} at epoch {epoch}; there are {there}.")
        checkpoint = known[epoch]
        if checkpoint.stored == "seed":
            network, card = self._begun(checkpoint)
        else:
            network, card = self._read(checkpoint), checkpoint.card
        card.check_network(network, f"of {self.model} at epoch {epoch} in {self.folder}")
        network.card = card
        return network.eval()

    def _begun(self, one: Checkpoint) -> tuple[Network, ModelCard]:
        """Return the network before training: not held to its fingerprint, as processors round first weights too."""
        from idc_core.models.weights import fingerprint

        network = untrained(self.model, one.card.seed or 0)
        return network, replace(one.card, fingerprint=fingerprint(network))

    def _read(self, one: Checkpoint) -> Network:
        from idc_core.models.loading import load_model
        from idc_core.models.weights import fingerprint, read_weights

        if one.stored == "weights":
            network, source = load_model(self.model), "The project's own weights file"
        else:
            path = self.folder / f"{one.stem}.safetensors"
            network, source = find_entry(self.model).build(), f"The checkpoint {path}"
            read_weights(network, path, widen=one.stored == "float16")
        computed = fingerprint(network)
        if computed != one.card.fingerprint:
            raise ModelError(
                f"{source} should give {self.model} at epoch {one.epoch} with the fingerprint {one.card.fingerprint}, "
                f"but gives {computed}; delete {self.folder}, or train again with the checkpoints kept."
            )
        return network


def untrained(name: str, seed: int = 0) -> Network:
    """Return a network with the weights that training from a seed begins with, in eval mode.

    torch's own random numbers go on as if nothing had been drawn.
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return find_entry(name).build().eval()


def read_series(name: str, folder: Path) -> Series | None:
    """Return the checkpoints in a folder, None where there are none; ModelError if they are damaged or mixed."""
    checkpoints = tuple(Checkpoint.read(path) for path in sorted(folder.glob("epoch-*.json")))
    if not checkpoints:
        return None
    for checkpoint in checkpoints:
        if checkpoint.card.name != name:
            raise ModelError(
                f"The folder {folder} should hold checkpoints of {name}, but one is of {checkpoint.card.name}."
            )
        _refuse_mixture(folder, asdict(checkpoint.card), checkpoints[0].card)
    return Series(name, folder, tuple(sorted(checkpoints, key=lambda checkpoint: checkpoint.epoch)))


def _refuse_mixture(folder: Path, training: Mapping[str, object], there: ModelCard) -> None:
    """Raise ModelError where seed, recipe or versions of a training are not those of the checkpoints in a folder."""
    for what in ("seed", "recipe", "versions"):
        if training[what] != getattr(there, what):
            raise ModelError(
                f"The folder {folder} holds checkpoints of a training with the {what} {getattr(there, what)!s:.500}, "
                f"not {training[what]!s:.500}: move that folder away, or delete it."
            )


def all_series(name: str) -> tuple[Series, ...]:
    """Return every training of a network whose checkpoints are there, the best to look at first.

    Those that led to the project's own weights come first, then those that went to their end, then those with more
    epochs; of equals the one that is shipped.
    """
    find_entry(name)
    every = [read_series(name, folder) for folder in (SHIPPED_FOLDER / name, kept_folder(name))]
    there = [series for series in every if series is not None]
    return tuple(sorted(there, key=lambda series: (not series.own, not series.complete, -len(series.checkpoints))))


def whole(name: str, series: Series | None = None) -> Series:
    """Return the checkpoints of a training with both ends: the weights it begins with, and the project's own.

    Of a network whose weights were published by others neither seed nor epochs are known: seed 0, and one epoch, stand
    for them. A series that went to its end keeps its own last weights.
    """
    from idc_core.models.loading import load_model
    from idc_core.models.weights import fingerprint

    if series is not None and series.complete and series.epochs[0] == 0:
        return series
    card, recipe = load_model(name).card, find_entry(name).recipe
    epochs = 1 if recipe is None else recipe.epochs
    begun = fingerprint(untrained(name, card.seed or 0))
    before = Checkpoint(0, epochs, begun, "seed", replace(card, metrics={}, fingerprint=begun))
    checkpoints = {0: before, epochs: Checkpoint(epochs, epochs, card.fingerprint, "weights", card)}
    if series is not None:
        checkpoints |= {checkpoint.epoch: checkpoint for checkpoint in series.checkpoints}
    folder = SHIPPED_FOLDER / name if series is None else series.folder
    return Series(name, folder, tuple(checkpoints[epoch] for epoch in sorted(checkpoints)))


def _own_fingerprint(name: str) -> str:
    """Return the fingerprint of the project's own weights; empty where there are none."""
    from idc_core.models.card import WEIGHTS_FOLDER

    path = WEIGHTS_FOLDER / f"{name}.json"
    return ModelCard.read(path).fingerprint if path.exists() else ""


@dataclass(frozen=True)
class CheckpointRecorder:
    """Which checkpoints a training keeps, and where.

    `epochs` to keep, 0 being before the first, or empty for the usual ones; the first and the last are always kept.
    `small` keeps them as the project ships them: in 16 bits, the first as its seed, the last as the project's own
    weights where they are the same to the last bit.
    """

    folder: Path
    epochs: tuple[int, ...] = ()
    small: bool = False

    def prepare(self, entry: ModelEntry, seed: int) -> tuple[int, ...]:
        """Return the epochs to keep; make the folder, where checkpoints of the same training are written over.

        Raises ModelError if the network has no recipe, the folder cannot be written to, or it holds the checkpoints of
        another training; SettingError if the training has no such epochs.
        """
        import torch

        from idc_core.models.weights import make_folder

        if entry.recipe is None:
            raise ModelError(f"{entry.name!r} has no recipe, and so no epochs.")
        epochs = _chosen_epochs(entry.recipe.epochs, self.epochs)
        make_folder(self.folder)
        there = read_series(entry.name, self.folder)
        if there is not None:
            own = {"seed": seed, "recipe": asdict(entry.recipe), "versions": {"torch": torch.__version__}}
            _refuse_mixture(self.folder, own, there.checkpoints[0].card)
        return epochs

    def write(self, network: Network, epoch: int, last: int, describe: Callable[[Network], ModelCard]) -> None:
        """Write one checkpoint, from a copy: neither training nor its random numbers notice.

        `epoch` of `last` are finished; `describe` measures a network and returns its card. ModelError if the folder
        cannot be written to, or values are too large for 16 bits.
        """
        from idc_core.models.weights import fill, fingerprint, write_weights, write_whole

        copied = copy.deepcopy(network).cpu()
        trained = fingerprint(copied)
        card = describe(copied)
        stored = _way_kept(card.name, trained, epoch, last) if self.small else "float32"
        path = self.folder / f"epoch-{epoch:03d}"
        if stored == "float16":
            rounded = {name: value.half().float() for name, value in copied.state_dict().items()}
            fill(copied, rounded, f"Epoch {epoch} in 16 bits")
            card = describe(copied)
        if stored in ("float16", "float32"):
            write_weights(copied, path.with_suffix(".safetensors"), half=stored == "float16")
        checkpoint = Checkpoint(epoch, last, trained, stored, card)
        text = checkpoint.to_json()
        write_whole(path.with_suffix(".json"), text.encode() if self.small else seal_text(text))


def _way_kept(name: str, trained: str, epoch: int, last: int) -> _Stored:
    """Return how a small checkpoint is kept."""
    if epoch == 0:
        return "seed"
    return "weights" if epoch == last and trained == _own_fingerprint(name) else "float16"
