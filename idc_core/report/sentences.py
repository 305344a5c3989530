"""Findings in sentences, as the Overview and the report say them."""

from __future__ import annotations

import numpy as np

from idc_core.analysis.overview import DRAWS, Overview
from idc_core.coverage.cell_table import widest_gap
from idc_core.evidence.discovery import Discovery
from idc_core.figures.wording import cell_name, cluster_name, count, percent, plural


def missed(result: Overview) -> str:
    """Say how many combinations the tests miss."""
    table = result.table
    left = table.total - table.covered
    if not left:
        return f"These {plural(result.tests, 'test')} cover every combination of the important neurons' clusters."
    of = f"{count(left)} of {plural(table.total, 'combination')} of the important neurons' clusters"
    return f"{of} are not covered by the {plural(result.tests, 'test')}."


def in_training(result: Overview) -> str:
    """Say how many of the missed combinations occur in training; empty where none is missed, or nothing is known."""
    left, training = result.table.total - result.table.covered, result.training
    if not left or training is None:
        return ""
    occur = "occurs" if training.missed == 1 else "occur"
    return f"{count(training.missed)} of the {count(left)} {occur} among the {training.inputs:,} training inputs."


def drawn(result: Overview) -> str:
    """Say how many combinations as many training inputs cover; empty where there are too few of them."""
    training, missing = result.training, result.table.total - result.table.covered
    if not missing or training is None or training.drawn is None:
        return ""
    mean, fewest, most = training.drawn
    return (
        f"{plural(result.tests, 'training input')} drawn at random cover {mean:,.0f} ({count(fewest)} to {count(most)} "
        f"in {DRAWS} draws), the tests {count(result.table.covered)}."
    )


def only_errors(result: Overview) -> str:
    """Say which cells only misclassified tests reach; empty where there is none."""
    lonely = [cell_name(result.table.cells[row]) for row in np.flatnonzero(result.errors_only)]
    if not lonely:
        return ""
    others = f" and {plural(len(lonely) - 1, 'other')}" if len(lonely) > 1 else ""
    return f"Cell {lonely[0]}{others} {'are' if len(lonely) > 1 else 'is'} reached only by misclassified tests."


def lowest_coverage(result: Overview) -> str:
    """Say in which cluster the smallest share of cells is covered; empty where all cells are."""
    gap = widest_gap(result.table)
    if gap is None:
        return ""
    neuron, cluster = result.important[gap.position], cluster_name(gap.cluster, result.table.sizes[gap.position])
    reached = f"{count(gap.covered)} of {plural(gap.total, 'cell')}"
    return f"Coverage is lowest where neuron {neuron} is in its {cluster}: {reached}."


def rarest_cluster(result: Overview) -> str:
    """Say which cluster the fewest tests reach."""
    rank, cluster, rare = result.rarest
    return (
        f"The least covered cluster is the {cluster_name(cluster, result.table.sizes[rank])} of neuron "
        f"{result.important[rank]}: {plural(rare, 'test')} of {result.tests:,}."
    )


def relevance(result: Overview) -> str:
    """Say how much of the layer's relevance the important neurons carry."""
    return (
        f"Neuron {result.important[0]} alone carries {percent(result.first_share)} of the positive relevance of layer "
        f"{result.layer}; the {plural(len(result.important), 'important neuron')} of {result.neurons} carry "
        f"{percent(result.together_share)}."
    )


def chance_of_new(left: Discovery) -> str:
    """Say how likely the next test is to reach a new cell."""
    interval = f"{percent(left.low)} to {percent(left.high)}, 95 % interval"
    return f"The next test like these reaches a new cell with a chance of {percent(left.chance)} ({interval})."


def more_tests(left: Discovery) -> str:
    """Say how many new cells as many more tests would reach, and how many cells there are at least."""
    expected, low, high = left.new(left.inputs)
    return (
        f"{count(left.inputs)} more would reach about {plural(round(expected), 'new cell')} ({count(low)} to "
        f"{count(high)}). At least {plural(left.at_least, 'cell')} can be reached."
    )


def finding(result: Overview) -> tuple[str, str, str]:
    """Return the three sentences that a reviewer reads first."""
    ways = (missed, in_training, only_errors, lowest_coverage, rarest_cluster, relevance)
    first, second, third, *_ = [sentence for way in ways if (sentence := way(result))]
    return first, second, third
