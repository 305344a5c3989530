"""Constraints on single pixels: a rectangle, dark rectangles, balls around the seed, a mask."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import ArrayLike
from torch import Tensor

from idc_core.base.parameters import Parameter
from idc_core.errors import SettingError
from idc_core.generation.constraints import LEVELS, Constraint, constraint, normalised, towards


class _Pixels(Constraint):
    """Every value of the picture has a change of its own; the state is the change, (n, C, H, W)."""

    def start(self, seeds: Tensor) -> Tensor:
        """Return no change."""
        return torch.zeros_like(seeds)

    def render(self, seeds: Tensor, state: Tensor) -> Tensor:
        """Return the changed pictures."""
        return (seeds + state).clamp(0, 1)

    def picture(self, seeds: Tensor, state: Tensor) -> Tensor:
        """Return the changed pictures, rounded towards the seed so that no bound is passed."""
        return towards(seeds, self.render(seeds, state))

    def advance(self, seeds: Tensor, state: Tensor, fixed: Tensor, gradient: Tensor, step: float) -> Tensor:
        """Return the state one step on in the pixels that are free (`fixed`, 1 where free; all without it)."""
        free = gradient * fixed if fixed.numel() else gradient
        # What can go no farther takes no part, so that the step is not spent on it.
        now = seeds + state
        free = torch.where(((now <= 0) & (free < 0)) | ((now >= 1) & (free > 0)), torch.zeros_like(free), free)
        moved = (now + step / LEVELS * normalised(free)).clamp(0, 1) - seeds
        return self.inside(seeds, moved)

    def inside(self, seeds: Tensor, state: Tensor) -> Tensor:
        """Return the state as it is."""
        return state


@constraint(
    "occlusion",
    label="Occlusion",
    help="The pixels of one rectangle, as if an object covered the camera.",
    citation="Pei et al. (DeepXplore), SOSP 2017, section 6.2",
    parameters=(
        Parameter("height", "Height in pixels", "Of the rectangle.", 10, 1, 64),
        Parameter("width", "Width in pixels", "Of the rectangle.", 10, 1, 64),
    ),
)
@dataclass(frozen=True)
class Occlusion(_Pixels):
    """One rectangle, whose pixels may take any value; its default place is where the seed's gradient is largest."""

    height: int = 10
    width: int = 10
    top: int | None = None
    left: int | None = None

    def __post_init__(self) -> None:
        _check_size(self.height, self.width)
        if (self.top is None) != (self.left is None):
            raise SettingError("A place needs both top and left; give both, or none to let the gradient choose.")

    def prepare(self, seeds: Tensor, gradient: Tensor) -> Tensor:
        """Return 1 in each seed's rectangle, 0 elsewhere, (n, 1, H, W)."""
        _check_fits(self.height, self.width, seeds)
        if self.top is not None and self.left is not None:
            if not (0 <= self.top <= seeds.shape[2] - self.height and 0 <= self.left <= seeds.shape[3] - self.width):
                raise SettingError(
                    f"The rectangle at {self.top}, {self.left} does not lie inside pictures of {_size(seeds)}."
                )
            tops, lefts = (torch.full((len(seeds),), place) for place in (self.top, self.left))
        else:
            tops, lefts = _best(_sums(gradient.abs(), self.height, self.width))
        return _rectangles(seeds, tops, lefts, self.height, self.width)


@constraint(
    "blackout",
    label="Blackout",
    help="Several small black rectangles, like dirt on the lens.",
    citation="Pei et al. (DeepXplore), SOSP 2017, section 6.2",
    parameters=(
        Parameter("height", "Height in pixels", "Of each rectangle.", 6, 1, 64),
        Parameter("width", "Width in pixels", "Of each rectangle.", 6, 1, 64),
        Parameter("most", "Number of rectangles at most", "Per picture.", 5, 1, 50),
    ),
)
@dataclass(frozen=True)
class Blackout(_Pixels):
    """One more black rectangle per step, where darkening raises the objective most to first order.

    DeepXplore's program draws a place at random in every iteration and darkens it if the mean gradient there is
    negative, with no bound on the number of rectangles.
    """

    height: int = 6
    width: int = 6
    most: int = 5

    def __post_init__(self) -> None:
        _check_size(self.height, self.width)
        if self.most < 1:
            raise SettingError(f"most must be at least 1 rectangle, not {self.most!r}.")

    def start(self, seeds: Tensor) -> Tensor:
        """Return how many rectangles each pixel lies in, and how many there are: none, (n, 2, H, W)."""
        return torch.zeros(len(seeds), 2, *seeds.shape[2:])

    def render(self, seeds: Tensor, state: Tensor) -> Tensor:
        """Return the pictures with black rectangles."""
        return seeds * (state[:, :1] == 0)

    def prepare(self, seeds: Tensor, gradient: Tensor) -> Tensor:
        """Return nothing; refuse pictures that are too small."""
        _check_fits(self.height, self.width, seeds)
        return torch.zeros(len(seeds), 0)

    def advance(self, seeds: Tensor, state: Tensor, fixed: Tensor, gradient: Tensor, step: float) -> Tensor:
        """Return the state with one rectangle more, where there is room for one and darkening helps."""
        promise = _sums(-gradient * self.render(seeds, state), self.height, self.width)
        tops, lefts = _best(promise)
        helps = (promise.flatten(1).amax(1) > 0) & (state[:, 1, 0, 0] < self.most)
        added = _rectangles(seeds, tops, lefts, self.height, self.width) * helps[:, None, None, None]
        return state + torch.cat([added, helps.float()[:, None, None, None].expand_as(added)], 1)


@constraint(
    "linf",
    label="L-inf ball",
    help="Each value changes by at most epsilon.",
    parameters=(Parameter("epsilon", "Largest change of a value (epsilon)", "Values lie in 0 to 1.", 0.3, 0.005, 1.0),),
)
@dataclass(frozen=True)
class MaximumBall(_Pixels):
    """No value lies farther than `epsilon`, in 1/255..1, from the seed's."""

    epsilon: float = 0.3

    def __post_init__(self) -> None:
        if not 1 / LEVELS <= self.epsilon <= 1:
            raise SettingError(f"epsilon must lie in 1/255..1, not {self.epsilon!r}.")

    def inside(self, seeds: Tensor, state: Tensor) -> Tensor:
        """Return the nearest state in the ball."""
        return state.clamp(-self.epsilon, self.epsilon)


@constraint(
    "l2",
    label="L2 ball",
    help="The Euclidean length of the change is at most epsilon.",
    parameters=(
        Parameter("epsilon", "Length of the change (epsilon)", "Euclidean, values in 0 to 1.", 3.0, 0.1, 50.0),
    ),
)
@dataclass(frozen=True)
class EuclideanBall(_Pixels):
    """The Euclidean distance to the seed is at most `epsilon`, 1/255 or more."""

    epsilon: float = 3.0

    def __post_init__(self) -> None:
        if not (self.epsilon >= 1 / LEVELS and np.isfinite(self.epsilon)):
            raise SettingError(f"epsilon must be a finite number of at least 1/255, not {self.epsilon!r}.")

    def inside(self, seeds: Tensor, state: Tensor) -> Tensor:
        """Return the nearest state in the ball."""
        length = state.flatten(1).norm(dim=1).clamp(min=1e-12)[:, None, None, None]
        shorter: Tensor = state * (self.epsilon / length).clamp(max=1)
        return shorter


@constraint("only", label="Only these pixels", help="Only the selected rows and columns change.")
@dataclass(frozen=True, eq=False)
class Only(_Pixels):
    """Only pixels change that are True in `pixels`, bool (H, W); default all."""

    pixels: ArrayLike | None = None

    def prepare(self, seeds: Tensor, gradient: Tensor) -> Tensor:
        """Return 1 where pixels may change, (n, 1, H, W)."""
        if self.pixels is None:
            return torch.ones(len(seeds), 1, *seeds.shape[2:])
        marked = torch.as_tensor(np.asarray(self.pixels, bool))
        if marked.shape != seeds.shape[2:] or not marked.any():
            raise SettingError(
                f"pixels must mark at least one pixel of {_size(seeds)}, not {int(marked.sum())} of an array of shape "
                f"{tuple(marked.shape)}."
            )
        return marked.float().expand(len(seeds), 1, *marked.shape)


def _rectangles(seeds: Tensor, tops: Tensor, lefts: Tensor, height: int, width: int) -> Tensor:
    """Return 1 inside one rectangle a picture, 0 elsewhere, float32 (n, 1, H, W)."""
    rows, columns = torch.arange(seeds.shape[2])[None], torch.arange(seeds.shape[3])[None]
    down = (rows >= tops[:, None]) & (rows < tops[:, None] + height)
    across = (columns >= lefts[:, None]) & (columns < lefts[:, None] + width)
    return (down[:, :, None] & across[:, None]).float()[:, None]


def _sums(values: Tensor, height: int, width: int) -> Tensor:
    """Return the sum of (n, C, H, W) in the rectangle at every place, (n, H - height + 1, W - width + 1)."""
    return F.avg_pool2d(values.sum(1, keepdim=True), (height, width), stride=1)[:, 0] * (height * width)


def _best(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return row and column of the largest value of each picture; of equal ones the first."""
    place = values.flatten(1).argmax(1)
    return place // values.shape[2], place % values.shape[2]


def _check_size(height: int, width: int) -> None:
    if height < 1 or width < 1:
        raise SettingError(f"A rectangle has at least one pixel, not {height} x {width}.")


def _check_fits(height: int, width: int, seeds: Tensor) -> None:
    if height > seeds.shape[2] or width > seeds.shape[3]:
        raise SettingError(f"A rectangle of {height} x {width} does not fit into pictures of {_size(seeds)}.")


def _size(seeds: Tensor) -> str:
    return f"{seeds.shape[2]} x {seeds.shape[3]} pixels"
