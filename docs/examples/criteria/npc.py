"""Structure-based neuron path coverage, for `idc-studio benchmark docs/examples/criteria/npc.py`.

X. Xie, T. Li, J. Wang, L. Ma, Q. Guo, F. Juefei-Xu, Y. Liu, "NPC: Neuron Path Coverage via Characterizing Decision
Logic of Deep Neural Networks", TOSEM 31(3), 2022. Followed is what its abstract and published summaries say: the
critical decision path of an input holds, in each layer, the neurons that carry a share alpha of the relevance; paths
of the training inputs of a class are clustered and merged into abstract ones; tests cover intervals of how alike
their path is to these. Not said there, and chosen here: alpha, the number of clusters, in which share of a cluster's
paths a neuron is for the merged one to have it, that paths are compared layer by layer by Jaccard's index with all
clusters of the predicted class, and the number of intervals. The activation-based variant is not here.
"""

import numpy as np
from sklearn.cluster import KMeans

from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import Criterion, alike, criterion
from idc_core.errors import SettingError
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.trace import collect


@criterion(
    "snpc",
    label="Structure-based neuron path coverage",
    help="Share of the degrees of likeness to the training inputs' paths of relevance that tests reach.",
    citation="Xie et al., TOSEM 31(3), 2022, as far as its abstract and summaries say",
)
class SNPC(Criterion):
    """Share of (class, cluster, layer, interval of likeness) that tests reach."""

    counted = ("_hit",)

    def __init__(self, model, layers, alpha=0.7, clusters=4, beta=0.7, buckets=20):
        self.model, self.layers = model, (layers,) if isinstance(layers, str) else tuple(layers)
        self.alpha, self.clusters, self.beta, self.buckets = alpha, clusters, beta, buckets
        self._paths, self._hit = None, np.zeros(0, bool)

    def _critical(self, inputs, on_progress):
        """Return each input's path as one boolean array (n, neurons) a layer, and its predicted class."""
        traces = collect(self.model, inputs, self.layers, RelevanceSettings("epsilon"), on_progress=on_progress)
        paths = []
        for layer in self.layers:
            relevance = np.maximum(traces.relevance[layer], 0).astype(np.float64)
            order = np.argsort(-relevance, axis=1, kind="stable")
            carried = np.cumsum(np.take_along_axis(relevance, order, 1), axis=1)
            before = carried - np.take_along_axis(relevance, order, 1)
            path = np.zeros(relevance.shape, bool)
            # A neuron is on the path while those before it carry less than alpha; one without relevance never is.
            needed = (before < self.alpha * carried[:, -1:]) & (carried[:, -1:] > 0)
            np.put_along_axis(path, order, needed, 1)
            paths.append(path)
        return paths, traces.predictions, traces.scores.shape[1]

    def fit(self, inputs, *, on_progress=None):
        paths, predicted, classes = self._critical(inputs, on_progress)
        whole, ends = np.concatenate(paths, axis=1), np.cumsum([path.shape[1] for path in paths])[:-1]
        merged = np.zeros((classes, self.clusters, whole.shape[1]), bool)
        for label in np.unique(predicted):
            mine = whole[predicted == label]
            k = min(self.clusters, len(np.unique(mine, axis=0)))
            found = KMeans(k, n_init=1, random_state=0).fit_predict(mine.astype(np.float32))
            for cluster in range(k):
                merged[label, cluster] = mine[found == cluster].mean(0) >= self.beta
        self._paths = np.split(merged, ends, axis=2)
        self._hit = np.zeros(classes * self.clusters * len(self.layers) * self.buckets, bool)
        return self

    def profile(self, inputs, *, on_progress=None):
        if self._paths is None:
            raise SettingError("SNPC has learned nothing yet: call fit with training inputs first.")
        paths, predicted, _ = self._critical(inputs, on_progress)
        codes = []
        for place, (path, abstract) in enumerate(zip(paths, self._paths, strict=True)):
            theirs = abstract[predicted]
            both, either = (path[:, None] & theirs).sum(2), (path[:, None] | theirs).sum(2)
            alike_by = np.divide(both, either, out=np.zeros(both.shape), where=either > 0)
            bucket = np.minimum((alike_by * self.buckets).astype(np.int64), self.buckets - 1)
            first = (predicted[:, None] * self.clusters + np.arange(self.clusters)) * len(self.layers) + place
            codes.append(np.where(theirs.any(2), first * self.buckets + bucket, -1))
        return Profiles.of_codes(np.sort(np.concatenate(codes, axis=1), axis=1), len(self._hit))

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
