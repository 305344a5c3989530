"""What a search raises: objectives by name, and their gradient with respect to the pictures of one network.

A new objective is a function in a file of its own, under the decorator `objective`.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from idc_core.attribution.captum_adapter import check_heads
from idc_core.base.devices import check_values
from idc_core.base.registry import Registry
from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.captures import INPUT, in_full
from idc_core.lrp.interception import Watch
from idc_core.lrp.session import run_watched, undisturbed, watching, with_gradient, without_gradient
from idc_core.tracing.batching import check_captures, company_of, placed
from idc_core.tracing.neurons import neuron_activation, neuron_axes
from idc_core.tracing.pieces import Pieces
from idc_core.tracing.trace import combined
from idc_core.tracing.transfers import brought_back

_SAFE = 2.0
"""By how much the score of the class must lead in a model that keeps it; beyond, nothing more is asked of it."""

_PASS_BYTES = 32 * 2**20
"""Activations of one pass; gradients double them."""

_MOST_INPUTS = 128
"""Pictures of one pass, however small; more leave the caches."""

_Terms = Callable[[Tensor, Tensor, int], tuple[Tensor, Tensor]]
"""From scores (n, classes), the class of each seed (n,), and the number of other models: what is raised where the model
is to keep the class, and what is lowered where it is to lose it, (n,) each."""

Raised = Callable[[Tensor, Tensor, slice], Tensor]
"""From scores (n, classes), activations (n, neurons) and which pictures these are: values (n,) to be raised."""


@dataclass(frozen=True)
class _Objective:
    """What one model adds to the objective of a differential search, with what menus say about it."""

    name: str
    label: str
    help: str
    terms: _Terms


OBJECTIVES: Registry[_Objective] = Registry("objective")
"""Objectives by name."""


def objective(name: str, *, label: str, help: str) -> Callable[[_Terms], _Terms]:
    """Register a function as an objective."""

    def enter(terms: _Terms) -> _Terms:
        OBJECTIVES[name] = _Objective(name, label, help, terms)
        return terms

    return enter


@objective(
    "margin",
    label="Margin",
    help="The lead of the class over the best other score; models that keep the class need only a safe lead.",
)
def _margins(scores: Tensor, classes: Tensor, others: int) -> tuple[Tensor, Tensor]:
    """Return by how much the class's score leads the best other score, up to `_SAFE` where the class is to be kept.

    The models that keep the class share one vote, so that ten of them do not outvote the one that is to lose it. A
    regression has no other score; there the prediction itself stands for the lead.
    """
    own = scores.gather(1, classes[:, None])[:, 0]
    if scores.shape[1] == 1:
        return own / others, own
    rest = scores.scatter(1, classes[:, None], -torch.inf).amax(1)
    lead = own - rest
    return lead.clamp(max=_SAFE) / others, lead


@objective("scores", label="Scores", help="The score of the class alone, as in the paper.")
def _scores_alone(scores: Tensor, classes: Tensor, others: int) -> tuple[Tensor, Tensor]:
    """Return the class's score twice (DeepXplore, equation 2)."""
    own = scores.gather(1, classes[:, None])[:, 0]
    return own, own


class SearchedNetwork:
    """One network during a search: scores, activations, and gradients with respect to the pictures.

    The network is left as it is found, and locked only while it runs. `layers` names the layers whose activations the
    objective is given, one after the other; `examples` are pictures (n, C, H, W), run to see how it takes them.
    """

    def __init__(
        self, model: nn.Module, examples: Tensor, layers: Sequence[str] = (), batch_size: int | None = None
    ) -> None:
        if INPUT in layers:
            raise UnsupportedOperationError("A search aims at neurons of a layer, not of the input; name a layer.")
        for layer in layers:
            check_heads(layer)
        check_values(model.parameters())
        company = company_of(model, examples, layers)
        self.model, self.layers, self._traits = model, tuple(layers), company.traits
        self.axes = neuron_axes(model, self.layers)
        size = batch_size or max(1, min(_MOST_INPUTS, _PASS_BYTES // (4 * company.elements)))
        self._pieces = Pieces(min(size, company.most))

    def scores(self, pictures: Tensor) -> Tensor:
        """Return the scores before the softmax, float32 (n, classes), on the processor."""
        return self._run(pictures, None)[0]

    def activations(self, pictures: Tensor) -> Tensor:
        """Return one activation per neuron of the layers, float32 (n, neurons), on the processor."""
        return self._run(pictures, None)[2]

    def both(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        """Return `scores` and `activations` of one pass."""
        scores, _, activations = self._run(pictures, None)
        return scores, activations

    def climb(self, pictures: Tensor, raised: Raised) -> tuple[Tensor, Tensor]:
        """Return the scores, and the gradient of each picture's value with respect to it, (n, C, H, W)."""
        return self._run(pictures, raised)[:2]

    def _run(self, pictures: Tensor, raised: Raised | None) -> tuple[Tensor, Tensor, Tensor]:

        def run(rows: slice) -> dict[str, Tensor]:
            slope = nullcontext() if raised is None else with_gradient(self.model)
            watch = Watch(None, self._traits, gradients=raised is not None)
            with undisturbed(self.model), torch.set_grad_enabled(raised is not None), slope:
                given = placed(self.model, pictures[rows]).requires_grad_(raised is not None)
                with watching(self.model, self.layers, watch):
                    outputs = run_watched(self.model, given, watch)
                check_captures(watch, outputs, len(given), self.layers)
                held = [in_full(capture.value) for capture in watch.captures]
                values = combined(watch, held, self.layers, None, torch.mean, len(given))
                parts = [neuron_activation(values[layer], self.axes[layer], None) for layer in self.layers]
                active = torch.cat(parts, 1) if parts else outputs.new_zeros(len(outputs), 0)
                slopes = given.new_zeros(0) if raised is None else self._gradient(raised(outputs, active, rows), given)
            return {"scores": outputs.float(), "slopes": slopes.float(), "active": active.float()}

        pieces = [arrays for _, arrays in brought_back(self._pieces(len(pictures), run))]
        scores, slopes, active = (
            torch.cat([torch.from_numpy(part[name]) for part in pieces]) for name in ("scores", "slopes", "active")
        )
        return scores, slopes, active

    def _gradient(self, value: Tensor, given: Tensor) -> Tensor:
        gradient = torch.autograd.grad(value.sum(), given, allow_unused=True)[0] if value.requires_grad else None
        if gradient is None:
            raise without_gradient(self.model)
        return gradient.contiguous()
