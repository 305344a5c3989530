"""Where relevance starts, and the one backward pass that carries it to every captured layer."""

import torch
from torch import Tensor

from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.affine import pull_back
from idc_core.lrp.basic_rules import FAINT
from idc_core.lrp.captures import followed
from idc_core.lrp.contributions import quotient
from idc_core.lrp.interception import Watch


def start_relevance(scores: Tensor, target: str | Tensor) -> Tensor:
    """Return the relevance to start from, (n, classes): the score of the predicted or the chosen class (n,), else 0."""
    chosen = scores.argmax(1) if isinstance(target, str) else target
    start = torch.zeros_like(scores)
    rows = torch.arange(len(scores), device=scores.device)
    start[rows, chosen] = scores.detach()[rows, chosen]
    return start


def check_way(watch: Watch, scores: Tensor) -> None:
    """Refuse scores from which no way leads back to what was captured."""
    if not scores.requires_grad:
        layers = ", ".join(sorted({capture.layer for capture in watch.captures}))
        cut = f" The network cuts them off with .detach(){watch.detached[0]}." if watch.detached else ""
        raise UnsupportedOperationError(
            f"The scores do not depend on {layers} through operations that can be followed.{cut} Choose a layer that "
            "the scores are computed from."
        )
    if not followed(scores):
        raise watch.unseen.refusal(scores, "", last=True)


def propagate(watch: Watch, scores: Tensor, start: Tensor) -> list[Tensor]:
    """Send relevance from the scores back to every capture in one backward pass; zero where no way leads back."""
    check_way(watch, scores)
    if watch.settings is not None and watch.settings.asks_where:
        _mark_last(scores)
    values = [capture.value for capture in watch.captures]
    as_gradient = watch.settings is not None and watch.settings.as_gradient
    begin = quotient(start, scores, FAINT) if as_gradient else start
    relevances = list(pull_back(scores, values, begin, allow_unused=True))
    for place, (value, relevance) in enumerate(zip(values, relevances, strict=True)):
        if relevance is None:
            relevances[place] = torch.zeros_like(value)
        elif as_gradient:  # one gradient may be that of several values
            relevances[place] = value.detach() * relevance
    return relevances


def _mark_last(scores: Tensor) -> None:
    """Tell the places from which nothing but other operations leads to the scores that they are the last."""
    waiting, seen = [scores.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        place = getattr(getattr(node, "rule", None), "place", None)
        if place in ("dense", "convolution"):
            place.last = True
        else:
            waiting.extend(before for before, _ in node.next_functions)
