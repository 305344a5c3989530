"""Which of several outputs of a network holds the scores of classes. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_CERTAIN = ("logits", "scores", "probabilities", "output_probability")
_USUAL = ("output", "out", "predictions", "prediction")
"""Names that networks and exporters give scores: those that nothing else has, and those that other things may have."""


@dataclass(frozen=True)
class Output:
    """One output: its shape, the batch first and None for a length that is open, and its ending.

    `ending` is "softmax", "log-softmax" or "sigmoid" where it is the result of one, else "". The shape is None where it
    is not known.
    """

    shape: tuple[int | None, ...] | None
    ending: str = ""

    def _fit(self, classes: int) -> int:
        """Say how well it fits so many classes; 0 for not at all, or where these are not known."""
        shape = self.shape
        if not classes or shape is None:
            return 0
        wide = 2 if len(shape) == 2 and shape[1] == classes else 0
        single = len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)
        many = len(shape) > 2 and classes in (shape[1], shape[-1])
        return wide or int(many or (single and classes == 2))


def likeliest(outputs: Mapping[str, Output], counts: Sequence[int] = ()) -> str:
    """Return the name of the output that is most likely that of the scores; of equally likely ones the first.

    Its width counts first, where `counts`, numbers of classes that fit, are known: those of the data, and of the names
    that the network gives its outputs. Then what makes it, and its name.
    """

    def merit(name: str) -> tuple[int, int]:
        output, last = outputs[name], name.rpartition(".")[2].lower()
        known = 4 if last in _CERTAIN else 1 if last in _USUAL else 0
        made = {"softmax": 3, "log-softmax": 3, "sigmoid": 2}.get(output.ending, 0)
        return max((output._fit(count) for count in counts), default=0), max(known, made)

    return max(outputs, key=merit)


def said_choice(taken: str, outputs: Mapping[str, Output]) -> str:
    """Say which output was taken, and which others there are; "" where it is the only one."""
    others = [_said(name, output) for name, output in outputs.items() if name != taken]
    if not others:
        return ""
    return (
        f"Its output {_said(taken, outputs[taken])} is analysed; others are {', '.join(others)[:400]}, which --output "
        "takes instead."
    )


def _said(name: str, output: Output) -> str:
    if output.shape is None:
        return repr(name[:60])
    sides = ", ".join(
        "n" if place == 0 else "any" if side is None else str(side) for place, side in enumerate(output.shape)
    )
    return f"{name[:60]!r} ({sides})"
