"""From the setup to results: every engine call that pages share, each computed once.

Results are kept by what they depend on: names, fingerprints of weights and data, the layer, the settings and
the version of the engine. Arrays are shared between sessions and never changed.
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core import store
from idc_core.base.progress import Progress
from idc_core.base.threads import settle
from idc_core.coverage.cell_table import CellTable, tabulate
from idc_core.coverage.idc_settings import CONTROLS, IdcSettings
from idc_core.models.registry import MODELS, shipped_card
from idc_core.runs import PlannedAnalysis, digest, planned_traces
from idc_core.store import notes
from studio.jobs import cluster
from studio.jobs.jobs import SILENT_S, Job, JobKind, Shelf, Waiting, shelf
from studio.jobs.tasks import DiffersError
from studio.state import allowed, device, visitor
from studio.state.selection import Selection, selected
from studio.state.setup import Setup, setup_line
from studio.text import plural

if TYPE_CHECKING:
    from idc_core.analysis.result import Analysis
    from idc_core.datasets import Dataset
    from idc_core.datasets.dataset import Split
    from idc_core.evidence.mistakes import Mistakes
    from idc_core.models import ModelCard, Network
    from idc_core.tracing.traces import Traces

_DATA = JobKind("data", kept=4, lives="everywhere", is_light=True)
_TRACE = JobKind("trace", kept=8)
HEATMAPS = JobKind("heatmaps")
_MODEL = JobKind("model", kept=4, lives="everywhere", is_light=True)

_STEPS = 5

_Carded = tuple["ModelCard", Callable[[], "Network"]]
"""The card of a network, and what reads the network."""


@dataclass(frozen=True, eq=False)
class View:
    """A setup with its network and results.

    `card` is the network's, which `open_model` reads. `train` are its own training inputs, `test` the tests; the traces
    are what the layer showed on either; the `analysis` is of all tests. `chosen`, int64 (k,), are the positions of the
    tests that pass the setup's filter.
    """

    setup: Setup
    card: ModelCard
    open_model: Callable[[], Network]
    train: Dataset
    test: Dataset
    train_traces: Traces
    test_traces: Traces
    analysis: Analysis
    chosen: NDArray[np.int64]

    def __getstate__(self) -> dict[str, object]:
        """Leave out what is made when it is asked for: another process makes its own."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def model(self) -> Network:
        """The network, read when it is first asked for: what is kept needs it no more."""
        return self.open_model()

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was changed to make a network of a person's file; nothing of the project's own."""
        return () if shipped_card(self.setup.model) else self.model.remarks

    @property
    def learnt_key(self) -> tuple[str, str]:
        """Network and training inputs, for the key of a result that depends on them alone."""
        return self.card.fingerprint, self.train.fingerprint

    @property
    def key(self) -> tuple[str, str, str]:
        """Network, training inputs and tests, for the key of a result."""
        return *self.learnt_key, self.test.fingerprint

    @cached_property
    def chosen_key(self) -> str:
        """The chosen tests, for the key of a result of these alone."""
        return digest(self.chosen)

    @cached_property
    def names(self) -> dict[int, str]:
        """What the person calls neurons of the layer, by their numbers."""
        return neuron_names(self.setup)

    @property
    def neurons(self) -> list[str]:
        """Names of the important neurons, most important first."""
        return [self.called(neuron) for neuron in self.analysis.important.tolist()]

    def called(self, neuron: int) -> str:
        """Name a neuron of the layer: its number, and what the person calls it."""
        name = self.names.get(neuron, "")
        return f"neuron {neuron} ({name})" if name else f"neuron {neuron}"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Clusters of each important neuron."""
        return tuple(clustering.k for clustering in self.analysis.clusters)

    @property
    def has_pictures(self) -> bool:
        """Whether inputs are pictures: many are shown side by side, while each text takes a row."""
        return self.test.inputs.ndim == 4

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
    def judged(self) -> NDArray[np.int64]:
        """Positions of the tests that pass the setup's filter but for the suspects that it leaves out."""
        conditions = replace(self.setup.conditions, without=())
        return conditions.positions(self.test, self.analysis, self.train.class_names)

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
        network = self.card.label.partition(" on ")[0]
        line = f"{setup_line(network, self.setup, self.analysis.m)}{self._learnt_from}"
        return f"{line} · {plural(len(self.chosen), 'test')} {self.setup.filter_words}".rstrip()

    @property
    def _learnt_from(self) -> str:
        """How much was learnt from, where that is not every training input."""
        from idc_core.datasets import DATASETS

        some = DATASETS[self.card.dataset].learns_from
        return f" · learnt from {plural(len(self.train), 'training input')}" if some else ""

    @property
    def class_label(self) -> str:
        """The true classes that are looked at, in words; empty for all."""
        return ", ".join(self.setup.classes)


def neuron_names(setup: Setup) -> dict[int, str]:
    """Return what the person calls neurons of a setup's layer, by their numbers."""
    place = {"model": setup.model, "layer": setup.layer}
    return {int(number): name for number, name in notes.names_of("neuron", place, visitor.person()).items()}


def open_view(setup: Setup) -> View:
    """Compute what the pages show of a setup, or find it again; show progress while it takes long.

    Raises IdcError if the data or the weights are missing or damaged, or the layer cannot be analysed.
    """
    waiting = Waiting(_STEPS)
    own = MODELS[setup.model].dataset
    waiting.begin(_DATA, _edition(own, "train"), _reader(own, "train"))
    waiting.begin(_DATA, _edition(setup.data, "test"), _reader(setup.data, "test"))
    # The card of a person's own network is made when its file is read.
    card = shipped_card(setup.model) or _opened(shelf(), setup.model).card
    network = partial(_opened, shelf(), setup.model, card.fingerprint, device.chosen())
    train = open_data(waiting, card.dataset, "train")
    test = open_data(waiting, setup.data, "test")
    train_traces = _open_traces(waiting, (card, network), train, "train", setup.layer)
    test_traces = _open_traces(waiting, (card, network), test, "test", setup.layer)
    traces = (train_traces, test_traces)
    analysis = _analysis(waiting, setup, setup.m, (card, network), (train, test), traces)
    mistakes = judge_mistakes(waiting, setup.layer, card, (train, test), test_traces) if setup.without else None
    chosen = setup.conditions.positions(test, analysis, train.class_names, mistakes)
    return View(setup, card, network, train, test, *traces, analysis, chosen)


def judge_mistakes(
    waiting: Waiting, layer: str, card: ModelCard, data: tuple[Dataset, Dataset], traces: Traces
) -> Mistakes:
    """Return what every misclassified test most likely is, from training inputs and tests, and the tests' traces."""
    train, test = data

    def work(report: Progress) -> Mistakes:
        from idc_core.analysis.mistakes import mistakes_of

        return mistakes_of(traces.scores, train, test)

    key = (card.fingerprint, train.fingerprint, test.fingerprint, layer)
    return waiting.get(JobKind("mistakes"), key, "comparing misclassified tests", work)


def neuron_said(view: View) -> str:
    """Say in a sentence what a neuron of the setup's layer is; "" where it is a single unit."""
    layer = view.setup.layer
    shape = view.train_traces.shapes[layer]

    def work(report: Progress) -> str:
        from idc_core.tracing.neurons import neuron_sentence

        return neuron_sentence(view.model, layer, shape)

    key = (view.card.fingerprint, layer, shape)
    return Waiting(1).get(JobKind("neuron-sentences"), key, "looking at the layer", work)


def open_analysis(waiting: Waiting, view: View, m: int) -> Analysis:
    """Analyse a setup with another number of important neurons, at most all of its layer."""
    traces = (view.train_traces, view.test_traces)
    return _analysis(waiting, view.setup, m, (view.card, view.open_model), (view.train, view.test), traces)


def _analysis(
    waiting: Waiting,
    setup: Setup,
    m: int,
    network: _Carded,
    data: tuple[Dataset, Dataset],
    traces: tuple[Traces, Traces],
) -> Analysis:
    m = min(m, traces[0].activations[setup.layer].shape[1])
    card, open_model = network
    analysis = PlannedAnalysis(card, *data, setup.layer, m, idc_settings(setup))
    plan = analysis.planned(analysis.sources(open_model), traces=traces)
    return waiting.get(JobKind(plan.kind), plan.key, "clustering the neurons", plan.make, settings=plan.settings)


def idc_settings(setup: Setup) -> IdcSettings:
    """Return how IDC is measured in a setup."""
    chosen = {CONTROLS[name]: text for name, text in setup.options.items()}
    return IdcSettings.of(**{control.option: control.choices()[text].value for control, text in chosen.items()})


def prepare_first_visit() -> None:
    """Start the process that will do the work of pages, unless results are kept: it may then have none for long."""
    if store.is_empty():
        shelf().prepare()


def warm(setup: Setup, fingerprints: tuple[str, str, str]) -> None:
    """Begin to load what the other pages will need, without waiting for it; the network only if it is not yet kept.

    `fingerprints` are of the weights, the training inputs and the tests.
    """
    jobs = shelf()
    for split in ("train", "test"):
        jobs.job(_DATA, _edition(setup.data, split), _reader(setup.data, split))
    # Where a result is kept depends on what torch says, which takes a second to load.
    traced = not store.is_empty() and jobs.finished(_TRACE, (fingerprints[0], fingerprints[2], setup.layer)) is not None
    if not traced and not jobs.prepare():
        _model_job(jobs, setup.model)


def heatmaps(
    view: View, positions: NDArray[np.int64], target: int | None, neuron: int | None = None
) -> NDArray[np.float32]:
    """Return the relevance (k, ...) of the inputs of k tests.

    `target` None explains the predicted class; with a `neuron` of the setup's layer it is that neuron's activation.
    """
    from idc_core.attribution.relevance import relevance

    def work(report: Progress) -> NDArray[np.float32]:
        explained = "predicted" if target is None else target
        inputs = view.test.inputs[positions]
        of = None if neuron is None else (view.setup.layer, neuron)
        maps = relevance(view.model, inputs, ["input"], target=explained, of=of, on_progress=report)["input"]
        return np.asarray(maps, dtype=np.float32)

    of_neuron = () if neuron is None else (view.setup.layer, neuron)
    key = (*view.key, tuple(positions.tolist()), target, *of_neuron)
    return Waiting(1).get(HEATMAPS, key, "explaining the inputs", work)


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


def open_data(waiting: Waiting, name: str, split: Split) -> Dataset:
    """Return one split of a data set, read once."""
    from idc_core.datasets import DATASETS

    label = DATASETS[name].label
    doing = f"reading {label} ({split})"
    data_set = waiting.get(_DATA, _edition(name, split), doing, _reader(name, split))
    what = f"{label} has {plural(len(data_set), 'training input' if split == 'train' else 'test')}"
    allowed.check("inputs", len(data_set), what, "Choose other data.")
    return data_set


def _edition(name: str, split: str) -> tuple[str, str, int]:
    """Return the key of one split of a data set; another one when the data set is registered again."""
    from idc_core.datasets import DATASETS

    return name, split, DATASETS[name].edition


def _reader(name: str, split: Split) -> Callable[[Progress], Dataset]:
    def read(report: Progress) -> Dataset:
        from idc_core.datasets import load_dataset

        return load_dataset(name, split, _limit(name, split), on_progress=report)

    return read


def _limit(name: str, split: Split) -> int | None:
    """Return how many inputs of a split are read; None for all."""
    from idc_core.datasets import DATASETS

    return DATASETS[name].learns_from if split == "train" else None


def _open_traces(waiting: Waiting, network: _Carded, data: Dataset, split: Split, layer: str) -> Traces:
    """Return what a layer shows on one split of a data set, passed through the network once."""
    source, open_executor = cluster.passes(*network, data, _limit(data.name, split))
    plan = planned_traces(source, layer, open_executor)
    what = "training inputs" if split == "train" else "tests"
    return waiting.get(_TRACE, plan.key, f"running {what} through the network", plan.make)


def _opened(jobs: Shelf, name: str, fingerprint: str = "", where: str = "") -> Network:
    """Return a network on a device, read once; in any thread or process, for it is read in a thread of its own.

    DiffersError where it is not the one of the fingerprint.
    """
    job = _model_job(jobs, name, where)
    while not job.wait(SILENT_S):
        pass
    network: Network = job.result()
    if fingerprint and network.card.fingerprint != fingerprint:
        raise DiffersError(f"The network {name} was changed while it was read; reload the page.")
    return network


def _model_job(jobs: Shelf, name: str, where: str = "") -> Job[Network]:
    return jobs.job(_MODEL, (name, MODELS[name].edition, where), lambda report: _load_model(name, where))


def _load_model(name: str, where: str) -> Network:
    from idc_core.models import load_model

    prepare_process()
    return load_model(name, device=where)


@cache
def prepare_process() -> None:
    """Load torch, and settle how this process uses the cores and looks for garbage."""
    settle()
    import torch  # noqa: F401 (not in the midst of the work)

    # Every search for garbage would walk torch's objects; they live as long as the server anyway.
    gc.freeze()
    atexit.register(gc.unfreeze)  # DuckDB's types are freed at the end, or it prints that they are not
