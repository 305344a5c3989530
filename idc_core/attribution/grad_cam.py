"""Grad-CAM: the channels of a convolutional layer, weighted by how much the score changes with each.

References
----------
.. [1] R. R. Selvaraju, M. Cogswell, A. Das, R. Vedantam, D. Parikh, D. Batra, "Grad-CAM: visual explanations from deep
   networks via gradient-based localization", ICCV 2017, equations 1 and 2.
"""

from torch import Tensor

from idc_core.attribution.gradients import Batch, captums, gradient_method
from idc_core.errors import UnsupportedOperationError

_MODES = {1: "linear", 2: "bilinear", 3: "trilinear"}
"""How maps are enlarged, by their number of axes."""


@gradient_method(
    "grad-cam",
    label="Grad-CAM",
    help="Maps of a layer's channels, each weighted by its mean gradient; at the input those of the last layer that "
    "has maps, enlarged.",
    sums_to="nothing fixed",
    citation="Selvaraju et al. 2017",
    of_maps=True,
)
def _grad_cam(batch: Batch) -> Tensor:
    """Return what each channel adds to the map of equation 2, before its ReLU, so that evidence against is seen too.

    The input has the map of the last layer that gives maps of more than one position, enlarged to the input's size;
    each of its channels, or of a word's features, has an equal part of it.
    """
    from captum.attr import LayerAttribution, LayerGradCam

    if batch.layer is not None:
        if batch.network.is_of_tokens(batch.layer):
            raise UnsupportedOperationError(
                "Grad-CAM needs channels with maps, and this layer gives tokens. Choose another method."
            )
        method = LayerGradCam(batch.network, batch.layer)
        return captums(method.attribute(batch.inputs, batch.target, batch.held, attr_dim_summation=False))
    last, size = batch.network.last_maps(), batch.inputs.shape[1:]
    of_words = batch.held is not None
    places = size[:-1] if of_words else size[1:]
    if last is None or len(last.shape) != 1 + len(places) or len(places) not in _MODES:
        raise UnsupportedOperationError(
            "Grad-CAM needs a layer whose channels have maps over the input, and no layer of this network, or none "
            "before the neuron that is explained, gives any. Choose another method."
        )
    small = captums(LayerGradCam(batch.network, last.module).attribute(batch.inputs, batch.target, batch.held))
    large: Tensor = LayerAttribution.interpolate(small, tuple(places), _MODES[len(places)])
    large = large.movedim(1, -1) if of_words else large
    return (large / size[-1 if of_words else 0]).expand_as(batch.inputs)
