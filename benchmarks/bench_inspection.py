"""Hypothesis inspection against one measure, one hypothesis and one unit at a time.

The character LSTM's 512 units, SQL strings of 30 characters and 190 hypotheses about them. The straightforward version
is written as a researcher's script would be: units extracted once and kept in memory, then SciPy's `pearsonr` of each
unit with each hypothesis, and one probe of all units for each hypothesis: scikit-learn's `LogisticRegression`, or a
torch layer trained by Adam in batches. Both sides of a row work on the same records; the slow side does part of its
pairs, all alike, and is scaled up where a row says so. Times are of the processor, all cores together, which other work
on the machine changes little; those of probes are by the clock, the slow side on one thread: on two, scikit-learn's
products wait for each other, take longer by the clock and three times as much of the processors.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats import pearsonr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from threadpoolctl import threadpool_limits
from torch import nn

from benchmarks.measure import Row, few, quick
from idc_core.datasets import Dataset, load_dataset
from idc_core.inspection import Records, Speed, extraction, inspect, library
from idc_core.inspection.hypothesis import Hypothesis
from idc_core.inspection.planning import without
from idc_core.models import load_model

HYPOTHESES = few(190, 10)
RECORDS = int(os.environ.get("INSPECTION_RECORDS", few(29_696, 256)))
PROBE_RECORDS = int(os.environ.get("INSPECTION_PROBE_RECORDS", few(2048, 256)))
SECONDS = float(os.environ.get("INSPECTION_SECONDS", 4 if quick() else 600))
ERROR = 0.05
EPOCHS = 30

NOTE = """\
How many times as fast correlations are follows from how fast SciPy is on the processor: on an AMD EPYC it takes 2.8 ms
a pair, on an Intel Xeon 13 ms, where the engine was 143 and 149 times as fast. On the AMD the matrix product alone,
without which there is no correlation, takes 2.2 s of 4.6 to 6.8 s; where reading stops early, the network takes 5 of
6.4 s.

Why probes are not 72 times as fast as scikit-learn's: both take about 19 passes over the same rows for a probe.
Scikit-learn's products of rows with one column are bound by memory, at about 4 thousand million operations a second;
products of rows with all columns run at 85 on a core of the same machine, so that two cores can be 42 times as fast at
most, with nothing else to do."""


Part = Callable[[nn.Module, Dataset, tuple[Hypothesis, ...]], list[Row]]


def asked(part: Part, records: int) -> list[Row]:
    """Ask the same hypotheses of so many records."""
    every = load_dataset("sql", "train", RECORDS)
    hypotheses = library(every, ("grammar", "words", "characters", "position", "symbols", "runs"))[:HYPOTHESES]
    hypotheses = tuple(
        replace(one, kind="binary", behave=_above(one)) if one.kind != "binary" else one for one in hypotheses
    )
    return part(load_model("charlstm-sql"), load_dataset("sql", "train", records), hypotheses)


def _above(hypothesis: Hypothesis) -> Callable[[Records], np.ndarray]:
    """Counters as yes or no, so that logistic probes can tell them."""
    return lambda records: np.asarray(hypothesis.behave(records)) > 5


def _timed(work: Callable[[], object]) -> tuple[float, object]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def _extracted(model: nn.Module, data: Dataset) -> np.ndarray:
    blocks = (data.inputs[at : at + 128] for at in range(0, len(data), 128))
    return np.concatenate([found["lstm"][0].numpy() for found in extraction._extract(model, ["lstm"], blocks)])


def correlations(model: nn.Module, data: Dataset, hypotheses: tuple[Hypothesis, ...]) -> list[Row]:
    extraction_s, units = _timed(lambda: _extracted(model, data))
    columns = units.T.copy()
    records = Records(data, np.arange(len(data)))
    wanted = [hypothesis(records).reshape(-1) for hypothesis in hypotheses]
    pairs = [(h, u) for u in range(0, columns.shape[0], 8) for h in range(len(wanted))]
    np.random.default_rng(0).shuffle(pairs)
    done, started = 0, time.process_time()
    slow = {}
    for h, u in pairs:
        if time.process_time() - started > SECONDS / 4:
            break
        slow[h, u] = pearsonr(columns[u], wanted[h]).statistic
        done += 1
    every = len(wanted) * len(columns)
    pairwise = (time.process_time() - started) / done * every
    del units, columns
    with _extraction_timed() as spent:
        whole, found = _timed(lambda: inspect(model, data, hypotheses, ["pearson"], ["lstm"]))
    early, sooner = _timed(lambda: inspect(model, data, hypotheses, ["pearson"], ["lstm"], error=ERROR))
    apart = _apart(found, hypotheses, slow)
    read = sooner.table["records"]
    part = f"{len(data):,} records, {len(hypotheses)} hypotheses, 512 units"
    note = f"one run each; {done:,} of {every:,} pairs timed and scaled up"
    against = "SciPy, pair by pair, with the extraction"
    stopped = f"records read: median {int(np.median(read)):,}, at most {read.max():,}"
    return [
        Row(
            f"correlation, {part}, all read",
            whole,
            against,
            extraction_s + pairwise,
            note=f"scores equal to {apart:.0e}; {note}",
        ),
        Row(
            f"correlation, {part}, all read, but for the extraction",
            whole - spent[0],
            "SciPy, pair by pair",
            pairwise,
            times_faster=72,
            note=f"extraction {spent[0]:.1f} s and {extraction_s:.1f} s; {note}",
        ),
        Row(
            f"correlation, {part}, stopped at an error of {ERROR}",
            early,
            against,
            extraction_s + pairwise,
            times_faster=72,
            note=f"{stopped}, scores within {_apart(sooner, hypotheses, slow):.3f}; {note}",
        ),
    ]


@contextmanager
def _extraction_timed() -> Iterator[list[float]]:
    """Tell how long a run waits for its networks."""
    spent = [0.0]
    plain = extraction._extract

    def timed(*arguments: object) -> Iterator[object]:
        source = plain(*arguments)
        while True:
            started = time.process_time()
            found = next(source, None)
            spent[0] += time.process_time() - started
            if found is None:
                return
            yield found

    extraction._extract = timed
    try:
        yield spent
    finally:
        extraction._extract = plain


def _apart(found: object, hypotheses: tuple[Hypothesis, ...], slow: dict[tuple[int, int], float]) -> float:
    names, scores = found.matrix("pearson", "charlstm-sql", "lstm")
    row = {name: at for at, name in enumerate(names)}
    differences = [abs(scores[row[hypotheses[h].name], u] - value) for (h, u), value in slow.items()]
    return float(np.nanmax(differences))


def probes(model: nn.Module, data: Dataset, hypotheses: tuple[Hypothesis, ...]) -> list[Row]:
    inspect(model, data, hypotheses[:2], ["logistic"], ["lstm"])
    started = time.perf_counter()
    found = inspect(model, data, hypotheses, ["logistic"], ["lstm"])
    ours = time.perf_counter() - started
    started = time.perf_counter()
    units = _extracted(model, data)
    extraction_s = time.perf_counter() - started
    train = np.arange(len(units)) < len(units) * 3 // 4
    units = (units - units[train].mean(0)) / units[train].std(0)
    learnt, held_out = units[train], units[~train]
    records = Records(data, np.arange(len(data)))
    wanted = [hypothesis(records).reshape(-1) > 0 for hypothesis in hypotheses]
    order = [at for at in np.random.default_rng(0).permutation(len(wanted)) if 0 < wanted[at][train].mean() < 1]
    scores = {found.table["hypothesis"][line]: found.table["score"][line] for line in found.where(unit=-1)}
    rows = []
    for against, fitted in (
        ("scikit-learn, one hypothesis after the other", _scikit_learn),
        (f"torch, one layer a hypothesis, Adam, {EPOCHS} epochs", _by_batches),
    ):
        with _one_thread():
            slow_scores: list[float] = []
            started = time.perf_counter()
            for at in order:
                if time.perf_counter() - started > SECONDS / 4:
                    break
                said = fitted(learnt, wanted[at][train], held_out)
                slow_scores.append(f1_score(wanted[at][~train], said, zero_division=0))
            done = len(slow_scores)
            slow = (time.perf_counter() - started) / done * len(order)
        same = np.nanmean([scores[hypotheses[at].name] for at in order[:done]])
        part = f"{len(data):,} records, {len(hypotheses)} hypotheses, 512 units"
        same_as = f"mean F1 {same:.3f} where the slow way's is {np.mean(slow_scores):.3f}"
        timed = f"{done} of {len(order)} probes timed and scaled up"
        note = f"{same_as}; by the clock, with the extraction, one run each; {timed}"
        rows.append(Row(f"logistic probes, {part}", ours, against, extraction_s + slow, times_faster=72, note=note))
    return rows


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(threads)


def _scikit_learn(units: np.ndarray, wanted: np.ndarray, held_out: np.ndarray) -> np.ndarray:
    return LogisticRegression(max_iter=300).fit(units, wanted).predict(held_out)


def _by_batches(units: np.ndarray, wanted: np.ndarray, held_out: np.ndarray) -> np.ndarray:
    """Train a probe as networks are: the same loss and penalty, a step for every 512 rows."""
    x, y = torch.from_numpy(units), torch.from_numpy(wanted.astype(np.float32))
    layer = nn.Linear(x.shape[1], 1)
    optimizer = torch.optim.Adam(layer.parameters(), 0.01)
    random = torch.Generator().manual_seed(0)
    for _ in range(EPOCHS):
        for some in torch.randperm(len(x), generator=random).split(512):
            optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits(layer(x[some])[:, 0], y[some])
            (loss + layer.weight.square().sum() / 2 / len(x)).backward()
            optimizer.step()
    with torch.no_grad():
        return (layer(torch.from_numpy(held_out))[:, 0] > 0).numpy()


def switched_off(model: nn.Module, data: Dataset, hypotheses: tuple[Hypothesis, ...]) -> list[Row]:
    """Each optimisation by itself: everything on, against everything but one."""
    rows = []
    some = hypotheses[::10]
    for name, what, measures in (
        ("share", "units extracted once", ["pearson", "iou"]),
        ("cache", "hypotheses evaluated once", ["pearson", "logistic"]),
        ("together", "all hypotheses in one product and one graph", ["pearson", "logistic"]),
    ):
        on, _ = _timed(lambda measures=measures: inspect(model, data, some, measures, ["lstm"]))
        off, _ = _timed(
            lambda measures=measures, name=name: inspect(
                model, data, some, measures, ["lstm"], speed=without(Speed(), name)
            )
        )
        note = f"{len(data):,} records, {len(some)} hypotheses, {' and '.join(measures)}, one run each"
        rows.append(Row(what, on, "switched off", off, note=note))
    return rows


PARTS = {
    "correlations": partial(asked, correlations, RECORDS),
    "probes": partial(asked, probes, PROBE_RECORDS),
    "optimisations one by one": partial(asked, switched_off, few(512, 128)),
}
