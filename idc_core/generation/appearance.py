"""Constraints that change the whole picture by one or a few numbers: light, contrast, place, blur."""

import math
from abc import abstractmethod
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from idc_core.base.parameters import Parameter
from idc_core.errors import SettingError
from idc_core.generation.constraints import LEVELS, Constraint, constraint


class _OneNumber(Constraint):
    """One number changes the whole picture; the state is this number and the direction it goes, (n, 2).

    A line has no way round a hill: where the gradient turns, going back would only repeat pictures already seen. So the
    gradient at the seed says which way to go first, and where the range ends the search starts at the seed again, the
    other way.
    """

    steers_once = True

    @property
    @abstractmethod
    def range(self) -> tuple[float, float]:
        """Smallest and largest number; 0 is the seed."""

    def start(self, seeds: Tensor) -> Tensor:
        """Return no change, and no direction yet."""
        return torch.zeros(len(seeds), 2)

    def advance(self, seeds: Tensor, state: Tensor, fixed: Tensor, gradient: Tensor, step: float) -> Tensor:
        """Return the state one step on, on the other side of the seed where this one has been walked to its end."""
        low, high = self.range
        way = state[:, 1]
        if not way.all():
            up = super().advance(seeds, state, fixed, gradient, step)[:, 0] - state[:, 0]
            way = torch.where(way == 0, torch.where((up < 0) & torch.tensor(low < 0), -1.0, 1.0), way)
        end = torch.where(way > 0, high, -low)
        over = (state[:, 0].abs() >= end) & torch.tensor(low < 0)
        way = torch.where(over, -way, way)
        now = torch.where(over, torch.zeros_like(way), state[:, 0]) + way * step / LEVELS
        return torch.stack([now.clamp(low, high), way], 1)

    def inside(self, seeds: Tensor, state: Tensor) -> Tensor:
        """Return the state as it is; `advance` keeps to the range."""
        return state


@constraint(
    "light",
    label="Light",
    help="One change of brightness for the whole picture.",
    citation="Pei et al. (DeepXplore), SOSP 2017, section 6.2",
    parameters=(Parameter("limit", "Largest change of brightness", "At 1, black turns into white.", 1.0, 0.02, 1.0),),
)
@dataclass(frozen=True)
class Light(_OneNumber):
    """The picture plus one number, at most `limit` in 0..1 of the way from black to white."""

    limit: float = 1.0

    def __post_init__(self) -> None:
        _check("limit", self.limit, 0, 1)

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest number."""
        return -self.limit, self.limit

    def render(self, seeds: Tensor, state: Tensor) -> Tensor:
        """Return the pictures made brighter."""
        return (seeds + state[:, :1, None, None]).clamp(0, 1)


@constraint(
    "contrast",
    label="Contrast",
    help="One factor scales all differences from the picture's mean.",
    parameters=(
        Parameter("least", "Largest loss of contrast", "As a share of the contrast.", 0.9, 0.05, 1.0),
        Parameter("most", "Largest gain of contrast", "As a share of the contrast.", 2.0, 0.05, 10.0),
    ),
)
@dataclass(frozen=True)
class Contrast(_OneNumber):
    """mean + (1 + s) (picture - mean), s from -`least` to `most`."""

    least: float = 0.9
    most: float = 2.0

    def __post_init__(self) -> None:
        _check("least", self.least, 0, 1)
        _check("most", self.most, 0, 10)

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest number."""
        return -self.least, self.most

    def render(self, seeds: Tensor, state: Tensor) -> Tensor:
        """Return the pictures with their contrast changed."""
        mean = seeds.mean((1, 2, 3), keepdim=True)
        return (seeds + state[:, :1, None, None] * (seeds - mean)).clamp(0, 1)


@constraint(
    "shift",
    label="Rotation and shift",
    help="One rotation and translation of the whole picture.",
    parameters=(
        Parameter("degrees", "Largest angle in degrees", "To either side.", 30.0, 1.0, 180.0),
        Parameter("share", "Largest shift", "As a share of the picture's width and height.", 0.15, 0.01, 1.0),
    ),
)
@dataclass(frozen=True)
class Shift(Constraint):
    """Rotation about the middle, and translation along both axes; what comes in from outside is black."""

    degrees: float = 30.0
    share: float = 0.15

    def __post_init__(self) -> None:
        _check("degrees", self.degrees, 0, 180)
        _check("share", self.share, 0, 1)

    def start(self, seeds: Tensor) -> Tensor:
        """Return no change: angle, right and down, each in -1..1 of its limit, (n, 3)."""
        return torch.zeros(len(seeds), 3)

    def render(self, seeds: Tensor, state: Tensor) -> Tensor:
        """Return the pictures turned and moved, values between pixels by bilinear interpolation."""
        angle = state[:, 0] * math.radians(self.degrees)
        # The sampling grid counts in half pictures, hence the 2.
        across, down = (2 * self.share * state[:, axis] for axis in (1, 2))
        ratio = seeds.shape[2] / seeds.shape[3]
        rows = (
            torch.stack([angle.cos(), -angle.sin() * ratio, -across], 1),
            torch.stack([angle.sin() / ratio, angle.cos(), -down], 1),
        )
        grid = F.affine_grid(torch.stack(rows, 1), list(seeds.shape), align_corners=False)
        return F.grid_sample(seeds, grid, align_corners=False).clamp(0, 1)


@constraint(
    "blur",
    label="Blur",
    help="A Gaussian blur of the whole picture.",
    parameters=(
        Parameter(
            "width", "Width of the strongest blur in pixels", "Standard deviation of the Gaussian.", 2.0, 0.2, 20.0
        ),
    ),
)
@dataclass(frozen=True)
class Blur(_OneNumber):
    """A mixture of the picture and its Gaussian blur: (1 - s) picture + s blurred, s in 0..1."""

    width: float = 2.0

    def __post_init__(self) -> None:
        _check("width", self.width, 0, 20)

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest number."""
        return 0.0, 1.0

    def render(self, seeds: Tensor, state: Tensor) -> Tensor:
        """Return the blurred pictures."""
        radius = math.ceil(3 * self.width)
        offsets = torch.arange(-radius, radius + 1, dtype=seeds.dtype)
        weights = (-(offsets**2) / (2 * self.width**2)).exp()
        weights = (weights / weights.sum()).view(1, 1, -1)
        rows = seeds.flatten(0, 1)[:, None]
        rows = F.conv2d(F.pad(rows, (radius, radius, 0, 0), mode="replicate"), weights[:, :, None])
        rows = F.conv2d(F.pad(rows, (0, 0, radius, radius), mode="replicate"), weights[..., None])
        return (seeds + state[:, :1, None, None] * (rows.view_as(seeds) - seeds)).clamp(0, 1)


def _check(name: str, value: float, low: float, high: float) -> None:
    if not low < value <= high:
        raise SettingError(f"{name} must be above {low:g} and at most {high:g}, not {value!r}.")
