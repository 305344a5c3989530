"""What became of every row of the four papers' figures: the registry behind docs/results/papers.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SAME = "by the paper's protocol"
OTHER = "by another protocol"
CHECKED = "recomputed"
NOT = "not reproducible"
REACH = "out of reach here"
NONE = "nothing to measure"
WAITS = "not run yet"

VERDICTS = {
    SAME: "measured here as the paper says, as far as it says it; what it leaves open is named",
    OTHER: "measured here, with a difference of the protocols that can change the number",
    CHECKED: "the printed figure follows from published data, and a test holds the engine to it",
    NOT: "no figure, no setting or no data was published to compare with",
    REACH: "its data sets and networks are not at hand: ImageNet, COCO's networks, PDF and Android files",
    NONE: "it describes the others, or is a setting",
    WAITS: "the command below measures it; its whole run is not kept yet",
}
"""What each verdict means."""


@dataclass(frozen=True)
class Account:
    """Rows of a published file, and what became of them.

    `rows` are the values that columns must have, by column; empty for all rows. An earlier account of a file has
    its rows first, so that a last one can be of the rest. `page` is a document beside papers.md; `kept` names the
    experiment whose results are kept here: without them the verdict is that it was not run yet.
    """

    file: str
    about: str
    verdict: str
    says: str
    page: str = ""
    rows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kept: str = ""

    def holds(self, row: Mapping[str, str]) -> bool:
        """Return whether a row is one of this account's."""
        return all(row[column] in values for column, values in self.rows.items())


_MNIST = {"dataset": ("mnist",)}
_HELD = {"setting": ("cifar100", "robust_cifar10_small", "coco")}
_ELSEWHERE = "ImageNet, driving, PDF files and Android apps: neither these networks nor their data are here."
_UNPUBLISHED = "Neither its data nor its network's outputs are at hand."

ACCOUNTS = (
    Account("README.md", "what the files hold, ambiguous and inconsistent", NONE, "It describes the others."),
    Account(
        "deepimportance-table1.csv",
        "networks, data, accuracy",
        OTHER,
        "The same five architectures, parameter for parameter, trained anew by other recipes; accuracies on each "
        "network's card. Dave-2 is trained on one drive, 1,404 tests instead of 5,614.",
        "rq1.md",
    ),
    Account(
        "deepimportance-table2.csv",
        "RQ1: distances of important and random neurons",
        SAME,
        "Ratio beside ratio on five networks: 1.3 to 2.3 here, 2.4 to 4.5 there. 10 % of the pixels, where the paper "
        "says up to 10 %; Dave-2 with m = 6 for 8. Distances are in units of activation, which change by training.",
        "rq1.md",
        kept="rq1-paper",
    ),
    Account(
        "deepimportance-figure4.csv",
        "RQ1 as boxes",
        NOT,
        "Read off a picture; its boxes for Dave-2 contradict the means of Table 2.",
        "rq1.md",
    ),
    Account(
        "deepimportance-table3.csv",
        "RQ2: IDC of the suites",
        SAME,
        "U_O+DI is above U_O+S in all 20 cells, as there, on ConvNet within the spread of the seeds; as many natural "
        "inputs are above both but on Dave-2. Levels are 0.4 to 4.4 times the paper's, whose noise is not told whole.",
        "rq2.md",
        {"criterion": ("idc",)},
        "rq2-paper",
    ),
    Account(
        "deepimportance-table3.csv",
        "RQ2: other criteria",
        NOT,
        "Tables 3 and 4 of the paper contradict each other over the same suite (NC of LeNet-1 17.3 and 23.8 %), so "
        "they are compared with Table 4 alone.",
        "rq3.md",
    ),
    Account(
        "deepimportance-table4.csv",
        "RQ3: JSMA and Carlini-Wagner",
        OTHER,
        "Run on the first 512 tests only, in tables of their own; Carlini-Wagner by the paper's parameters is slow.",
        "rq3.md",
        {"suite": ("U_O+JSMA", "U_O+CW")},
    ),
    Account(
        "deepimportance-table4.csv",
        "RQ3: IDC with noise, FGSM and BIM added",
        SAME,
        "FGSM and BIM raise IDC above noise in 1 of 12 cells, there in all: one class at a time, attacks not cut off.",
        "rq3.md",
        {"criterion": ("idc",), "suite": ("U_O+S", "U_O+FGSM", "U_O+BIM")},
        "rq3-paper",
    ),
    Account(
        "deepimportance-table4.csv",
        "RQ3: original tests, and the other criteria",
        OTHER,
        "Nine criteria on three networks beside each other; attacks are cut to 0..1 here, which the paper's are not.",
        "rq3.md",
    ),
    Account(
        "deepimportance-table5.csv",
        "RQ5: IDC by layer",
        SAME,
        "IDC rises with depth on all three networks, as there, but for falls of at most 2 points; levels are higher.",
        "rq5.md",
        kept="rq5-paper",
    ),
    Account(
        "deepimportance-rq6.csv",
        "RQ6: accuracy after retraining",
        OTHER,
        "Bars of the web page beside ours; which perturbation it used is not said, and its networks start lower.",
        "rq6.md",
    ),
    Account(
        "deepimportance-settings.csv",
        "hyper-parameters",
        NONE,
        "Every page's table of settings says which are the paper's and which are not.",
        "rq2.md",
    ),
    Account(
        "deepimportance-claims.csv",
        "claims of RQ1 to RQ6",
        OTHER,
        "Each is judged on its page; RQ4 has no number in the paper.",
        "../RESULTS.md",
    ),
    Account(
        "deepxplore-table1.csv",
        "MNIST networks",
        SAME,
        "The published weights answer 97.88, 98.52 and 98.81 % of the tests here, where the paper prints 98.33, 98.59 "
        "and 98.96 %.",
        rows=_MNIST,
    ),
    Account("deepxplore-table1.csv", "ImageNet and driving networks", REACH, _ELSEWHERE),
    Account(
        "deepxplore-table2.csv",
        "differences by network: MNIST",
        SAME,
        "2,000 seeds become 400; which constraint is not said: light here.",
        rows=_MNIST,
        kept="deepxplore",
    ),
    Account("deepxplore-table2.csv", "differences by network: the others", REACH, _ELSEWHERE),
    Account(
        "deepxplore-table5.csv",
        "with and without the coverage term: MNIST",
        SAME,
        "Means of the paper's three experiments beside the light rows.",
        rows=_MNIST,
        kept="deepxplore",
    ),
    Account(
        "deepxplore-table6.csv",
        "neuron coverage by ten inputs: MNIST",
        SAME,
        "Threshold 0.75; activations are scaled as the published program scales them.",
        rows=_MNIST,
        kept="deepxplore",
    ),
    Account("deepxplore-table6.csv", "neuron coverage by ten inputs: the others", REACH, _ELSEWHERE),
    Account(
        "deepxplore-table8.csv",
        "time to full neuron coverage: MNIST",
        SAME,
        "Seconds are another machine's: steps and seeds stand beside them.",
        rows=_MNIST,
        kept="deepxplore",
    ),
    Account("deepxplore-table8.csv", "time to full neuron coverage: the others", REACH, _ELSEWHERE),
    Account(
        "deepxplore-table7.csv",
        "neurons that pairs of tests share",
        SAME,
        "The threshold is not known: 0.25 fits how many are active. 236 neurons are counted here, 268 there.",
        kept="deepxplore",
    ),
    Account(
        "deepxplore-tables9-11.csv",
        "seconds to a difference by step and weights: MNIST",
        OTHER,
        "A step is so many grey levels here; there it is applied behind another normalisation, without clipping.",
        rows=_MNIST,
        kept="deepxplore",
    ),
    Account("deepxplore-tables9-11.csv", "the others", REACH, _ELSEWHERE),
    Account(
        "deepxplore-table12.csv",
        "nearly identical networks",
        SAME,
        "Ten epochs on all training inputs, 100 seeds; the learning rate falls to zero here. 40 epochs more are left "
        "out for time.",
        kept="near",
    ),
    Account(
        "deepxplore-figure9.csv",
        "neuron coverage by threshold: MNIST",
        SAME,
        "As many inputs as 1 % of the tests, three ways; the curves are read off, 2 points either way.",
        rows=_MNIST,
        kept="deepxplore",
    ),
    Account("deepxplore-figure9.csv", "the others", REACH, _ELSEWHERE),
    Account(
        "deepxplore-figure10.csv",
        "accuracy while retraining",
        OTHER,
        "Five seeds of each addition, measured on tests that nothing was made of; the paper's curves start below its "
        "own Table 1, so that its tests are others.",
        "differential.md",
    ),
    Account(
        "deepxplore-claims.csv",
        "training inputs with wrong labels found",
        SAME,
        "30 % of the nines labelled one; how many inputs were suspected for the 95.6 % is not known.",
        rows={"claim": ("polluted training inputs found",)},
        kept="pollution",
    ),
    Account("deepxplore-claims.csv", "the rest", OTHER, "Speed, constraints, retraining.", "differential.md"),
    Account(
        "deepinspect-table2.csv",
        "settings: CIFAR-100, robust CIFAR-10 small, COCO",
        CHECKED,
        "Labels, distances and last-layer weights are published; of the small network the weights are at hand too.",
        "class-errors.md",
        _HELD,
    ),
    Account("deepinspect-table2.csv", "the other settings", REACH, _UNPUBLISHED),
    Account(
        "deepinspect-table3.csv",
        "confusion: CIFAR-100, robust CIFAR-10 small, COCO",
        CHECKED,
        "All counts to the pair, MODE's too: it is the Euclidean distance of the last layer's rows. Random rows are "
        "those of the hypergeometric distribution.",
        "class-errors.md",
        _HELD,
    ),
    Account("deepinspect-table3.csv", "confusion: the other settings", REACH, _UNPUBLISHED),
    Account(
        "deepinspect-table4.csv",
        "bias by MODE: CIFAR-100, robust CIFAR-10 small",
        NOT,
        "COCO's counts come out to the pair by the program's form with MODE's distance; these two do not by any form "
        "tried, and the paper prints equal rows for two other networks.",
        rows={"setting": ("cifar100", "robust_cifar10_small"), "method": ("mode",)},
    ),
    Account(
        "deepinspect-table4.csv",
        "bias: CIFAR-100, robust CIFAR-10 small, COCO",
        CHECKED,
        "All counts to the pair by the published program's form, which differs from the paper's equations.",
        "class-errors.md",
        _HELD,
    ),
    Account("deepinspect-table4.csv", "bias: the other settings", REACH, _UNPUBLISHED),
    Account(
        "deepinspect-aucec.csv",
        "area under the curve: CIFAR-100, robust CIFAR-10 small, COCO",
        CHECKED,
        "Gains over a random order, and of confusion over MODE, to the printed tenth of a percent.",
        "class-errors.md",
        _HELD,
    ),
    Account("deepinspect-aucec.csv", "the other settings", REACH, _UNPUBLISHED),
    Account(
        "deepinspect-rq1-effect-size.csv",
        "effect sizes of neuron coverage by class",
        OTHER,
        "Activations of COCO and CIFAR-100 were never published: the same test and effect sizes on the networks here.",
        kept="class-errors",
    ),
    Account(
        "deepinspect-claims.csv",
        "correlation of coincidence and distance, COCO",
        CHECKED,
        "-0.62 from the published labels and distances, by five ways of counting coincidence; printed is +0.96.",
        rows={"claim": ("rank correlation of coincidence and NAPVD, COCO",)},
    ),
    Account("deepinspect-claims.csv", "the rest", OTHER, "Judged on the page, in part recomputed.", "class-errors.md"),
    Account(
        "deepbase-claims.csv",
        "speed-ups, and what the system does",
        NOT,
        "No table, run time or setting behind the factor of 72 was to be had. Early stopping, verification by swapped "
        "symbols and their errors are measured on a character LSTM.",
        "inspection.md",
    ),
)
"""Accounts in the order of papers, files and rows."""
