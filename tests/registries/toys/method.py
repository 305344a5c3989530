"""An attribution method with a parameter, as a person would write it: one file outside the package."""

import numpy as np

from idc_core.attribution.methods import attribution_method
from idc_core.base.parameters import Parameter
from idc_core.tracing.trace import trace


@attribution_method(
    "toy-power",
    label="Toy power",
    help="The values of a layer themselves, raised to a power.",
    sums_to="nothing fixed",
    citation="none",
    parameters=(Parameter("power", "Power", "Larger values sharpen.", 1, 1, 3),),
)
def powers(model, inputs, layers, target, *, batch_size=None, on_progress=None, power=1):
    batches = list(trace(model, inputs, layers, batch_size=batch_size, on_progress=on_progress))
    return {name: np.concatenate([one.activations[name].numpy() for one in batches]) ** power for name in layers}
