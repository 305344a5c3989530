"""Carlini and Wagner's attack: the smallest change, in L2, that makes the network answer wrongly."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from idc_core.perturbation.attacks.registry import Batch, Preset, register
from idc_core.perturbation.parameters import Parameter

INSIDE = 0.999999
"""Values are drawn in by this much, so that those on the border of their range have a finite atanh."""

PROGRESS = 0.9999
"""An input whose loss has not fallen below this share of what it was a tenth of the iterations ago is finished."""


@register(
    "cw",
    "Carlini-Wagner L2",
    "Searches the smallest change that fools the network: slow, and hardly visible.",
    "Carlini, Wagner, IEEE S&P 2017, section VI.A",
    Parameter(
        "learning_rate", "Learning rate", "Adam's step: larger is faster and coarser.", 5e-3, 1e-5, 1.0,
        logarithmic=True,
    ),
    Parameter("search_steps", "Search steps", "How often the weight of being wrong is adjusted.", 5, 1, 20),
    Parameter("iterations", "Iterations", "Steps of Adam for each search step, at most.", 1000, 1, 10000),
    Parameter(
        "initial_constant", "Initial constant", "How much being wrong weighs against a small change, at first.",
        1e-2, 1e-6, 1e6, logarithmic=True,
    ),
    Parameter("confidence", "Confidence", "By how much the wrong score must lead.", 0.0, 0.0, 100.0),
    most=64,
    presets={
        "paper": Preset(
            "the paper's: learning rate 0.005, constant from 0.01, 1,000 iterations",
            {"learning_rate": 5e-3, "search_steps": 5, "iterations": 1000, "initial_constant": 1e-2},
        ),
        "sensible": Preset(
            "sensible: learning rate 0.1, constant from 1, 100 iterations",
            {"learning_rate": 0.1, "search_steps": 5, "iterations": 100, "initial_constant": 1.0},
        ),
    },
)  # fmt: skip
def _carlini_wagner(
    batch: Batch, learning_rate: float, search_steps: int, iterations: int, initial_constant: float, confidence: float
) -> Tensor:
    """Return the closest inputs found that fool the network; the input itself where none was found.

    Notes
    -----
    Value for value what foolbox 3.3 gives when it attacks one input at a time. Foolbox itself ends the descent of a
    whole batch together, so that an input's result depends on its neighbours, and gives black pictures where it finds
    nothing; here an input ends its own descent and leaves the batch.
    """
    start = torch.atanh((batch.inputs * 2 - 1) * INSIDE)
    best = _Best(batch.inputs.clone(), torch.full((len(start),), torch.inf, device=start.device, dtype=start.dtype))
    constant = torch.full((len(start),), initial_constant, dtype=torch.float64, device=start.device)
    low, high = torch.zeros_like(constant), torch.full_like(constant, torch.inf)
    for step in range(search_steps):
        if step == search_steps - 1 and search_steps >= 10:
            constant = high.clamp(max=1e10)
        descent = _Descent(batch, start, learning_rate, iterations, confidence, step / search_steps, 1 / search_steps)
        found = descent.run(constant, best)
        high, low = torch.where(found, constant, high), torch.where(found, low, constant)
        constant = torch.where(high.isinf(), constant * 10, (low + high) / 2)
    return best.inputs


@dataclass
class _Best:
    """The closest inputs so far that fool the network, and their distances."""

    inputs: Tensor
    distance: Tensor

    def take(self, rows: Tensor, inputs: Tensor, distance: Tensor, fooled: Tensor) -> None:
        better = fooled & (distance < self.distance[rows])
        self.inputs[rows[better]] = inputs[better]
        self.distance[rows[better]] = distance[better]


@dataclass
class _Descent:
    """One run of Adam for each input, from the input itself."""

    batch: Batch
    start: Tensor
    learning_rate: float
    iterations: int
    confidence: float
    before: float
    """Share of all the work that earlier descents were, and `part` this one is."""
    part: float

    def run(self, constant: Tensor, best: _Best) -> Tensor:
        """Return which inputs were fooled on the way, bool (n,); `best` takes the closest of what fooled."""
        rows = torch.arange(len(self.start), device=self.start.device)
        fooled_ever = torch.zeros_like(rows, dtype=torch.bool)
        # Of the inputs still at work: change, Adam's two means, and the loss at the last check.
        state = [torch.zeros_like(self.start) for _ in range(3)] + [torch.full_like(best.distance, torch.inf)]
        for step in range(self.iterations):
            self.batch.tick(self.before + self.part * step / self.iterations)
            delta, mean, square, before = state
            inputs, scores, loss, gradient = self._look(rows, delta, constant[rows])
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            size = (mean / (1 - 0.9 ** (step + 1))) / ((square / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8)
            state = [delta - self.learning_rate * size, mean, square, before]
            if step % math.ceil(self.iterations / 10) == 0:
                going = loss <= PROGRESS * before
                state[3] = loss
                if not bool(going.all()):
                    rows, inputs, scores = rows[going], inputs[going], scores[going]
                    state = [one[going] for one in state]
                if not len(rows):
                    break
            fooled = self._fooled(rows, scores)
            fooled_ever[rows] |= fooled
            best.take(rows, inputs, (inputs - self.batch.inputs[rows]).flatten(1).norm(dim=1), fooled)
        return fooled_ever

    def _look(self, rows: Tensor, delta: Tensor, constant: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return inputs, scores and loss at the present change, and the gradient of the loss."""
        point = delta.detach().requires_grad_()
        inputs = (torch.tanh(self.start[rows] + point) + 1) / 2
        scores = self.batch.scores(inputs)
        unchanged = (torch.tanh(self.start[rows]) + 1) / 2
        lead = (self._lead(rows, scores) + self.confidence).clamp(min=0)
        loss = lead * constant.to(lead.dtype) + (inputs - unchanged).flatten(1).square().sum(1)
        (gradient,) = torch.autograd.grad(loss.sum(), point)
        return inputs.detach(), scores.detach(), loss.detach(), gradient

    def _lead(self, rows: Tensor, scores: Tensor) -> Tensor:
        """Return by how much the score to be lowered leads the one to be raised, (n,)."""
        kept = (self.batch.labels if self.batch.goal is None else self.batch.goal)[rows, None]
        own = scores.gather(1, kept)[:, 0]
        other = scores.scatter(1, kept, -torch.inf).amax(1)
        return own - other if self.batch.goal is None else other - own

    def _fooled(self, rows: Tensor, scores: Tensor) -> Tensor:
        """Return which scores lead to a wrong answer, or to the one wanted, by the confidence asked for."""
        sign = 1 if self.batch.goal is None else -1
        kept = (self.batch.labels if self.batch.goal is None else self.batch.goal)[rows]
        weighed = scores.scatter_add(1, kept[:, None], torch.full_like(scores[:, :1], sign * self.confidence))
        right = weighed.argmax(1) == kept
        return ~right if self.batch.goal is None else right
