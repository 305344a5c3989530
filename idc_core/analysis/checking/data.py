"""Mistakes that the data show: tests among the training inputs, duplicates, classes without inputs, other ranges."""

from __future__ import annotations

from collections.abc import Iterator

from idc_core.analysis.checking.detectors import classification, detector, numbers
from idc_core.analysis.checking.evidence import Evidence
from idc_core.analysis.checking.findings import listed

_FEW = 0.05
"""Share of texts or table rows up to which equal ones are natural; pictures are never equal by themselves."""

_OTHER_RANGE = 10
"""Times that training inputs reach beyond tests, or tests beyond them, that is no accident."""


def _windows(evidence: Evidence) -> bool:
    return not evidence.test.is_spelt  # windows of characters recur


@detector("leak", "tests among the training inputs", _windows)
def _find_leak(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Find tests that are identical to training inputs."""
    training, tests = evidence.training_digests, evidence.test_digests
    of = {digest: training.first[digest] for digest in tests.first if digest in training.first}
    both = [(place, of[digest]) for digest, place in tests.first.items() if digest in of]
    twins = {place for place, _ in both}
    count = len(both) + sum(before in twins for _, before in tests.repeated)
    if not count:
        return
    part = "" if training.read == len(evidence.train) else f" (compared with {training.read:,} of them)"
    examples = listed([f"test {test} is training input {other}" for test, other in both[:3]])
    text = f"{count:,} of {tests.read:,} tests are training inputs, too{part}: {examples}."
    if _natural(evidence, count / tests.read):
        evidence.notes.append(text)
    else:
        yield text, "Take them out of the tests: coverage and accuracy are too high with them."


@detector("duplicates", "identical inputs within a split", _windows)
def _find_duplicates(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Find inputs that are identical to others of their split."""
    for what, data, digests in (
        ("training inputs", evidence.train, evidence.training_digests),
        ("tests", evidence.test, evidence.test_digests),
    ):
        if not digests.repeated:
            continue
        other = sum(bool(data.targets[row] != data.targets[before]) for row, before in digests.repeated)
        contrary = f", {other:,} of them with another target" if other else ""
        row, before = digests.repeated[0]
        text = (
            f"{len(digests.repeated):,} of {digests.read:,} {what} are identical to others{contrary}, such as {row} to "
            f"{before}."
        )
        if _natural(evidence, len(digests.repeated) / digests.read):
            evidence.notes.append(text)
        else:
            yield text, "Keep one of each: they weigh more than others, and tests among them reach nothing new."


def _natural(evidence: Evidence, share: float) -> bool:
    return evidence.inputs.ndim != 4 and share <= _FEW


@detector("empty-class", "classes without tests or training inputs", classification)
def _find_empty_class(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Find classes that one of the splits lacks."""
    for what, data in (("training inputs", evidence.train), ("tests", evidence.test)):
        missing = sorted(set(range(len(data.class_names))) - set(data.targets.tolist()))
        if missing:
            yield (
                f"{len(missing)} of {len(data.class_names)} classes have no {what}: "
                f"{listed([data.class_names[label] for label in missing])}.",
                "Draw the split so that each class is in both parts, or leave the class out of its names.",
            )


@detector("ranges", "training inputs and tests of different range", numbers)
def _find_ranges(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Find splits that were scaled differently."""
    training, tests = (
        (float(values.min()), float(values.max())) for values in (evidence.training_inputs, evidence.inputs)
    )
    reach, of_tests = (max(abs(low), abs(high)) for low, high in (training, tests))
    if max(reach, of_tests) > _OTHER_RANGE * max(min(reach, of_tests), 1e-9):
        yield (
            f"Training inputs lie in {training[0]:.4g}..{training[1]:.4g}, tests in {tests[0]:.4g}..{tests[1]:.4g}.",
            "Prepare both splits in the same way.",
        )
    elif evidence.inputs.ndim == 4 and reach <= 2 / 255 and not evidence.has_found("inputs"):
        yield f"Pixels reach only {reach:.2g}.", "They were probably divided by 255 twice: do it once."
