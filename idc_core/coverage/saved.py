"""Criteria on disk: settings, and what was learned and counted, as arrays; no network, no pickle."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.base.arrays import Array, Arrays
from idc_core.base.files import unwritable, write_whole
from idc_core.base.parameters import shown
from idc_core.clustering.kmeans import Clusters, SketchBounds
from idc_core.errors import DataError, IdcError, ModelError, SettingError
from idc_core.guarded import check_sealed_zip, open_arrays, read_json, seal_zip
from idc_core.models.weights import fingerprint

if TYPE_CHECKING:
    from idc_core.coverage.registry import Criterion


_FORMAT = 2
"""Raised whenever a file of before can no longer be read."""

_ABOUT = "criterion.json"
_DAMAGE = (KeyError, IndexError, TypeError, ValueError, OverflowError, AttributeError)


@dataclass(frozen=True)
class _About:
    """What a file says of its criterion: its name, the constructor's arguments, and the network's fingerprint."""

    format: int
    criterion: str
    network: str
    settings: dict[str, object]


class Saved:
    """The arrays of a saved criterion; whatever is not as expected is a `DataError`."""

    def __init__(self, arrays: Mapping[str, Array], where: str) -> None:
        self._arrays, self.where = arrays, where

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def take(self, name: str, kinds: str, *shape: int | None) -> Array:
        """Return an array of one of some kinds ("f", "i", "u") and of this shape, None being any length."""
        array = self._arrays.get(name)
        sizes = () if array is None else array.shape
        fits = len(sizes) == len(shape) and all(b in (None, a) for a, b in zip(sizes, shape, strict=True))
        if array is None or array.dtype.kind not in kinds or not fits:
            raise self.damaged(name)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise self.damaged(name)
        return array

    def indices(self, name: str, below: int, *shape: int | None) -> NDArray[np.int64]:
        """Return whole numbers from 0, all below a number."""
        numbers = self.take(name, "iu", *shape).astype(np.int64)
        if numbers.size and not (numbers.min() >= 0 and numbers.max() < below):
            raise self.damaged(name)
        return numbers

    def sizes(self, layers: int) -> tuple[int, ...] | None:
        """Return the sizes of the layers; None where the criterion has seen no inputs yet."""
        if "sizes" not in self:
            return None
        return tuple((self.indices("sizes", 2**31 - 1, layers)).tolist())

    def table(self, name: str) -> dict[int, float]:
        """Return numbers by whole number."""
        return {int(key): float(value) for key, value in self.take(name, "f", None, 2)}

    def damaged(self, name: str) -> DataError:
        """Return the refusal of an array."""
        return DataError(f"{self.where} is damaged: its {name} does not fit its settings. Fit and save it again.")


def save(criterion: Criterion, path: str | Path) -> None:
    """Write a criterion; the file appears whole or not at all.

    Raises
    ------
    SettingError
        If the criterion's class does not say what it has learned, or the file cannot be written.
    """
    path = _path(path)
    if reason := unwritable(path):
        raise SettingError(f"{path} {reason}: save the criterion elsewhere.")
    about = _About(_FORMAT, criterion.card.name, fingerprint(_network(criterion)), criterion._settings())
    try:
        text = json.dumps(vars(about), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SettingError(
            f"The settings of {criterion.card.label} cannot be saved ({error}): give plain values."
        ) from error
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **criterion._state())
    with zipfile.ZipFile(content, "a") as archive:
        archive.writestr(_ABOUT, text)
    write_whole(path, seal_zip(content.getvalue()))


def load_criterion(path: str | Path, model: nn.Module) -> Criterion:
    """Return a criterion that `save` has written, with what it has learned and counted.

    It goes on where it was: with the same score and profiles, with `update`, and with `merge`.

    Parameters
    ----------
    path : str or Path
    model : Module
        The network that it was fitted on: with the same weights, and of a network of your own with the same code and
        attributes.

    Returns
    -------
    Criterion

    Raises
    ------
    ModelError
        If the network is another one, or lacks a layer.
    DataError
        If the file is damaged, cannot be read, or is none of a criterion.
    SettingError
        If there is no criterion of its name.
    """
    from idc_core.coverage import CRITERIA

    path = _path(path)
    where = f"The criterion in {path}"
    check_sealed_zip(path, where)
    with open_arrays(path, where, kind="a saved criterion") as file:
        about = read_json(file.content(_ABOUT), where, _About)
        if about.format != _FORMAT:
            raise DataError(f"{where} has format {about.format}; this program reads {_FORMAT}. Fit and save it again.")
        arrays = {name: file.read(name) for name in file.names if name != _ABOUT}
    if about.network != (current := fingerprint(model)):
        raise ModelError(
            f"{where} belongs to another network: fingerprint {about.network}, and this one has {current}. Load the "
            "network that it was fitted on, weights and code, or fit a criterion of this one."
        )
    kind: Callable[..., Criterion] = CRITERIA[about.criterion]
    try:
        criterion = kind(model, **about.settings)
        criterion._restore(Saved(arrays, where))
    except IdcError:
        raise
    except _DAMAGE as error:
        raise DataError(
            f"{where} is damaged: it does not fit its settings ({error}). Fit and save it again."
        ) from error
    return criterion


def _path(path: object) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise SettingError(f"Expected the path of a file for a criterion, not {shown(path)}.")
    return Path(path)


def _network(criterion: Criterion) -> nn.Module:
    model = getattr(criterion, "model", None)
    if not isinstance(model, nn.Module):
        raise SettingError(f"{criterion.card.label} has no network by whose fingerprint it could be known again.")
    return model


def pack_clusters(clusters: tuple[Clusters, ...]) -> Arrays:
    """Return the clusters of neurons as arrays."""
    arrays: Arrays = {}
    for place, of_neuron in enumerate(clusters):
        for prefix, part in (("", of_neuron), ("sketch_", of_neuron.sketch)):
            for name, value in {} if part is None else vars(part).items():
                if name != "sketch":
                    pairs = isinstance(value, dict)
                    held = np.array(sorted(value.items()), np.float64).reshape(-1, 2) if pairs else np.asarray(value)
                    arrays[f"clusters{place}_{prefix}{name}"] = held
    return arrays


def read_clusters(saved: Saved, count: int) -> tuple[Clusters, ...]:
    """Return the clusters of so many neurons."""
    return tuple(_read_clusters(saved, f"clusters{place}_") for place in range(count))


def _read_clusters(saved: Saved, of: str) -> Clusters:
    centroids = saved.take(f"{of}centroids", "f", None)
    k = len(centroids)
    boundaries = saved.take(f"{of}boundaries", "f", k - 1)
    if (np.diff(centroids) < 0).any() or (np.diff(boundaries) < 0).any():
        raise saved.damaged(f"{of}centroids")
    sketch = None
    if f"{of}sketch_cells" in saved:
        sketch = SketchBounds(
            int(saved.take(f"{of}sketch_cells", "i")),
            float(saved.take(f"{of}sketch_width", "f")),
            saved.take(f"{of}sketch_centroids", "f", k),
            saved.take(f"{of}sketch_boundaries", "f", k - 1),
            saved.table(f"{of}sketch_silhouettes"),
            saved.table(f"{of}sketch_inertia"),
        )
    return Clusters(
        centroids,
        boundaries,
        saved.table(f"{of}silhouettes"),
        saved.table(f"{of}inertia"),
        saved.take(f"{of}counts", "i", k),
        int(saved.take(f"{of}n_values", "i")),
        sketch,
    )
