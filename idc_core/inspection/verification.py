"""Verify that units respond to a hypothesis, not to something that correlates with it, by swapping symbols.

In a baseline pair a symbol is swapped so that the hypothesis stays true of it, in a treatment pair so that it becomes
false. Units that follow the hypothesis change in another way under treatments than under baselines; the silhouette of
the two kinds of pairs says how far apart the changes lie. Random units show what to expect of units that do not.

Symbols are swapped at random where the text alone says whether the hypothesis holds. Where it takes a parse, the
grammar rewrites the text from some choice on: both texts are derivable, and both parses known.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.base.progress import Progress, report
from idc_core.base.ranges import PAIRS, SEED, SETS
from idc_core.datasets import Dataset
from idc_core.errors import DataError, SettingError
from idc_core.evidence.finding import LEVEL, Control, Finding
from idc_core.inspection.hypothesis import PARSES, Hypothesis, Records, is_text
from idc_core.tracing.neurons import axis_in, neuron_axes
from idc_core.tracing.trace import trace

Swaps = Literal["symbols", "grammar"]

_BATCH = 512
"""Swaps tried at once."""

_FEWEST_PAIRS, _FEW_PAIRS, _MOST_PAIRS = int(PAIRS.low), 30, int(PAIRS.high)
"""Pairs of a kind at least, so few that the finding rests on them alone, and at most: all are compared with all."""

CONFIRMED = LEVEL
"""Share of sets, the chosen one among them, that may separate the pairs as well where a hypothesis is confirmed."""


@dataclass(frozen=True, eq=False)
class Verification:
    """What swapped symbols showed.

    `silhouette`, -1..1, is that of baseline against treatment pairs in the changes of the chosen units; near 0 they
    look alike. `random` (sets,) is the same for other sets of as many random units. `baseline` and `treatment`, float32
    (pairs, units), say how much each chosen unit changed at the swapped symbol.
    """

    silhouette: float
    random: NDArray[np.float64]
    baseline: NDArray[np.float32]
    treatment: NDArray[np.float32]

    @property
    def p_value(self) -> float:
        """Share of the sets, with the chosen one among them, that separate the pairs at least as well."""
        return float((1 + (self.random >= self.silhouette).sum()) / (1 + len(self.random)))

    @property
    def confirmed(self) -> bool:
        """Whether the units answer to the hypothesis more than nearly all random sets do."""
        return self.p_value <= CONFIRMED

    def finding(self, claim: str) -> Finding:
        """Return the silhouette beside that of the random sets; `claim` names it."""
        low, high = (float(end) for end in np.quantile(self.random, [0.025, 0.975]))
        return Finding(
            "verification",
            claim,
            self.silhouette,
            Control("of random sets of neurons", float(self.random.mean()), low, high),
            self.silhouette - high,
            self.silhouette - low,
            self.p_value,
            1 / (1 + len(self.random)),
        )

    @property
    def few(self) -> bool:
        """Whether there are fewer than `_FEW_PAIRS` pairs of a kind."""
        return min(len(self.baseline), len(self.treatment)) < _FEW_PAIRS


def verify(
    model: nn.Module,
    layer: str,
    units: Sequence[int],
    dataset: Dataset,
    hypothesis: Hypothesis,
    *,
    pairs: int = 200,
    sets: int = 99,
    tries: int = 40,
    seed: int = 0,
    swaps: Swaps | None = None,
    on_progress: Progress | None = None,
) -> Verification:
    """Swap symbols so that a hypothesis stays true or becomes false, and compare how units change.

    The layer has a value per symbol, or one per record. `units` score high on the hypothesis: ten or more where none
    scores very high. The hypothesis is binary, with a value per symbol, and a function of the text alone, or of its
    parse. `pairs` of each kind, `_FEWEST_PAIRS` to `_MOST_PAIRS`, are looked for in `tries` batches of `_BATCH` swaps
    at most, and compared with `sets` of random units. `swaps` are random symbols at random places, or what the grammar
    of the data set might have written instead; the first unless the hypothesis takes a parse. The grammar's texts
    differ after the place too: it needs a layer with a value per symbol, and layers that read ahead are affected.
    Raises SettingError if a setting is out of range or the hypothesis is of another kind, DataError if the data set
    holds no texts or too few swaps of either kind are found.

    Notes
    -----
    T. Sellam et al., DeepBase, SIGMOD 2019, section 4.4. The paper swaps words by hand-written rules; here random
    symbols are swapped in, and the hypothesis itself says which kind of pair that makes.
    """
    by_grammar = swapped_by_grammar(dataset, hypothesis, swaps)
    PAIRS.check(pairs)
    SETS.check(sets)
    SEED.check(seed)
    if not len(units):
        raise SettingError("Expected at least one unit.")
    draws = np.random.default_rng(seed)
    tried = _rewritten(dataset, hypothesis, seed) if by_grammar else _swapped(dataset, hypothesis, draws)
    pairs_found = _find_pairs(tried, hypothesis, pairs, tries, on_progress)
    changes = [_changes(model, layer, *some, whole_records=not by_grammar) for some in pairs_found]
    count = changes[0].shape[1]
    chosen = np.array(units, np.int64)
    if chosen.min() < 0 or chosen.max() >= count or len(set(units)) != len(units) or 2 * len(units) > count:
        raise SettingError(f"Expected different units of 0..{count - 1} of {layer}, at most half of them.")
    by_chance: list[float] = []
    while len(by_chance) < sets:
        # Of all units: sets of the others alone would be more alike than the chosen one is to them.
        some = draws.choice(count, len(chosen), replace=False)
        if set(some.tolist()) != set(units):
            by_chance.append(_silhouette(changes, some))
            report(on_progress, len(by_chance), sets, "random sets of neurons")
    return Verification(_silhouette(changes, chosen), np.array(by_chance), changes[0][:, chosen], changes[1][:, chosen])


def swapped_by_grammar(dataset: Dataset, hypothesis: Hypothesis, swaps: Swaps | None = None) -> bool:
    """Return whether `verify` would swap by the grammar; refuse what it would refuse, before any work."""
    if not is_text(dataset):
        raise DataError("Symbols can only be swapped in texts; this data set holds none.")
    by_grammar = swaps == "grammar" or (swaps is None and not hypothesis.recomputable and hypothesis.parsed)
    known = hypothesis.recomputable or (hypothesis.parsed and by_grammar)
    if hypothesis.kind != "binary" or not known:
        raise SettingError(
            f"{hypothesis.name!r} cannot be verified by swapping symbols: expected a binary hypothesis that follows "
            "from the text or from its parse, so that it is known of changed texts too."
        )
    if by_grammar and dataset.name not in REWRITERS:
        raise SettingError(f"{dataset.name} has no grammar that could rewrite its texts; swap single symbols instead.")
    return by_grammar


_Pairs = tuple[NDArray[np.generic], NDArray[np.generic], NDArray[np.int64]]
"""Texts before, texts after, and the place that was swapped."""

_Tried = tuple[NDArray[np.generic], NDArray[np.generic], NDArray[np.int64], NDArray[np.bool_]]
"""The same, and whether the hypothesis still holds there."""


def _swapped(dataset: Dataset, hypothesis: Hypothesis, draws: np.random.Generator) -> Iterator[_Tried]:
    """Yield batches of texts in which a symbol of which the hypothesis holds became another one."""
    symbols = np.unique(dataset.inputs)
    symbols = symbols[symbols != dataset.padding]
    while True:
        before = Records(dataset, draws.integers(0, len(dataset), _BATCH))
        true = _of_symbols(hypothesis, before)
        rows = np.flatnonzero(true.any(1))
        # Of each text one of the places where the hypothesis is true, each as likely as the others.
        places = np.where(true[rows], draws.random(true[rows].shape), -1).argmax(1)
        after = before.inputs[rows].copy()
        each = np.arange(len(rows))
        after[each, places] = draws.choice(symbols, len(rows))
        still = _of_symbols(hypothesis, _changed(dataset, after))[each, places]
        differs = after[each, places] != before.inputs[rows][each, places]
        yield before.inputs[rows][differs], after[differs], places[differs], still[differs]


def _rewritten(dataset: Dataset, hypothesis: Hypothesis, seed: int) -> Iterator[_Tried]:
    """Yield batches of texts that the grammar rewrote at a symbol of which the hypothesis holds."""
    source = random.Random(f"rewritten {seed}")
    while True:
        made = REWRITERS[dataset.name](dataset, _BATCH, source)
        each = np.arange(_BATCH)
        holds, other = (_of_symbols(hypothesis, side)[each, made.places] for side in (made.before, made.after))
        # The two are alike but for the choices after the place: what holds of the second only is read backwards.
        first = np.where(holds[:, None], made.before.inputs, made.after.inputs)
        second = np.where(holds[:, None], made.after.inputs, made.before.inputs)
        kept = holds | other
        yield first[kept], second[kept], made.places[kept], (holds & other)[kept]


def _of_symbols(hypothesis: Hypothesis, records: Records) -> NDArray[np.bool_]:
    """Return where a hypothesis holds, padding left out: bool (n, symbols)."""
    true = hypothesis(records) > 0
    if true.shape != records.inputs.shape:
        raise SettingError(f"{hypothesis.name!r} has one value per record; expected one per symbol.")
    return np.asarray(true & records.present)


def _find_pairs(
    tried: Iterator[_Tried], hypothesis: Hypothesis, pairs: int, tries: int, on_progress: Progress | None
) -> list[_Pairs]:
    """Return the first pairs in which the hypothesis stays true, and in which it becomes false."""
    kept: list[list[_Pairs]] = [[], []]
    counts = [0, 0]
    for attempt in range(tries):
        report(on_progress, attempt, tries, "batches of swaps, at most")
        before, after, places, still = next(tried)
        for kind, mask in enumerate((still, ~still)):
            picked = np.flatnonzero(mask)[: pairs - counts[kind]]
            kept[kind].append((before[picked], after[picked], places[picked]))
            counts[kind] += len(picked)
        if min(counts) == pairs:
            break
    if min(counts) < _FEWEST_PAIRS:
        raise DataError(
            f"Among {tries * _BATCH:,} swaps {counts[0]} kept {hypothesis.name!r} true and {counts[1]} made it false; "
            f"at least {_FEWEST_PAIRS} of each are needed. Choose a hypothesis that more symbols decide."
        )
    columns = [[np.concatenate(column) for column in zip(*parts, strict=True)] for parts in kept]
    return [(column[0], column[1], column[2]) for column in columns]


def _changes(
    model: nn.Module,
    layer: str,
    before: NDArray[np.generic],
    after: NDArray[np.generic],
    places: NDArray[np.int64],
    whole_records: bool,
) -> NDArray[np.float32]:
    """Return how much each unit changed at the swapped symbols, float32 (pairs, units)."""
    axis = neuron_axes(model, [layer])[layer]
    sides = []
    for inputs in (before, after):
        parts = []
        for batch in trace(model, inputs, [layer]):
            shown = batch.activations[layer]
            value = shown.movedim(axis_in(shown.dim(), axis), -1).float().cpu().numpy()
            if value.ndim == 3 and value.shape[1] == inputs.shape[1]:
                value = value[np.arange(len(value)), places[batch.start : batch.start + len(value)]]
            elif value.ndim != 2 or not whole_records:
                or_record = " or record" if whole_records else ""
                raise SettingError(f"{layer} has no value per symbol{or_record}; choose another layer.")
            parts.append(value)
        sides.append(np.concatenate(parts))
    return np.asarray(sides[1] - sides[0])


def _silhouette(changes: Sequence[NDArray[np.float32]], units: NDArray[np.int64]) -> float:
    from sklearn.metrics import silhouette_score

    points = np.concatenate([change[:, units] for change in changes])
    kinds = np.repeat([0, 1], [len(change) for change in changes])
    return float(silhouette_score(points, kinds))


@dataclass(frozen=True, eq=False)
class _Rewritten:
    """Pairs of texts with their parses, and the first place (n,) where the two of a pair differ."""

    before: Records
    after: Records
    places: NDArray[np.int64]


class _Replay(random.Random):
    """Numbers that were drawn before, then those of another source; remembers all."""

    def __init__(self, given: Sequence[float], source: random.Random) -> None:
        super().__init__(0)
        self.taken: list[float] = []
        self._given, self._source = given, source

    def random(self) -> float:
        """Return the next number."""
        done = len(self.taken)
        self.taken.append(self._given[done] if done < len(self._given) else self._source.random())
        return self.taken[-1]


def _rewrite_sql(dataset: Dataset, count: int, source: random.Random) -> _Rewritten:
    """Derive `count` pairs of the project's SQL grammar that make the same choices up to a random one."""
    from idc_core.datasets.sql import SYMBOLS, Sentence, encode, make_sentence, parses_of

    sides: tuple[list[Sentence], list[Sentence]] = [], []
    begins: list[int] = []
    places: list[int] = []
    while len(begins) < count:
        first = _Replay((), source)
        written = make_sentence(first)
        other = make_sentence(_Replay(first.taken[: int(source.random() * len(first.taken))], source))
        shorter = min(len(written.text), len(other.text))
        place = next((at for at in range(shorter) if written.text[at] != other.text[at]), shorter)
        lowest, highest = max(0, place - SYMBOLS + 1), min(place, shorter - SYMBOLS)
        if place == shorter or highest < lowest:
            continue
        begins.append(lowest + int(source.random() * (highest - lowest + 1)))
        places.append(place - begins[-1])
        for side, sentence in zip(sides, (written, other), strict=True):
            side.append(sentence)
    starts = np.array(begins, np.int64)
    made = []
    for side in sides:
        codes = encode([text.text[at : at + SYMBOLS] for text, at in zip(side, begins, strict=True)])
        made.append(_changed(dataset, codes, {PARSES: parses_of(side, starts)}))
    return _Rewritten(made[0], made[1], np.array(places, np.int64))


def _changed(dataset: Dataset, inputs: NDArray[np.generic], memo: dict[object, object] | None = None) -> Records:
    """Return texts as records of a data set; nothing but what `memo` holds is known of them beyond the texts."""
    count = len(inputs)
    data = replace(
        dataset, inputs=inputs, targets=np.zeros(count, np.int64), texts=(), ids=np.arange(count), fingerprint=""
    )
    return Records(data, np.arange(count), memo or {})


REWRITERS: dict[str, Callable[[Dataset, int, random.Random], _Rewritten]] = {"sql": _rewrite_sql}
"""Functions that rewrite the texts of data sets whose grammar is known, by the data set's name."""
