"""Findings of the Test sets page in words: which suites add cells, and how many."""

from __future__ import annotations

import numpy as np

from studio.testsets.suite_comparison import ComparedSuites
from studio.text import count, literal, lower, plural
from studio.widgets.layout import names


def headline(found: ComparedSuites) -> str:
    """Say which suite adds most cells, with how many inputs."""
    if len(found.results) < 2:
        return "**Only the original tests are shown.** Choose suites above to see which cells they add."
    if not found.additions:
        return f"**{_covered_by_parts(found)}** A part of the tests adds no cells: choose other suites above."
    m = found.first_m()
    gains, base = found.added(m), found.results[0].cells[m].covered
    labels = [literal(lower(found.options[number].label)) for number in found.additions]
    if not any(gains):
        verb, most = "adds" if len(labels) == 1 else "add", max(found.comparison.ms)
        text = f"{names(labels)} {verb} no new cells for any m up to {most}."
        return f"**{text[0].upper()}{text[1:]}** {_covered_by_parts(found)}"
    first, *others = sorted(found.additions, key=lambda number: -gains[number])
    text = (
        f"{_who(found, first)} adds {plural(gains[first], 'cell')} to the {count(base)} covered by the original tests "
    )
    text += f"(m = {m})"
    others_added = [f"{lower(_who(found, number))} adds {gains[number] or 'none'}" for number in others]
    sentences = [f"**{'; '.join([text, *others_added])}.**"]
    if sum(1 for gain in gains if gain) > 1:
        together = found.comparison.marginal(m, found.comparison.best_order(m))
        sentences.append(f"Together they add {count(int(together[1:].sum()))}.")
    most = max(found.comparison.ms)
    best = int(np.argmax(found.added(most)))
    if most != m and found.added(most)[best] and best != int(np.argmax(gains)):
        cells = plural(found.added(most)[best], "cell")
        sentences.append(f"At m = {most} {literal(lower(found.options[best].label))} adds most: {cells}.")
    return " ".join([*sentences, _covered_by_parts(found)]).strip()


def _who(found: ComparedSuites, number: int) -> str:
    return f"{literal(found.options[number].label)} ({plural(found.results[number].extra, 'input')})"


def _covered_by_parts(found: ComparedSuites) -> str:
    """Say how many cells the suites cover that are parts of the tests."""
    covering = [
        f"{lower(option.label)} ({count(result.inputs)}) cover {count(result.cells[found.m].covered)}"
        for result, option in zip(found.results, found.options, strict=True)
        if option.within
    ]
    covered = plural(found.results[0].cells[found.m].covered, "cell")
    return f"Of the {covered} covered at m = {found.m}, {names(covering)}." if covering else ""


def gains_title(found: ComparedSuites) -> str:
    """State who adds most cells, for the setup's number of neurons and the largest one."""
    if len(found.results) > 1 and not found.additions:
        return _covered_by_parts(found).removesuffix(".")
    ms = sorted({found.m, max(found.comparison.ms)})
    best = {m: int(np.argmax(found.added(m))) for m in ms}
    cells = {m: plural(found.added(m)[best[m]], "cell") for m in ms}
    if not any(best.values()):
        return f"No suite adds cells at m = {' or m = '.join(map(str, ms))}"
    if len(set(best.values())) == 1:
        counts = ", ".join(f"{cells[m]} at m = {m}" for m in ms)
        return f"{found.options[best[ms[0]]].label} adds most: {counts}"
    several = [
        f"at m = {m} {lower(found.options[best[m]].label)} adds most: {cells[m]}"
        if best[m]
        else f"at m = {m} no suite adds cells"
        for m in ms
    ]
    text = "; ".join(several)
    return text[0].upper() + text[1:]


def cumulative_title(found: ComparedSuites, best: list[int], gains: list[int]) -> str:
    """State what the suites add together, from the suites and their gains in the best order."""
    if not any(gains[1:]):
        return f"At m = {found.m} no suite adds cells to the original tests"
    title = f"At m = {found.m} all suites together add {plural(sum(gains[1:]), 'cell')}, "
    title += f"{lower(found.options[best[1]].label)} alone {count(gains[1])}"
    late = sum(1 for gain in gains[1:] if not gain)
    return title + (f"; {plural(late, 'suite')} {'adds' if late == 1 else 'add'} nothing more" if late else "")
