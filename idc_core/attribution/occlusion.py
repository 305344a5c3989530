"""Occlusion: what the score loses where a window of the input is covered.

References
----------
.. [1] M. D. Zeiler, R. Fergus, "Visualizing and understanding convolutional networks", ECCV 2014, section 4.2.
"""

from torch import Tensor

from idc_core.attribution.gradients import BASELINE, Batch, captums, gradient_method
from idc_core.base.parameters import Parameter

_WINDOW = Parameter(
    "window",
    "Window",
    "Side of what is covered at a time, as a share of the picture's side; of texts and tables it is one part.",
    0.125,
    0.001,
    1.0,
    offered=(0.0625, 0.125, 0.25, 0.5),
)


@gradient_method(
    "occlusion",
    label="Occlusion",
    help="What the score loses where a window of the input is replaced by the baseline; needs no gradients.",
    parameters=(BASELINE, _WINDOW),
    sums_to="nothing fixed: windows overlap by half, and a value has the mean of the windows over it",
    citation="Zeiler, Fergus 2014",
    inside=False,
)
def _occlusion(batch: Batch, window: float) -> Tensor:
    """Return the mean loss of the windows over each value; each covers all channels, or one word or feature."""
    from captum.attr import Occlusion

    shape = tuple(batch.inputs.shape[1:])
    covered: tuple[int, ...]
    step: tuple[int, ...]
    if batch.held is not None:
        covered = step = (1, shape[1])
    elif len(shape) == 1:
        covered = step = (1,)
    else:
        sides = tuple(max(1, round(window * side)) for side in shape[1:])
        covered = (shape[0], *sides)
        step = (shape[0], *(max(1, side // 2) for side in sides))
    losses = captums(
        Occlusion(batch.network).attribute(
            batch.inputs,
            covered,
            step,
            batch.baseline,
            batch.target,
            batch.held,
            perturbations_per_eval=max(1, batch.rows // len(batch.inputs)),
        )
    )
    return losses if batch.held is None else losses / shape[1]  # a word's features share its loss
