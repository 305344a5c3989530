"""A run: a kept result with what was chosen, what came out, and what a person says of it."""

from __future__ import annotations

from dataclasses import dataclass

from idc_core.runs.kinds import RUN_KINDS, Score, score_of
from idc_core.store import Facts
from idc_core.store.versions import version_of


@dataclass(frozen=True)
class Run:
    """One run: the name of its file, its facts, and its mark."""

    id: str
    facts: Facts
    name: str = ""
    pinned: bool = False
    shared: bool = False

    @property
    def kind(self) -> str:
        """What a person calls runs of its kind."""
        kind = self.facts.kind
        return RUN_KINDS[kind].label if kind in RUN_KINDS else kind

    @property
    def is_current(self) -> bool:
        """Whether its numbers are of the present version, so that opening it computes nothing."""
        return self.facts.version == version_of(self.facts.kind)

    @property
    def network(self) -> str:
        """The network's name for a person."""
        return self.said("network_label") or self.said("network")

    @property
    def main(self) -> tuple[Score, float] | None:
        """Its most telling figure; None where it has none."""
        known = [score.name for score in RUN_KINDS[self.facts.kind].scores] if self.facts.kind in RUN_KINDS else []
        name = next((name for name in (*known, *self.facts.scores) if name in self.facts.scores), None)
        return None if name is None else (score_of(self.facts.kind, name), self.facts.scores[name])

    @property
    def names(self) -> dict[str, list[str]]:
        """The registered names of the networks and data that it is of."""
        learnt = filter(None, [self.said("training_data")])  # a search follows from no training inputs
        return {
            "networks": [self.said("network"), *self._texts("models")],
            "data": [*learnt, self.said("tests"), *self._texts("suite_data")],
        }

    def _texts(self, name: str) -> list[str]:
        value = self.facts.settings.get(name)
        return [str(item) for item in value] if isinstance(value, list) else []

    def holds(self, text: str) -> bool:
        """Whether its name, kind, id and settings hold all words of a text."""
        held = " ".join((self.name, self.kind, self.id, *map(str, self.facts.settings.values()))).lower()
        return all(word in held for word in text.lower().split())

    def said(self, name: str) -> str:
        """Return a setting as text; empty where there is none."""
        value = self.facts.settings.get(name)
        return "" if value is None else str(value)


def main_text(run: Run) -> str:
    """Write a run's most telling figure with its name."""
    return "" if run.main is None else f"{run.main[0].label} {figure_text(*run.main)}"


def figure_text(score: Score, value: float) -> str:
    """Write a figure as a person reads it."""
    if score.form == "share":
        return f"{100 * value:.1f} %"
    return f"{value:,.0f}" if score.form == "count" else f"{value:.4g}"
