"""Coverage by what important neurons do, for `idc-studio benchmark docs/examples/criteria/nica.py`.

H. Guo, C. Tao, Z. Huang, "Neuron importance-aware coverage analysis for deep neural network testing", Empirical
Software Engineering 29(5), 2024. Only its abstract could be read: important neurons are those with the largest
cumulative contribution to the decision on the training set; a metric compares what they do on a test with what they
do on the training set; coverage follows from it. Chosen here, because the abstract does not say it: contribution is
relevance (LRP), summed over the training inputs; a tenth of each layer's neurons are important; the difference is the
Euclidean distance of their activations to those of the nearest training input of the same predicted class, in units
of the median such distance among the training inputs; coverage is the share of 1,000 equal intervals up to ten of
these units. So this is the idea, not the authors' program, and its row says nothing of theirs.
"""

import numpy as np

from idc_core.coverage.adequacy import Neighbours
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import Criterion, alike, criterion
from idc_core.errors import SettingError
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.trace import collect


@criterion(
    "nica",
    label="Coverage by important neurons' behaviour",
    help="Share of the degrees of unlikeness to training inputs, seen by important neurons, that tests reach.",
    citation="After Guo, Tao, Huang, EMSE 29(5), 2024, whose abstract alone was at hand",
    by_value="most unlike",
)
class NICA(Criterion):
    """Share of the intervals of difference in important neurons' activations that tests fall into."""

    counted = ("_hit",)

    def __init__(self, model, layers, share=0.1, buckets=1000, upper=10.0):
        self.model, self.layers = model, (layers,) if isinstance(layers, str) else tuple(layers)
        self.share, self.buckets, self.upper = share, buckets, upper
        self._important, self._near, self._unit, self._hit = None, {}, 1.0, np.zeros(buckets, bool)

    def _behaviour(self, traces):
        parts = [traces.activations[layer][:, self._important[layer]] for layer in self.layers]
        return np.concatenate(parts, axis=1).astype(np.float64)

    def fit(self, inputs, *, on_progress=None):
        traces = collect(self.model, inputs, self.layers, RelevanceSettings("epsilon"), on_progress=on_progress)
        self._important = {}
        for layer, relevance in traces.relevance.items():
            kept = max(1, round(self.share * relevance.shape[1]))
            self._important[layer] = np.sort(np.argsort(-relevance.sum(0, dtype=np.float64), kind="stable")[:kept])
        behaviour, apart = self._behaviour(traces), []
        self._near = {}
        for label in np.unique(traces.predictions):
            mine = behaviour[traces.predictions == label]
            self._near[int(label)] = Neighbours(mine)
            # Half of the training inputs of a class beside the other half: each is its own nearest one otherwise.
            if len(mine) > 1:
                half = Neighbours(mine[1::2])
                apart.append(half.nearest(mine[::2], slice(0, len(mine[1::2])))[1])
        self._unit = float(np.median(np.concatenate(apart))) if apart else 1.0
        self._hit = np.zeros(self.buckets, bool)
        return self

    def profile(self, inputs, *, on_progress=None):
        if self._important is None:
            raise SettingError("NICA has learned nothing yet: call fit with training inputs first.")
        traces = collect(self.model, inputs, self.layers, on_progress=on_progress)
        behaviour, apart = self._behaviour(traces), np.full(len(traces.scores), np.inf)
        for label, near in self._near.items():
            mine = np.flatnonzero(traces.predictions == label)
            if len(mine):
                apart[mine] = near.nearest(behaviour[mine], slice(0, len(near.points)))[1] / self._unit
        values = np.minimum(apart, 1e9)  # a class that was never predicted in training is as far as can be
        inside = values < self.upper
        bucket = (np.where(inside, values, 0) / self.upper * self.buckets).astype(np.int64)
        return Profiles.of_codes(np.where(inside, bucket, -1)[:, None], self.buckets, values)

    def update(self, inputs, *, on_progress=None):
        self._hit[self.profile(inputs, on_progress=on_progress).targets] = True
        return self

    def fresh(self):
        other = alike(self)
        other._hit = np.zeros_like(self._hit)
        return other

    def merge(self, other):
        self._hit |= other._hit
        return self

    @property
    def score(self):
        return float(self._hit.mean())
