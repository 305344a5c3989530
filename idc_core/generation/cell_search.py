"""Search for inputs in cells: the cells of IDC as intervals of activations, by gradients or by random noise."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.analysis.result import Analysis
from idc_core.base.arrays import Floats
from idc_core.base.parameters import shown, whole_number
from idc_core.base.progress import Progress, report
from idc_core.base.ranges import ITERATIONS
from idc_core.coverage.cells import Codes, assign, encode, midpoints
from idc_core.coverage.idc import IDC
from idc_core.errors import CancelledError, SettingError
from idc_core.generation.constraints import LEVELS, as_seeds, towards
from idc_core.generation.objectives import SearchedNetwork
from idc_core.tracing.trace import collect


@dataclass(frozen=True, eq=False)
class CellSpace:
    """Important neurons (m,) and their clusters: centroids (k_i,) and the upper ends of all clusters but the last."""

    layer: str
    important: NDArray[np.int64]
    centroids: tuple[Floats, ...]
    boundaries: tuple[Floats, ...]

    @classmethod
    def of(cls, source: IDC | Analysis) -> Self:
        """Return the cells of a fitted criterion, or of a finished analysis."""
        if isinstance(source, IDC):
            _ = source.total  # refuses a criterion without clusters
        elif not isinstance(source, Analysis):
            raise SettingError(f"Cells come from a fitted IDC or an analysis, not from {type(source).__name__}.")
        original = source.idc.original if isinstance(source, IDC) else source.settings["original"]
        rounded = tuple(map(midpoints, source.centroids))
        boundaries = rounded if original else tuple(neuron.boundaries for neuron in source.clusters)
        return cls(source.layer, source.important, tuple(source.centroids), boundaries)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Clusters of each neuron."""
        return tuple(len(values) for values in self.centroids)

    @property
    def units(self) -> Floats:
        """Unit of each neuron's distances: the mean gap between its centroids; 1 for a single cluster."""
        gaps = [float(np.diff(values).mean()) if len(values) > 1 else 1.0 for values in self.centroids]
        return np.array([gap if gap > 0 else 1.0 for gap in gaps])

    def cell(self, wanted: str | Sequence[int]) -> tuple[int, ...]:
        """Return a cell's cluster indices, from "2-1-0" or a sequence."""
        try:
            cell = tuple(int(part) for part in (wanted.split("-") if isinstance(wanted, str) else wanted))
        except ValueError:
            cell = ()
        inside = len(cell) == len(self.sizes) and all(0 <= i < k for i, k in zip(cell, self.sizes, strict=True))
        if not inside:
            raise SettingError(
                f"Expected a cell as {len(self.sizes)} cluster numbers below {'-'.join(map(str, self.sizes))}, for "
                f"example {'-'.join('0' for _ in self.sizes)}, not {shown(wanted)}."
            )
        return cell

    def assign(self, activations: NDArray[np.floating]) -> NDArray[np.uint8]:
        """Return the cluster of each activation (n, m) of the important neurons, uint8 (n, m)."""
        return assign(activations, self.centroids, self.boundaries)

    def intervals(self, cells: NDArray[np.integer]) -> tuple[Floats, Floats]:
        """Return the lower and upper end of each neuron's cluster in cells (n, m), float64 (n, m) each."""
        ends = [np.concatenate(([-np.inf], edges, [np.inf])) for edges in self.boundaries]
        low, high = (
            np.stack([edges[cells[:, i] + shift] for i, edges in enumerate(ends)], 1).astype(np.float64)
            for shift in (0, 1)
        )
        return low, high

    def goals(self, cells: NDArray[np.integer]) -> Floats:
        """Return the centroids of cells (n, m), float64 (n, m)."""
        return np.stack([values[cells[:, i]] for i, values in enumerate(self.centroids)], 1).astype(np.float64)

    def codes(self, model: nn.Module, inputs: object) -> Codes:
        """Return the cell of each input."""
        active = collect(model, inputs, [self.layer]).activations[self.layer]
        return encode(self.assign(active[:, self.important]), self.sizes)


_STEP = 10.0
"""Largest change of a value in the first step, in grey levels of 255; steps shrink to a tenth on the way."""


@dataclass(frozen=True, eq=False)
class ReachedCells:
    """Pictures that reach cells, each the one that its seed was to reach."""

    cells: NDArray[np.uint8]  # (seeds, m), the cell that each seed was to reach
    inputs: NDArray[np.float32]  # (n, C, H, W), pictures of 8 bits in their cells
    seed_index: NDArray[np.int64]  # (n,), position of each one's seed, ascending
    predictions: NDArray[np.int64]  # (n,), predicted classes; 0 for regression
    seed_predictions: NDArray[np.int64]  # (seeds,)
    iterations: NDArray[np.int64]  # (n,), steps, or draws of noise; 0 where the seed itself lies in its cell
    closest: Floats  # (seeds,), as in `Reached`
    passes: int
    """Pictures that went through the network; one with its way back counts three times."""
    seconds: float
    stopped: bool

    def __len__(self) -> int:
        return len(self.inputs)


@dataclass(frozen=True, eq=False)
class Reached:
    """Pictures that reach a cell."""

    cell: tuple[int, ...]  # cluster index of each important neuron
    inputs: NDArray[np.float32]  # (n, C, H, W), pictures of 8 bits in the cell
    seed_index: NDArray[np.int64]  # (n,), position of each one's seed, ascending
    predictions: NDArray[np.int64]  # (n,), predicted classes; 0 for regression
    seed_predictions: NDArray[np.int64]  # (seeds,)
    iterations: NDArray[np.int64]  # (n,), steps, or draws of noise; 0 where the seed itself lies in the cell
    closest: Floats
    """(seeds,), distance of each seed's best picture to the cell: the largest distance of an important neuron to its
    cluster, in mean gaps between that neuron's centroids; 0 in the cell."""
    seconds: float
    stopped: bool

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def message(self) -> str:
        """The result of the search in one sentence."""
        name = "-".join(map(str, self.cell))
        if not len(self):
            near = f"the closest picture misses it by {self.closest.min():.2g} of a gap between centroids"
            return f"No picture reached cell {name} from {len(self.closest):,} seeds; {near}."
        return f"{len(self):,} of {len(self.closest):,} seeds led to a picture in cell {name}."


def reach_cell(
    model: nn.Module,
    source: IDC | Analysis,
    cell: str | Sequence[int],
    seeds: object,
    epsilon: float = 0.3,
    *,
    iterations: int = 50,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> Reached:
    """Change seeds (n, C, H, W) by at most epsilon until they lie in a cell; at most one picture per seed.

    `source` belongs to the model; `cell` holds the cluster of each important neuron, for example "2-1-0"; seeds lie in
    0..1 and are rounded to 8 bits: those closest to the cell go the shortest way
    (`idc_core.coverage.closest_inputs.closest`). Where none reaches it, the result is empty, with a message.

    Raises
    ------
    IdcError
        If the seeds are no pictures, a parameter is out of its range, or the model has no such layer or no gradients.

    Notes
    -----
    Raised is ``-sum(|a_i - c_i| / gap_i for neurons i outside their cluster)``, a their activations and c the cell's
    centroids; neurons that are already in their cluster are held there by the same pull at a tenth of its strength.
    Each step follows the gradient's sign, which is the steepest way inside an L-inf ball (A. Madry et al., "Towards
    Deep Learning Models Resistant to Adversarial Attacks", ICLR 2018, equation 2, without random starts).
    """
    found = _climb(_CellSearch(model, source, [cell], seeds, epsilon, iterations, batch_size), iterations, on_progress)
    return _of_one_cell(found)


def reach_cells(
    model: nn.Module,
    source: IDC | Analysis,
    cells: NDArray[np.integer],
    seeds: object,
    epsilon: float = 0.3,
    *,
    iterations: int = 50,
    enough: int | None = None,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> ReachedCells:
    """Search as `reach_cell` does for many cells at once: every step takes the seeds of all of them together.

    `cells` (n, m) holds the cell that each seed is to reach. Once `enough` seeds have reached a cell, its others stop;
    by default none stops.
    """
    search = _CellSearch(model, source, cells.tolist(), seeds, epsilon, iterations, batch_size, enough)
    return _climb(search, iterations, on_progress)


def _climb(search: "_CellSearch", iterations: int, on_progress: Progress | None) -> ReachedCells:
    """Follow the sign of the gradient."""

    def move(pictures: Tensor, state: Tensor, taken: int) -> Tensor:
        gradient = search.network.climb(pictures, search.pull)[1]
        search.passes += 3 * len(pictures)
        return state + max(0.1, 1 - taken / iterations) * _STEP / LEVELS * gradient.sign()

    return search.run(move, iterations, on_progress)


def _of_one_cell(found: ReachedCells) -> Reached:
    """Return the result of a search for one cell."""
    return Reached(
        tuple(map(int, found.cells[0])),
        found.inputs,
        found.seed_index,
        found.predictions,
        found.seed_predictions,
        found.iterations,
        found.closest,
        found.seconds,
        found.stopped,
    )


def noise_to_cell(
    model: nn.Module,
    source: IDC | Analysis,
    cell: str | Sequence[int],
    seeds: object,
    epsilon: float = 0.3,
    *,
    iterations: int = 50,
    seed: int = 0,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> Reached:
    """Try `iterations` draws of uniform noise in -epsilon..epsilon per seed: the baseline of `reach_cell`.

    Parameters, result and errors as `reach_cell`; `seed` is of the noise.
    """
    search = _CellSearch(model, source, [cell], seeds, epsilon, iterations, batch_size)
    random = torch.Generator().manual_seed(seed)

    def move(pictures: Tensor, state: Tensor, taken: int) -> Tensor:
        # Drawn for all seeds, so that the noise of one does not depend on which others have arrived.
        drawn = torch.rand(search.seeds.shape, generator=random)[search.active]
        return (2 * drawn - 1) * epsilon

    return _of_one_cell(search.run(move, iterations, on_progress))


class _CellSearch:
    """The state of a search: the seeds outside their cells, and how close each has come; one cell is that of all."""

    def __init__(
        self,
        model: nn.Module,
        source: IDC | Analysis,
        cells: Sequence[str | Sequence[int]],
        seeds: object,
        epsilon: float,
        iterations: int,
        batch_size: int | None,
        enough: int | None = None,
    ) -> None:
        if not 1 / LEVELS <= epsilon <= 1:
            raise SettingError(f"epsilon must lie in 1/255..1, not {epsilon!r}.")
        whole_number("iterations", iterations, 0, ITERATIONS.high)
        self.space = CellSpace.of(source)
        wanted = np.array([self.space.cell(cell) for cell in cells], np.uint8)
        self.seeds, self.epsilon, self.enough = as_seeds(seeds), epsilon, enough
        if len(wanted) not in (1, len(self.seeds)):
            raise SettingError(f"Expected one cell for each of {len(self.seeds)} seeds, got {len(wanted)}.")
        self.cells = np.broadcast_to(wanted, (len(self.seeds), wanted.shape[1]))
        self.network = SearchedNetwork(model, self.seeds, (self.space.layer,), batch_size)
        self.low, self.high = self.space.intervals(self.cells)
        self.goals = self.space.goals(self.cells)
        self.group = np.unique(self.cells, axis=0, return_inverse=True)[1].reshape(-1)
        self.in_group = np.zeros(len(self.seeds), np.int64)
        self.passes = 0
        self.active = torch.arange(len(self.seeds))
        self.closest = np.full(len(self.seeds), np.inf)
        self.arrived: list[tuple[Tensor, Tensor, Tensor, int]] = []
        self.started = time.perf_counter()

    def pull(self, scores: Tensor, activations: Tensor, rows: slice) -> Tensor:
        """Return how close pictures of the seeds outside their cells are to these, (n,), to be raised."""
        mine = self.active[rows].numpy()
        now = activations[:, torch.as_tensor(self.space.important).to(activations.device)]
        low, high, goals, units = (
            torch.as_tensor(part).to(now)
            for part in (self.low[mine], self.high[mine], self.goals[mine], self.space.units)
        )
        weights = torch.where((now > low) & (now <= high), 0.1, 1.0)
        return -(weights * (now - goals).abs() / units).sum(1)

    def run(
        self, move: Callable[[Tensor, Tensor, int], Tensor], iterations: int, on_progress: Progress | None
    ) -> ReachedCells:
        """Move the seeds that have not arrived, until all have or the steps are used up."""
        state = torch.zeros_like(self.seeds)
        first, stopped = self._keep(self.seeds, 0), False
        try:
            for taken in range(iterations):
                if not len(self.active):
                    break
                seeds = self.seeds[self.active]
                moved = move(towards(seeds, seeds + state[self.active]), state[self.active], taken)
                state[self.active] = (seeds + moved.clamp(-self.epsilon, self.epsilon)).clamp(0, 1) - seeds
                self._keep(towards(seeds, seeds + state[self.active]), taken + 1)
                report(on_progress, taken + 1, iterations, "steps towards the cell")
        except CancelledError:
            stopped = True
        return self._result(first, stopped)

    def _keep(self, pictures: Tensor, taken: int) -> NDArray[np.int64]:
        """Keep the pictures that are in their cells; return all their classes."""
        rows = self.active.numpy()
        scores, active = self.network.both(pictures)
        self.passes += len(pictures)
        values = active.numpy()[:, self.space.important]
        away = np.maximum(self.low[rows] - values, values - self.high[rows]).clip(min=0) / self.space.units
        inside = (self.space.assign(values) == self.cells[rows]).all(1)
        self.closest[rows] = np.minimum(self.closest[rows], np.where(inside, 0.0, away.max(1)))
        classes = scores.argmax(1)
        arrived = torch.as_tensor(inside)
        self.arrived.append((self.active[arrived], pictures[arrived], classes[arrived], taken))
        np.add.at(self.in_group, self.group[rows[inside]], 1)
        done = inside if self.enough is None else inside | (self.in_group[self.group[rows]] >= self.enough)
        self.active = self.active[torch.as_tensor(~done)]
        return np.asarray(classes.numpy())

    def _result(self, first: NDArray[np.int64], stopped: bool) -> ReachedCells:
        some = self.arrived
        rows = torch.cat([part[0] for part in some])
        order = torch.argsort(rows)
        taken = np.concatenate([np.full(len(part[0]), part[3], np.int64) for part in some])
        return ReachedCells(
            cells=np.array(self.cells),
            inputs=torch.cat([part[1] for part in some])[order].numpy(),
            seed_index=rows[order].numpy(),
            predictions=torch.cat([part[2] for part in some])[order].numpy(),
            seed_predictions=first,
            iterations=taken[order.numpy()],
            closest=self.closest,
            passes=self.passes,
            seconds=time.perf_counter() - self.started,
            stopped=stopped,
        )
