"""What a report says, as plain values: the page and the JSON file both write this."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from idc_core.evidence.finding import Finding
from idc_core.report.bounds import LONGEST_TEXT, cut

FORMAT = 3
"""Raised whenever a field is renamed, removed or changes its meaning; `report.schema.json` describes this one."""


@dataclass(frozen=True)
class Statement:
    """A finding: a number beside what it is compared with, and the sentence that says both.

    `control` says what gives `expected`, with its range of 95 %; `low` and `high` are the 95 % interval of the number
    less it. Numbers are in `unit`: with "%" they are shares of one. `p` is for this one look of `looks`; the verdict is
    for all of them.
    """

    subject: str
    claim: str
    number: float
    unit: str
    control: str
    expected: float
    expected_low: float
    expected_high: float
    low: float
    high: float
    p: float
    looks: int
    verdict: str
    sentence: str

    @classmethod
    def of(cls, finding: Finding) -> Statement:
        """Return a finding as plain values."""
        control = finding.control
        return cls(
            subject=finding.subject,
            claim=cut(finding.claim, 2 * LONGEST_TEXT),
            number=float(finding.number),
            unit=finding.unit,
            control=control.what,
            expected=float(control.value),
            expected_low=float(control.low),
            expected_high=float(control.high),
            low=float(finding.low),
            high=float(finding.high),
            p=float(finding.p),
            looks=finding.looks,
            verdict=str(finding.verdict),
            sentence=cut(finding.sentence, 2 * LONGEST_TEXT),
        )


@dataclass(frozen=True)
class Network:
    """The network under test."""

    name: str
    label: str
    fingerprint: str
    parameters: int
    task: str
    layer: str


@dataclass(frozen=True)
class Data:
    """Inputs of one of two sorts: what the network learnt from, or the tests."""

    name: str
    label: str
    inputs: int
    classes: int
    fingerprint: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Coverage:
    """What the tests reach; `accuracy` None where there is no right class, `rmse` None for classification.

    `idc` is 0..1, `reachable` how many cells tests or training inputs reach, None where that is not known; `cells` are
    the covered ones with their tests, of which `left_out` are not listed.
    """

    covered: int
    total: int
    idc: float
    reachable: int | None
    accuracy: float | None
    rmse: float | None
    only_errors: int | None  # covered cells that only misclassified tests reach; None where accuracy is
    cells: tuple[Cell, ...]
    left_out: int


@dataclass(frozen=True)
class Cell:
    """A covered cell: the cluster of every important neuron, its tests, and how many of these are misclassified."""

    cell: str
    tests: int
    misclassified: int


@dataclass(frozen=True)
class Left:
    """How much the tests leave to be found, for tests drawn like them; ranges are of 95 %.

    `chance` is that of a new cell at the next test, 0..1; `expected` that many new cells in `more` tests. At least
    `at_least` cells can be reached. The sentences say this; `halves` is what one half of the tests says of the other.
    """

    chance: float
    low: float
    high: float
    more: int
    expected: float
    expected_low: int
    expected_high: int
    at_least: int
    sentences: tuple[str, ...]
    halves: Statement


@dataclass(frozen=True)
class Neuron:
    """An important neuron and its clusters, from the lowest activation to the highest."""

    rank: int
    neuron: int
    share: float  # of the layer's positive relevance, 0..1
    centroids: tuple[float, ...]
    boundaries: tuple[float, ...]
    training_inputs: tuple[int, ...]  # in each cluster
    tests: tuple[int, ...]


@dataclass(frozen=True)
class Test:
    """A test as it is shown: what it is and what the network says of it.

    `true` and `predicted` are written as a person reads them; `correct` is None where nothing is right or wrong. Of
    `picture`, an address that holds it, and `text` one is empty.
    """

    number: int
    true: str
    predicted: str
    confidence: float | None
    correct: bool | None
    cell: str
    distance: float
    """From the cell that it is close to, each neuron in units of its standard deviation over the training inputs."""
    picture: str
    text: str


@dataclass(frozen=True)
class UncoveredCell:
    """A cell that no test reaches, and the tests closest to it."""

    cell: str
    training_inputs: int  # in it
    covered_neighbours: int  # covered cells one step away
    closest: tuple[Test, ...]


@dataclass(frozen=True)
class Uncovered:
    """The uncovered cells; listed are those with most training inputs, then those next to most covered cells."""

    cells: int
    in_training: int | None  # of them occur in training; None where no training input is of the chosen classes
    listed: tuple[UncoveredCell, ...]


@dataclass(frozen=True)
class ConfusedPair:
    """Two classes whose inputs are predicted as each other's: counts, and the rate with its 95 % interval, 0..1."""

    first: str
    second: str
    confused: int
    inputs: int
    expected: float | None  # confused inputs at the rate of the other pairs; None where there are no others
    rate: float
    low: float
    high: float
    verdict: str


@dataclass(frozen=True)
class ClassAccuracy:
    """How many tests of a class are classified correctly, and the share with its 95 % interval, 0..1."""

    name: str
    correct: int
    inputs: int
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class ClassErrors:
    """Errors between classes; `missing` says why there are none to tell, else it is empty.

    `pairs` come with the most confused first, `least_accurate` with the lowest share first; `confused_pairs` counts all
    pairs with a misclassified test, `certain` the truly confused ones: above `cutoff`, the rate above which the paper
    counts a pair as confused, and more than the other pairs. `finding` is the most confused pair beside the others.
    """

    missing: str
    cutoff: float | None
    confused_pairs: int
    certain: int
    finding: Statement | None
    pairs: tuple[ConfusedPair, ...]
    least_accurate: tuple[ClassAccuracy, ...]


@dataclass(frozen=True)
class Criterion:
    """A coverage criterion's score for the tests; None where it cannot be told, and `missing` says why."""

    name: str
    label: str
    help: str
    unit: str  # empty for the share of targets covered, 0..1
    score: float | None
    missing: str


@dataclass(frozen=True)
class Remark:
    """A person's note: when it was written (UTC), what about, on which setup."""

    written: str
    subject: str
    setup: str
    text: str


@dataclass(frozen=True)
class Report:
    """A report. Texts from outside are cut to a length that can be read, and lists to what fits on a few pages."""

    format: int
    date: str
    title: str
    summary: tuple[str, ...]  # what a reviewer reads first
    findings: tuple[Statement, ...]  # all of them, also those that do not stand out
    network: Network
    training: Data
    tests: Data
    chosen: int  # tests looked at
    classes: tuple[str, ...]  # whose tests these are; empty for all
    filter: str  # all that these tests meet, in words, these classes included; empty where all tests are looked at
    coverage: Coverage
    left: Left | None  # None where every cell is covered, and where there are fewer than four tests
    neurons: tuple[Neuron, ...]
    sketch: str  # how far clusters of a sketch can be from the exact ones; empty where all are exact
    uncovered: Uncovered
    class_errors: ClassErrors
    criteria: tuple[Criterion, ...]
    notes: tuple[Remark, ...]
    notes_left_out: int
    settings: dict[str, str]
    versions: dict[str, str]
    command: str  # makes the report again; empty where no command can

    def to_json(self) -> str:
        """Write the report as JSON text."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
