"""The result of the whole method on one setup; needs no torch."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.clustering.kmeans import Clusters
from idc_core.coverage.cells import Codes, assign, encode
from idc_core.coverage.profiles import Profiles


@dataclass(frozen=True, eq=False)
class Analysis:
    """What the tests reach, and everything it was computed from.

    Attributes
    ----------
    layer : str
        The layer examined.
    m : int
        Number of important neurons.
    settings : dict
        Every other setting, by name.
    accuracy, rmse : float or None
        Share of tests classified correctly, or the root mean squared error of a regression.
    predictions : ndarray, int64 (tests,)
        Predicted class; 0 for regression.
    confidence : ndarray, float32 (tests,)
        Softmax probability of the predicted class; for regression the predicted value.
    correct : ndarray, bool (tests,)
        Whether the prediction is right; True throughout for regression.
    importance : ndarray, float64 (neurons,)
        Relevance of every neuron of the layer, summed over the training inputs.
    important : ndarray, int64 (m,)
        The important neurons, most important first.
    clusters : tuple of Clusters
        Their clusters; `centroids` holds the centroids that tests are assigned to.
    centroids : tuple of ndarray, float64 (k,)
        Ascending; equal to those in `clusters` unless ``original`` rounds them.
    train_activations : ndarray, float32 (train inputs, m)
        What was clustered.
    test_activations, test_relevance : ndarray, float32 (tests, m)
        Of the important neurons.
    assignments : ndarray, uint8 (tests, m)
        Cluster of every test and neuron.
    codes : ndarray, int64 or object (tests,)
        Cell of every test.
    covered, total : int
        Cells reached, and cells there are.
    score : float
        IDC, 0..1.
    seconds : dict of str to float
        How long each step took.
    """

    layer: str
    m: int
    settings: dict[str, object]
    accuracy: float | None
    rmse: float | None
    predictions: NDArray[np.int64]
    confidence: NDArray[np.float32]
    correct: NDArray[np.bool_]
    importance: NDArray[np.float64]
    important: NDArray[np.int64]
    clusters: tuple[Clusters, ...]
    centroids: tuple[NDArray[np.float64], ...]
    train_activations: NDArray[np.float32]
    test_activations: NDArray[np.float32]
    test_relevance: NDArray[np.float32]
    assignments: NDArray[np.uint8]
    codes: Codes
    covered: int
    total: int
    score: float
    seconds: dict[str, float]

    def assign(self, activations: NDArray[np.floating]) -> NDArray[np.uint8]:
        """Return other inputs' cluster for every important neuron, uint8 (n, m), from activations (n, neurons)."""
        # Rounded centroids have boundaries of their own, half way between them.
        boundaries = None if self.settings["original"] else tuple(of_neuron.boundaries for of_neuron in self.clusters)
        return assign(activations[:, self.important], self.centroids, boundaries)

    def cell_profiles(self, activations: NDArray[np.floating]) -> Profiles:
        """Return the cell of other inputs, as `IDC.profile` does; activations as for `assign`."""
        codes = encode(self.assign(activations), [len(centroids) for centroids in self.centroids])
        return Profiles.of_names(codes, self.total)
