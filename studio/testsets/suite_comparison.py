"""The chosen suites side by side: each passed through the network once, and what each adds to the tests."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.errors import CancelledError, IdcError
from studio.jobs import suite_addresses, suite_catalog
from studio.jobs.jobs import HALTED, JobKind, Waiting
from studio.jobs.results import View, open_analysis
from studio.jobs.runs import run_settings
from studio.jobs.suite_catalog import SuiteOption
from studio.state.setup import MOST_NEURONS
from studio.text import literal, lower

if TYPE_CHECKING:
    from idc_core.analysis.result import Analysis
    from idc_core.suites import PartResponses, Suite, SuiteComparison
    from idc_core.suites.comparison import SuiteResult
    from idc_core.suites.suite import SuitePart

_ORIGINAL = SuiteOption("original", "Original tests", "The tests as they are.", "original")


@dataclass(frozen=True, eq=False)
class ComparedSuites:
    """Suites side by side, the original tests first; `problems` has a sentence for each suite that is left out.

    `learnt` has the neurons and clusters, `of_tests` the responses to the original tests.
    """

    view: View
    options: list[SuiteOption]
    suites: list[Suite]
    comparison: SuiteComparison
    problems: list[str]
    learnt: Analysis
    of_tests: PartResponses

    @property
    def results(self) -> tuple[SuiteResult, ...]:
        """What each suite shows."""
        return self.comparison.suites

    @property
    def m(self) -> int:
        """The number of neurons of the setup."""
        return self.view.analysis.m

    @property
    def key(self) -> Hashable:
        """What all of it depends on."""
        fingerprints = tuple(suite.fingerprint for suite in self.suites)
        return (fingerprints, tuple(option.label for option in self.options), self.comparison.ms)

    @property
    def additions(self) -> list[int]:
        """Places of the suites that have inputs beyond the tests."""
        return [number for number, option in enumerate(self.options) if number and not option.within]

    def added(self, m: int) -> list[int]:
        """Return how many cells each suite adds to the original tests."""
        return [len(result.cells[m].added) for result in self.results]

    def first_m(self) -> int:
        """Return the setup's m where a suite adds cells there, else the first other one where one does."""
        adds = [m for m in self.comparison.ms if any(self.added(m))]
        return self.m if self.m in adds or not adds else adds[0]

    def judged(self, number: int) -> bool:
        """Whether a suite's answers can be right or wrong."""
        return self.options[number].judged and (self.view.correct is not None or not self.view.is_classifier)

    @property
    def provenance(self) -> str:
        """How every suite was made, as a list."""
        return "\n".join(
            f"* {option.label}: "
            + "; ".join(
                step.label + (f", seed {step.seed}" if step.seed is not None else "") for step in suite.provenance
            )
            + f"; fingerprint `{suite.fingerprint}`"
            for option, suite in zip(self.options, self.suites, strict=True)
        )


def compare(view: View, names: Sequence[str]) -> ComparedSuites:
    """Compare the original tests with suites by name, or find the comparison again; say what is left out."""
    suites = compare_chosen(view, names)
    for problem in suites.problems:
        st.warning(problem)
    return suites


def compare_chosen(view: View, names: Sequence[str]) -> ComparedSuites:
    """Compare the original tests with suites by name; show progress while it takes long.

    Suites that were not finished, because the person pressed Stop, are left out.
    """
    from idc_core.suites import compare_responses
    from idc_core.suites.comparison import MS

    known = suite_catalog.suite_options(view)
    waiting = Waiting(2 + 2 * len(names))
    base = suite_catalog.base_suite(view)
    problems: list[str] = []
    # Neurons and clusters of the first m are those of every smaller one, so that one analysis serves all.
    learnt: Analysis = view.analysis
    try:
        learnt = open_analysis(waiting, view, max(view.setup.m, MOST_NEURONS))
    except CancelledError:
        problems.append(f"Stopped before more neurons than {view.analysis.m} were clustered.")
    ms = sorted({view.analysis.m, *(m for m in MS if m <= len(learnt.important))})
    of_tests = _of_tests(view, learnt)
    responses = {base.parts[0].fingerprint: of_tests}
    options, suites = [_ORIGINAL], [base]
    for name in names:
        label = known[name].label if name in known else name
        try:
            suite = suite_catalog.open_suite(waiting, view, name, known)
            twin = next((other for other in suites if other.fingerprint == suite.fingerprint), None)
            if twin is not None:
                problems.append(
                    f"{literal(label)} is left out: it has the same inputs as {literal(lower(twin.label))}."
                )
                continue
            for part, targets in suite.parts_with_targets:
                if part.fingerprint not in responses:
                    responses[part.fingerprint] = _respond(waiting, view, suite, part, targets, learnt)
        except CancelledError:
            problems.append(f"Stopped before it was finished: {literal(label)}.")
        except IdcError as error:
            problems.append(f"{literal(label)} is left out. {literal(error)}")
        else:
            options.append(known[name])
            suites.append(suite)
    compared = _compared(waiting, view, options, suites, lambda: compare_responses(suites, responses, learnt, ms), ms)
    return ComparedSuites(view, options, suites, compared, problems, learnt, of_tests)


def _compared(
    waiting: Waiting,
    view: View,
    options: list[SuiteOption],
    suites: list[Suite],
    compare: Callable[[], SuiteComparison],
    ms: list[int],
) -> SuiteComparison:
    """Put the suites side by side; a run where there are several."""
    if len(suites) == 1 or st.session_state.get(HALTED):
        return compare()
    from idc_core.datasets import DATASETS

    names = [option.name for option in options[1:]]
    bases = {suite_addresses.parse(part).base for name in names for part in suite_addresses.split(name)}
    facts = run_settings(
        view,
        suites=[option.label for option in options[1:]],
        suite_data=sorted(bases & set(DATASETS)),
        perturbed=suite_catalog.perturbed_count(view),
        ms=ms,
    )
    prints = tuple((suite.fingerprint, suite.label) for suite in suites)
    key = (*view.key, view.setup, prints, tuple(ms))
    return waiting.get(JobKind("comparisons"), key, "comparing the suites", lambda report: compare(), settings=facts)


def _of_tests(view: View, learnt: Analysis) -> PartResponses:
    """Return the responses to the setup's own tests, which are traced already."""
    from idc_core.suites import responses_from_traces

    rows, traces = view.chosen, view.test_traces
    scores, activations = traces.scores[rows], traces.activations[view.setup.layer][rows]
    return responses_from_traces(scores, activations, view.test.targets[rows], view.test.task, learnt.important)


def _respond(
    waiting: Waiting, view: View, suite: Suite, part: SuitePart, targets: NDArray[np.generic], learnt: Analysis
) -> PartResponses:
    """Run a part of a suite through the network."""

    def work(report: Progress) -> PartResponses:
        from idc_core.suites import part_responses

        return part_responses(view.model, part, targets, suite.task, view.setup.layer, learnt.important, report)

    key = (view.card.fingerprint, part.fingerprint, view.setup.layer, len(learnt.important))
    return waiting.get(JobKind("seen", kept=64), key, f"making and running {lower(suite.label)}", work)
