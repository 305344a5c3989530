"""Units of a recurrent network replaced by their hypothesis, and held at a value while the network writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idc_core.base.arrays import Floats, Ints
from idc_core.base.progress import Progress, report
from idc_core.base.statistics import wilson
from idc_core.datasets import Dataset
from idc_core.errors import DataError, SettingError
from idc_core.inspection import Hypothesis
from idc_core.inspection.hypothesis import Records
from idc_core.lrp.session import undisturbed
from idc_core.models.charlstm import CharLSTM

Change = Callable[[int, Tensor], Tensor]
"""From the number of a symbol and the state (n, units) after it to the state that goes on."""

_CODES = 2
"""The first codes are padding and the unknown character, which are never predicted."""

_HIGH = 0.95
"""Share of the places where a hypothesis is true whose activation is not above the value that a unit is held at."""


def follow(model: CharLSTM, inputs: NDArray[np.integer], change: Change | None = None) -> tuple[Tensor, Tensor]:
    """Read texts symbol by symbol, changing the state on the way.

    Parameters
    ----------
    model : CharLSTM
    inputs : ndarray, int64 (n, length)
    change : callable, optional
        Its result takes the place of the state that the scores and the next symbol see.

    Returns
    -------
    scores : Tensor, float32 (n, characters)
        Of the character that follows.
    states : Tensor, float32 (n, length, units)
        As they are after each symbol, changed.
    """
    with undisturbed(model), torch.inference_mode():
        embedded = model.embedding(torch.from_numpy(np.array(inputs, np.int64)))
        hidden = embedded.new_zeros(len(embedded), model.lstm.hidden_size)
        memory, states = hidden, []
        for place in range(embedded.shape[1]):
            hidden, memory = _step(model, embedded[:, place], hidden, memory)
            hidden = hidden if change is None else change(place, hidden)
            states.append(hidden)
        return model.logits(hidden), torch.stack(states, 1)


def _step(model: CharLSTM, given: Tensor, hidden: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
    """Return state and memory after one symbol."""
    of_given, of_hidden, *biases = model.lstm.all_weights[0]
    gates = given @ of_given.T + biases[0] + hidden @ of_hidden.T + biases[1]
    enter, forget, fresh, leave = gates.chunk(4, 1)
    memory = forget.sigmoid() * memory + enter.sigmoid() * fresh.tanh()
    return leave.sigmoid() * memory.tanh(), memory


@dataclass(frozen=True)
class Replaced:
    """Accuracy of the next character with units replaced by something, and how much less probable it becomes.

    `cost` is by how much the mean negative log-probability of the true character rises, in bits; `low` and `high` are
    its 95 % interval, paired by record.
    """

    hypothesis: str
    units: int
    by: str
    correlation: float
    before: float
    accuracy: float
    cost: float
    low: float
    high: float


def replace_units(
    model: CharLSTM,
    data: Dataset,
    hypotheses: Sequence[Hypothesis],
    counts: Sequence[int] = (1, 5, 20),
    seed: int = 0,
    on_progress: Progress | None = None,
) -> list[Replaced]:
    """Replace the units that a hypothesis fits best by what it says of them, and see what is still predicted.

    For each hypothesis, which has a binary value at every symbol, the units that correlate most with it on the first
    half of the records are set, after every symbol of the second half, to their mean where it is true and their mean
    where it is not. Beside it: the same by the hypothesis of other records, their plain mean, and as many random units
    by the hypothesis. Raises DataError where a hypothesis is no such one, or is true everywhere or nowhere;
    CancelledError if `on_progress` returned False.

    Notes
    -----
    The idea is a predecessor's of DeepBase (T. Sellam et al., SysML 2018): if a unit does nothing but detect the
    hypothesis, the network loses nothing when it is replaced. The paper gives no figure.
    """
    half = len(data) // 2
    learnt, tested = np.arange(half), np.arange(half, len(data))
    states = follow(model, data.inputs[learnt])[1].numpy()
    right, bits = _told(model, data, tested)
    random = np.random.default_rng(seed)
    rows: list[Replaced] = []
    for done, hypothesis in enumerate(hypotheses):
        report(on_progress, done, len(hypotheses), "hypotheses put in the place of units")
        true = _told_apart(hypothesis, _symbols(hypothesis, data, learnt))
        told = _symbols(hypothesis, data, tested)
        score = _correlations(states, true)
        ranked = np.argsort(-np.abs(score), kind="stable")
        dealt = told[random.permutation(len(told))]
        for count in counts:
            chosen, others = ranked[:count], random.permutation(ranked[count:])[:count]
            ways = {
                "the hypothesis": (chosen, told),
                "the hypothesis of other records": (chosen, dealt),
                "their mean": (chosen, None),
                "the hypothesis, random units": (others, told),
            }
            for by, (units, values) in ways.items():
                now, cost = _told(model, data, tested, _replacement(units, states, true, values))
                mean, width = float((cost - bits).mean()), float((cost - bits).std(ddof=1) * 1.96 / np.sqrt(len(bits)))
                rows.append(
                    Replaced(
                        hypothesis.name,
                        count,
                        by,
                        float(np.abs(score[units]).mean()),
                        float(right.mean()),
                        float(now.mean()),
                        mean,
                        mean - width,
                        mean + width,
                    )
                )
    return rows


def _told(model: CharLSTM, data: Dataset, rows: Ints, change: Change | None = None) -> tuple[NDArray[np.bool_], Floats]:
    """Return which next characters are predicted, bool (n,), and how improbable each is, bits (n,)."""
    scores = follow(model, data.inputs[rows], change)[0].double()
    targets = torch.from_numpy(np.array(data.targets[rows]))
    bits = -scores.log_softmax(1).gather(1, targets[:, None])[:, 0] / np.log(2)
    return (scores.argmax(1) == targets).numpy(), bits.numpy()


def _replacement(
    units: Ints, states: NDArray[np.float32], true: NDArray[np.bool_], values: NDArray[np.bool_] | None
) -> Change:
    """Return a change that sets units to their mean where `values` are true, and where not; to their mean without."""
    own = states[:, :, units]
    means = [own.mean((0, 1))] * 2 if values is None else [own[~true].mean(0), own[true].mean(0)]
    low, high = (torch.from_numpy(np.asarray(mean)) for mean in means)

    def change(place: int, hidden: Tensor) -> Tensor:
        hidden = hidden.clone()
        holds = (
            torch.zeros(len(hidden), 1, dtype=torch.bool) if values is None else torch.from_numpy(values[:, [place]])
        )
        hidden[:, units] = torch.where(holds, high, low)
        return hidden

    return change


def _symbols(hypothesis: Hypothesis, data: Dataset, rows: Ints) -> NDArray[np.bool_]:
    """Return where a hypothesis is true, bool (n, symbols)."""
    values = np.asarray(hypothesis(Records(data, rows)))
    if hypothesis.kind != "binary" or values.ndim != 2:
        raise DataError(f"Hypothesis {hypothesis.name!r} must be true or false of every symbol to replace a unit.")
    return values > 0


def _told_apart(hypothesis: Hypothesis, true: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return where a hypothesis is true as it is; DataError where that is everywhere or nowhere."""
    if true.all() or not true.any():
        raise DataError(
            f"Hypothesis {hypothesis.name!r} is true of all symbols of {len(true):,} records or of none: no unit can "
            "tell it. Take more records."
        )
    return true


def _correlations(states: NDArray[np.float32], true: NDArray[np.bool_]) -> Floats:
    """Return the correlation of each unit with where a hypothesis is true, float64 (units,); 0 of constant units."""
    values = states.reshape(-1, states.shape[2]).astype(np.float64)
    marks = true.ravel() - true.mean()
    values -= values.mean(0)
    size = np.sqrt(np.square(values).sum(0) * np.square(marks).sum())
    return np.asarray(np.divide(marks @ values, size, out=np.zeros(len(size)), where=size > 0))


@dataclass(frozen=True)
class Forced:
    """How often a hypothesis is true of what a network writes while units are held high.

    `share` is of the characters written, with Wilson's interval; `free` that without holding any.
    """

    hypothesis: str
    units: int
    which: str
    free: float
    share: float
    low: float
    high: float


def force_units(
    model: CharLSTM,
    data: Dataset,
    hypotheses: Sequence[Hypothesis],
    counts: Sequence[int] = (1, 5, 20),
    length: int = 30,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> list[Forced]:
    """Hold the units that a hypothesis fits best at a high value while the network goes on writing every record.

    A unit is held, after every symbol that is written, at the value that it exceeds in 5 % of the places where the
    hypothesis is true; one that correlates negatively, at the value that it is below in 5 %. Random units are held
    likewise. Characters are drawn from the softmax. Hypotheses must follow from the text alone; otherwise SettingError,
    else as `replace_units`.

    Notes
    -----
    The other mode of verification of the predecessor: force a unit and sample from the model. It gives no figure.
    """
    for hypothesis in hypotheses:
        if not hypothesis.recomputable:
            raise SettingError(f"Hypothesis {hypothesis.name!r} is not known of what a network writes; choose another.")
    everything = np.arange(len(data))
    states = follow(model, data.inputs)[1].numpy()
    free = _written(model, data, length, seed)
    random = np.random.default_rng(seed)
    rows: list[Forced] = []
    for done, hypothesis in enumerate(hypotheses):
        report(on_progress, done, len(hypotheses), "units held while the network writes")
        true = _told_apart(hypothesis, _symbols(hypothesis, data, everything))
        score = _correlations(states, true)
        ranked = np.argsort(-np.abs(score), kind="stable")
        before = _share(hypothesis, data, free)
        for count in counts:
            for which, units in (("best", ranked[:count]), ("random", random.permutation(ranked[count:])[:count])):
                own = states[:, :, units][true]
                ends = np.quantile(own, (1 - _HIGH, _HIGH), axis=0)
                value = torch.from_numpy(np.where(score[units] < 0, *ends).astype(np.float32))
                written = _written(model, data, length, seed, units, value)
                share = _share(hypothesis, data, written)
                low, high = (float(end[0]) for end in wilson(np.array([share]), np.array([written.size])))
                rows.append(Forced(hypothesis.name, count, which, before, share, low, high))
    return rows


def _written(
    model: CharLSTM, data: Dataset, length: int, seed: int, units: Ints | None = None, value: Tensor | None = None
) -> NDArray[np.int64]:
    """Return the codes that a network writes behind every record, (n, length), with units held if there are any."""
    generator = torch.Generator().manual_seed(seed)
    written = []
    with undisturbed(model), torch.inference_mode():
        embedded = model.embedding(torch.from_numpy(np.array(data.inputs)))
        hidden = embedded.new_zeros(len(embedded), model.lstm.hidden_size)
        memory = hidden
        for place in range(embedded.shape[1] + length):
            writing = place >= embedded.shape[1]
            if writing:
                codes = torch.multinomial(model.logits(hidden).softmax(1), 1, generator=generator)[:, 0] + _CODES
                written.append(codes)
            given = model.embedding(codes) if writing else embedded[:, place]
            hidden, memory = _step(model, given, hidden, memory)
            if units is not None and value is not None and place >= embedded.shape[1] - 1:
                hidden[:, units] = value
    return torch.stack(written, 1).numpy()


def _share(hypothesis: Hypothesis, data: Dataset, codes: NDArray[np.int64]) -> float:
    """Return the share of written characters of which a hypothesis is true, 0..1."""
    texts = replace(data, inputs=codes, fingerprint=f"{data.fingerprint}, written")
    return float((np.asarray(hypothesis(Records(texts, np.arange(len(codes))))) > 0).mean())
