"""Keeping checkpoints while a network is trained."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from idc_core.errors import ModelError
from idc_core.guarded import seal_text
from idc_core.models.checkpoints import Checkpoint, Stored, chosen_epochs, own_fingerprint, read_series, refuse_mixture
from idc_core.models.weights import fill, fingerprint, make_folder, write_weights, write_whole

if TYPE_CHECKING:
    from idc_core.models.card import ModelCard
    from idc_core.models.entry import ModelEntry
    from idc_core.models.network import Network


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
        if entry.recipe is None:
            raise ModelError(f"{entry.name!r} has no recipe, and so no epochs.")
        epochs = chosen_epochs(entry.recipe.epochs, self.epochs)
        make_folder(self.folder)
        there = read_series(entry.name, self.folder)
        if there is not None:
            own = {"seed": seed, "recipe": asdict(entry.recipe), "versions": {"torch": torch.__version__}}
            refuse_mixture(self.folder, own, there.checkpoints[0].card)
        return epochs

    def write(self, network: Network, epoch: int, last: int, describe: Callable[[Network], ModelCard]) -> None:
        """Write one checkpoint, from a copy: neither training nor its random numbers notice.

        `epoch` of `last` are finished; `describe` measures a network and returns its card. ModelError if the folder
        cannot be written to, or values are too large for 16 bits.
        """
        copied = copy.deepcopy(network).cpu()
        trained = fingerprint(copied)
        card = describe(copied)
        stored = _stored(card.name, trained, epoch, last) if self.small else "float32"
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


def _stored(name: str, trained: str, epoch: int, last: int) -> Stored:
    """Return how a small checkpoint is kept."""
    if epoch == 0:
        return "seed"
    return "weights" if epoch == last and trained == own_fingerprint(name) else "float16"
