"""A toy transform: each picture mixed with its negative, by a random share."""

from idc_core.base.parameters import Parameter
from idc_core.perturbation.inputs import Pictures
from idc_core.perturbation.transforms import _Streams, register_transform


@register_transform(
    "toy-transform",
    "Toy transform",
    "Mixes each picture with its negative.",
    Parameter("share", "Share of the negative", "0 changes nothing, 1 gives the negative.", 0.8, 0.0, 1.0),
    random=True,
)
def toy(pictures: Pictures, streams: _Streams, share: float) -> Pictures:
    changed = pictures.copy()
    for row, picture in enumerate(changed):
        strength = share * streams(row).uniform(0.9, 1.0)
        picture += strength * (1 - 2 * picture)
    return changed
