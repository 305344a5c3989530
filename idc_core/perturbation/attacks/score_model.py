"""A network as attacks see it: from pictures to scores before the final softmax, with gradients."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import Tensor, nn

from idc_core.base.devices import check_values
from idc_core.errors import SettingError
from idc_core.lrp.captures import in_full
from idc_core.lrp.endings import Endings, scores_before
from idc_core.lrp.named_inputs import filled, main_of
from idc_core.lrp.operations import Faster
from idc_core.lrp.scores import scores_of
from idc_core.lrp.session import check_gradient, leads_to, without_gradient
from idc_core.perturbation.inputs import Pictures
from idc_core.tracing.batching import company_of, laid_out, placed


class Scores:
    """The scores of a network, callable as often as an attack needs; inside `undisturbed` for as long.

    A network that ends in a softmax is read before it: behind it, gradients of confident predictions are zero in
    float32, so that attacks stand still. Inputs run in the company that the network takes them in. `elements` counts
    the numbers that the network computes for one input.

    A network of half precision is given inputs of single precision, rounded here alone, and its scores are taken to
    single precision: what an attack changes is then what it meant to change.
    """

    def __init__(self, model: nn.Module, inputs: Pictures) -> None:
        check_values(model.parameters())
        self._company = company_of(model, inputs)
        self._model, self._example, self._leads = model, placed(model, inputs[:1]), False
        self.classes = int(self._company.scores.shape[1])
        if self.classes < 2:
            raise SettingError("Attacks change the answer of a classifier; this network answers with one number.")
        self.elements = self._company.elements
        with torch.no_grad(), Endings():
            returned = scores_of(model(main_of(filled(self._example, self._company.traits.least)).clone()))
        self._has_ending = scores_before(returned) is not returned
        self._expected: Tensor | None = None
        self._first_answers: Tensor | None = None

    def __call__(self, inputs: Tensor) -> Tensor:
        """Return scores (n, classes) of inputs (n, C, H, W); they carry gradients where the inputs do."""
        scores = self._run(inputs)
        if self._expected is not None:
            if torch.equal(inputs, self._expected):
                self._first_answers = scores.detach().argmax(1)
            self._expected = None
        return scores

    def expect(self, inputs: Tensor) -> None:
        """Prepare for an attack on these inputs: most look at them first, which saves a pass for `answers`."""
        self._expected, self._first_answers = inputs, None

    def answers(self, inputs: Tensor) -> Tensor:
        """Return the classes with the highest scores of the inputs that were expected, int64 (n,)."""
        self._expected = None
        return self._run(inputs).argmax(1) if self._first_answers is None else self._first_answers

    def _run(self, inputs: Tensor) -> Tensor:
        # A copy, because a network may write into its input, which has to stay what it was.
        with torch.set_grad_enabled(inputs.requires_grad):
            given = laid_out(self._model, inputs.to(self._example.dtype, copy=True))
            # The faster form of an operation has the same values, and another gradient where several are largest.
            faster = nullcontext() if inputs.requires_grad else Faster()
            with faster, Endings() if self._has_ending else nullcontext():
                scores = self._company.run(given, lambda part: scores_before(scores_of(self._model(part))))
        if inputs.requires_grad and not self._leads:
            self._leads = leads_to(scores, given)
            if not self._leads:
                raise without_gradient(self._model)
        return in_full(scores)

    def check_gradient(self) -> None:
        """Refuse a network whose scores have no gradient to its input."""
        check_gradient(self._model, self._example, self._run)
