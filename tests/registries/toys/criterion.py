"""A criterion from one file outside the package: the share of the neurons that some test leaves below a threshold."""

import numpy as np

from idc_core.base.parameters import Parameter
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import criterion
from idc_core.coverage.streamed import TargetCriterion


def lower_neuron(criterion, targets):
    return targets, np.full(len(targets), -np.inf)


@criterion(
    "toy",
    label="Silent neuron coverage",
    help="Share of the neurons that some test leaves below a threshold.",
    citation="None: a toy",
    parameters=(Parameter("threshold", "threshold", "A neuron below it counts as silent.", 0.0, -5, 5, step=0.1),),
    aim=lower_neuron,
)
class SilentNeuronCoverage(TargetCriterion):
    def __init__(self, model, layers, threshold=0.0, *, batch_size=None):
        super().__init__(model, layers, batch_size=batch_size)
        self.threshold = threshold

    def _profile(self, batch):
        return Profiles.of_mask(batch.values < self.threshold)
