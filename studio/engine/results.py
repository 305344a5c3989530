"""From the setup to results: every engine call that pages share, each computed once.

Results are kept by what they depend on: names, fingerprints of weights and data, the layer, the settings and
the version of the engine. Arrays are shared between sessions and never changed.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.cell_table import CellTable, tabulate
from idc_core.progress import Progress
from studio.engine.jobs import Waiting, shelf
from studio.state.selection import Selection, selected
from studio.state.setup import DEFAULT, Setup, setup_line
from studio.text import plural

if TYPE_CHECKING:
    from idc_core.analysis.analysis import Analysis
    from idc_core.datasets import Dataset
    from idc_core.models import Network
    from idc_core.suites import Suite
    from idc_core.tracing.trace import Traces

STEPS = 6


@dataclass(frozen=True, eq=False)
class View:
    """A setup with its network and results.

    `train` are the network's own training inputs, `test` the tests; the traces are what the layer showed on either; the
    `analysis` is of all tests. `chosen`, int64 (k,), are the positions of the tests whose true class is looked at.
    """

    setup: Setup
    model: Network
    train: Dataset
    test: Dataset
    train_traces: Traces
    test_traces: Traces
    analysis: Analysis
    chosen: NDArray[np.int64]

    @property
    def learnt_key(self) -> tuple[str, str]:
        """Network and training inputs, for the key of a result that depends on them alone."""
        return self.model.card.fingerprint, self.train.fingerprint

    @property
    def key(self) -> tuple[str, str, str]:
        """Network, training inputs and tests, for the key of a result."""
        return *self.learnt_key, self.test.fingerprint

    @property
    def neurons(self) -> list[str]:
        """Names of the important neurons, most important first."""
        return [f"neuron {neuron}" for neuron in self.analysis.important]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Clusters of each important neuron."""
        return tuple(found.k for found in self.analysis.clusters)

    @property
    def is_classifier(self) -> bool:
        """Whether there are classes, so that a test can be right or wrong."""
        return bool(self.test.class_names)

    @property
    def is_comparable(self) -> bool:
        """Whether the tests' classes are the ones that the network answers with."""
        return self.test.class_names == self.train.class_names

    @property
    def correct(self) -> NDArray[np.bool_] | None:
        """Whether each test is classified correctly; None where that cannot be said."""
        return self.analysis.correct if self.is_classifier and self.is_comparable else None

    @property
    def errors_only(self) -> NDArray[np.int64]:
        """Rows of the table whose cells only misclassified tests reach."""
        if self.correct is None:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(self.table.only_errors).astype(np.int64)

    @cached_property
    def table(self) -> CellTable:
        """The covered cells of the chosen tests."""
        chosen, correct = self.chosen, self.correct
        return tabulate(
            self.analysis.assignments[chosen],
            self.sizes,
            self.test.targets[chosen] if self.is_classifier else None,
            None if correct is None else correct[chosen],
            len(self.test.class_names),
        )

    @property
    def position(self) -> int | None:
        """Position among the tests of the selected input; None where none of them is selected."""
        return self.place(selected())

    def place(self, selection: Selection) -> int | None:
        """Return the position among the tests of a selection's input; None where it is none of them."""
        places = np.flatnonzero(self.test.ids == selection.input)
        return int(places[0]) if len(places) else None

    @property
    def line(self) -> str:
        """The setup in one line, so that a screenshot explains itself."""
        network = self.model.card.label.partition(" on ")[0]
        classes = f" of class {self.class_label}" if self.setup.classes else ""
        line = f"{setup_line(network, self.setup, self.analysis.m)}{self._learnt_from}"
        return f"{line} · {plural(len(self.chosen), 'test')}{classes}"

    @property
    def _learnt_from(self) -> str:
        """How much was learnt from, where that is not every training input."""
        from idc_core.datasets import DATASETS

        some = DATASETS[self.model.card.dataset].learns_from
        return f" · learnt from {plural(len(self.train), 'training input')}" if some else ""

    @property
    def class_label(self) -> str:
        """The class filter in words; empty where there is none."""
        return ", ".join(self.setup.classes)


def open_view(setup: Setup) -> View:
    """Compute what the pages show of a setup, or find it again; show progress while it takes long.

    Raises IdcError if the data or the weights are missing or damaged, or the layer cannot be analysed.
    """
    from idc_core.models import MODELS

    waiting = Waiting(STEPS)
    own = MODELS[setup.model].dataset
    waiting.begin("data", _edition(own, "train"), _reader(own, "train"), kept=4)
    waiting.begin("data", _edition(setup.data, "test"), _reader(setup.data, "test"), kept=4)
    key = (setup.model, MODELS[setup.model].edition)
    model = waiting.get("model", key, "loading the network", lambda report: _load_model(setup.model), kept=4)
    card = model.card
    train = open_data(waiting, card.dataset, "train")
    test = open_data(waiting, setup.data, "test")
    train_traces = open_traces(waiting, model, train, setup.layer, "training inputs")
    test_traces = open_traces(waiting, model, test, setup.layer, "tests")
    analysis = _analysis(waiting, setup, setup.m, model, (train, test), (train_traces, test_traces))
    return View(setup, model, train, test, train_traces, test_traces, analysis, of_classes(test, setup.classes))


def open_analysis(waiting: Waiting, view: View, m: int) -> Analysis:
    """Analyse a setup with another number of important neurons, at most all of its layer."""
    traces = (view.train_traces, view.test_traces)
    return _analysis(waiting, view.setup, m, view.model, (view.train, view.test), traces)


def _analysis(
    waiting: Waiting, setup: Setup, m: int, model: Network, data: tuple[Dataset, Dataset], traces: tuple[Traces, Traces]
) -> Analysis:
    m = min(m, traces[0].activations[setup.layer].shape[1])
    settings = clustered(setup)
    fingerprints = (model.card.fingerprint, *(one.fingerprint for one in data))
    key = (*fingerprints, setup.layer, m, *settings.items())

    def work(report: Progress) -> Analysis:
        from idc_core.analysis.analysis import analyze

        return analyze(model, *data, setup.layer, m, traces=traces, on_progress=report, **settings)

    found: Analysis = waiting.get("analysis", key, "clustering the neurons", work)
    return found


def clustered(setup: Setup) -> dict[str, Any]:
    """Return how a setup's neurons are clustered, by the names that `analyze` takes; clusters only where chosen."""
    settings: dict[str, Any] = {"drop_zeros": setup.zeros == "dropped", "clustering": setup.clustering}
    if setup.k != DEFAULT.k:
        settings["clusters"] = (int(setup.k),)
    return settings


def warm(setup: Setup) -> None:
    """Begin to load what the other pages will need, without waiting for it."""
    jobs = shelf()
    for split in ("train", "test"):
        jobs.job("data", _edition(setup.data, split), _reader(setup.data, split), kept=4)
    jobs.job("model", (setup.model, 0), lambda report: _load_model(setup.model), kept=4)


def heatmaps(view: View, positions: NDArray[np.int64], target: int | None) -> NDArray[np.float32]:
    """Return the relevance (k, ...) of the inputs of k tests; `target` None explains the predicted class."""
    from idc_core.attribution.relevance import relevance

    def work(report: Progress) -> NDArray[np.float32]:
        explained = "predicted" if target is None else target
        inputs = view.test.inputs[positions]
        found = relevance(view.model, inputs, ["input"], target=explained, on_progress=report)["input"]
        return np.asarray(found, dtype=np.float32)

    key = (*view.key, tuple(positions.tolist()), target)
    found: NDArray[np.float32] = Waiting(1).get("heatmaps", key, "explaining the inputs", work)
    return found


PICKS = {"first": "the first", "misclassified": "misclassified", "uncertain": "least confident"}
"""Ways to choose which tests to show: key and label."""


def pick(view: View, how: str) -> NDArray[np.int64]:
    """Return the positions of the chosen tests in the order of `how`, a key of `PICKS`."""
    chosen = view.chosen
    if how == "misclassified" and view.correct is not None:
        return chosen[~view.correct[chosen]]
    if how == "uncertain":
        return chosen[np.argsort(view.analysis.confidence[chosen], kind="stable")]
    return chosen


def open_data(waiting: Waiting, name: str, split: Literal["train", "test"]) -> Dataset:
    """Return one split of a data set, read once."""
    from idc_core.datasets import DATASETS

    doing = f"reading {DATASETS[name].label} ({split})"
    found: Dataset = waiting.get("data", _edition(name, split), doing, _reader(name, split), kept=4)
    return found


def _edition(name: str, split: str) -> tuple[str, str, int]:
    """Return the key of one split of a data set; another one when the data set is registered again."""
    from idc_core.datasets import DATASETS

    return name, split, DATASETS[name].edition


def _reader(name: str, split: Literal["train", "test"]) -> Callable[[Progress], Dataset]:
    def read(report: Progress) -> Dataset:
        from idc_core.datasets import DATASETS, load_dataset

        limit = DATASETS[name].learns_from if split == "train" else None
        return load_dataset(name, split, limit, on_progress=report)

    return read


def open_traces(waiting: Waiting, model: Network, data: Dataset, layer: str, what: str) -> Traces:
    """Return what a layer shows on inputs, named `what` for a person, passed through the network once."""
    key = (model.card.fingerprint, data.fingerprint, layer)

    def work(report: Progress) -> Traces:
        from idc_core.lrp.rules import RelevanceSettings
        from idc_core.tracing.trace import collect

        return collect(model, data, [layer], RelevanceSettings(), on_progress=report)

    found: Traces = waiting.get("trace", key, f"running {what} through the network", work, kept=8)
    return found


def _load_model(name: str) -> Network:
    from idc_core.models import load_model

    _prepare_process()
    return load_model(name)


@cache
def _prepare_process() -> None:
    """Load torch, and settle how this server uses the cores and looks for garbage."""
    import torch
    from threadpoolctl import threadpool_limits

    # Leave a core to the server and the other sessions, unless that would leave only one to the passes.
    cores = os.cpu_count() or 1
    torch.set_num_threads(cores if cores <= 2 else cores - 1)
    # NumPy's products are small here. Shared among all cores they take many times as long where others use these
    # too: its threads wait for each other by spinning.
    threadpool_limits(max(1, cores // 4), user_api="blas")
    # Every search for garbage would walk torch's objects; they live as long as the server anyway.
    gc.freeze()


def of_classes(test: Dataset | Suite, classes: tuple[str, ...]) -> NDArray[np.int64]:
    """Return the positions of the inputs whose true class is one of these; of all inputs where none is named."""
    if not classes:
        return np.arange(len(test), dtype=np.int64)
    wanted = [test.class_names.index(name) for name in classes if name in test.class_names]
    return np.flatnonzero(np.isin(test.targets, wanted)).astype(np.int64)
