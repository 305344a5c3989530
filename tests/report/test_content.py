"""What a report says: every number counted again, slowly; the same settings give the same bytes."""

import itertools
import json
import math
import re
from dataclasses import replace

import jsonschema
import numpy as np
import pytest

import idc_core as idc
from idc_core.analysis.filtering import Conditions
from idc_core.clustering.kmeans import sketch_sentence
from idc_core.clustering.sketched import SketchedPartitions
from idc_core.coverage import CRITERIA
from idc_core.coverage.discovery import second_half
from idc_core.errors import CancelledError, SettingError
from idc_core.evidence.finding import Control, Finding, Verdict, counted_together
from idc_core.report import bounds
from idc_core.report.charts import grid_chart, histogram_chart
from idc_core.report.content import Statement
from idc_core.report.making import make_report
from idc_core.report.remarks import notes_on
from idc_core.report.sentences import nothing, reach
from idc_core.report.writing import _write_page, make_files
from idc_core.store.notes import Note
from tests.report.reading import SCHEMA, gathered

DATE = "2026-11-23"


@pytest.fixture(scope="module")
def material():
    model = idc.load_model("lenet5-digits")
    train, test = (idc.load_dataset("digits", split) for split in ("train", "test"))
    return gathered(model, train, test, "fc2", 6)


@pytest.fixture(scope="module")
def report(material):
    return make_report(material, date=DATE, command="python -m idc_core report")


@pytest.fixture(scope="module")
def some(material):
    """The same of the tests of two classes."""
    return replace(material, conditions=Conditions(classes=("3", "8")))


def cells_of(material, positions):
    return ["-".join(map(str, row)) for row in material.analysis.assignments[positions].tolist()]


def test_coverage_is_that_of_the_tests(material, report):
    found = report.coverage
    reached = cells_of(material, np.arange(540))
    assert (found.covered, found.total) == (len(set(reached)), np.prod([one.k for one in material.analysis.clusters]))
    assert found.idc == found.covered / found.total == material.analysis.score
    assert found.accuracy == pytest.approx(material.analysis.accuracy)
    assert {one.cell: one.tests for one in found.cells} == {cell: reached.count(cell) for cell in reached}
    right = {cell for cell, correct in zip(reached, material.analysis.correct, strict=True) if correct}
    assert found.only_errors == len(set(reached) - right)


def test_how_much_is_left_is_that_of_the_tests_looked_at(material, some, report):
    left = idc.discovery(material.analysis.cell_profiles(material.test_traces.activations["fc2"]))
    found = report.left
    assert (found.chance, found.low, found.high, found.at_least) == (left.chance, left.low, left.high, left.at_least)
    assert (found.more, found.expected, found.expected_low, found.expected_high) == (540, *left.new(540))
    first, second = found.sentences
    chance = "Chance that the next test like these reaches a new cell"
    assert first == f"{chance}: 5.0 % (2.2 % to 7.8 %, 95 % interval)."
    assert second == "540 more would reach about 15 new cells (5 to 30). At least 92 cells can be reached."
    assert found.halves == Statement.of(second_half(material.analysis.codes))
    assert found.halves.sentence.startswith("New cells in the second half of the tests: ")
    alone = np.unique(some.analysis.codes[some.chosen], return_counts=True)[1] == 1
    assert make_report(some, date=DATE).left.chance == alone.sum() / len(some.chosen)


def test_the_summary_is_sentences_with_these_numbers(report):
    found = report.coverage
    first, second, third = report.summary
    assert first.startswith(f"Untested combinations that training inputs reach: {report.uncovered.in_training}, and ")
    assert second.startswith(f"The tests cover {found.covered} of {found.total} combinations")
    assert second.endswith(f"of the {found.covered + report.uncovered.in_training} within reach.")
    assert found.reachable == found.covered + report.uncovered.in_training
    assert third.startswith("Nothing stands out among ")
    assert all(one.endswith(".") and len(one.split()) <= 25 for one in report.summary)


def test_findings_are_all_of_them_with_their_controls_and_the_headline_first(material, report):
    of_tests = {one.subject: one for one in counted_together(material.overview.findings)}
    assert {one.subject for one in report.findings} == set(of_tests)
    for one in (*report.findings, report.class_errors.finding, report.left.halves):
        assert one.control
        assert one.expected_low <= one.expected <= one.expected_high
        assert one.low <= one.high
        assert one.verdict in set(Verdict)
        assert f" {one.control}" in one.sentence
        assert one.sentence.startswith(one.claim)
    told = {one.sentence for one in report.findings} | {reach(material.overview), nothing(material.overview)}
    assert set(report.summary) <= told
    first = report.findings[0]
    assert first.sentence == report.summary[0]
    own = of_tests[first.subject]
    assert (first.number, first.expected, first.p, first.looks) == (own.number, own.control.value, own.p, own.looks)
    assert [one.p for one in report.findings[1:]] == sorted(one.p for one in report.findings[1:])


def test_class_names_of_any_length_leave_a_statement_readable():
    long = Finding("pair", "x" * 900, 5, Control("by chance", 0.4, 0, 2), 3.0, 5.0, 0.4)
    assert len(Statement.of(long).sentence) == len(Statement.of(long).claim) == 2 * bounds.LONGEST_TEXT


def test_uncovered_cells_hold_no_test_and_their_closest_tests_are_closest(material, report):
    analysis = material.analysis
    reached = set(cells_of(material, np.arange(540)))
    learnt = ["-".join(map(str, row)) for row in analysis.assign(material.learnt).tolist()]
    spread = analysis.train_activations.std(0, dtype=np.float64)
    most = sorted((learnt.count(cell) for cell in set(learnt) - reached), reverse=True)
    assert [one.training_inputs for one in report.uncovered.listed] == most[: bounds.UNCOVERED]
    assert report.uncovered.in_training == len(most)
    for cell in report.uncovered.listed:
        assert cell.cell not in reached
        place = tuple(map(int, cell.cell.split("-")))
        steps = [sum(abs(a - b) for a, b in zip(place, map(int, one.split("-")), strict=True)) for one in reached]
        assert cell.covered_neighbours == steps.count(1)
        target = np.array([values[index] for values, index in zip(analysis.centroids, place, strict=True)])
        away = np.sqrt((((analysis.test_activations - target) / spread) ** 2).sum(1))
        assert [one.distance for one in cell.closest] == pytest.approx(np.sort(away)[: bounds.CLOSEST])
        for one in cell.closest:
            assert away[one.number] == pytest.approx(one.distance)
            assert one.cell == cells_of(material, [one.number])[0]
            assert (one.true, one.correct) == (str(material.test.targets[one.number]), one.true == one.predicted)


@pytest.mark.parametrize("which", ["material", "some"])
def test_class_errors_are_those_of_the_tests(which, request):
    material = request.getfixturevalue(which)
    found = make_report(material, date=DATE).class_errors
    true, said = material.test.targets[material.chosen], material.analysis.predictions[material.chosen]
    rates = {}
    for one, other in itertools.combinations(range(10), 2):
        both = [
            ((true == a) & (said == b)).sum() / (true == a).sum()
            for a, b in ((one, other), (other, one))
            if (true == a).any()
        ]
        if both:
            rates[str(one), str(other)] = np.mean(both)
    values = np.array(list(rates.values()))
    assert found.cutoff == pytest.approx(values.mean() + values.std())
    assert found.confused_pairs == (values > 0).sum() > len(found.pairs) - 1
    for pair in found.pairs:
        assert pair.rate == pytest.approx(rates[pair.first, pair.second])
        assert pair.low <= pair.rate <= pair.high
        classes = int(pair.first), int(pair.second)
        assert pair.confused == sum(((true == a) & (said == b)).sum() for a, b in (classes, classes[::-1]))
        assert pair.inputs == np.isin(true, classes).sum()
        # All wrong tests are drawn from those of all pairs: each test is one of nine pairs.
        wrong, total = int((true != said).sum()), 9 * len(true)
        assert pair.expected == pytest.approx(pair.inputs * (wrong - pair.confused) / (total - pair.inputs))
        counts = range(pair.confused, wrong + 1)
        ways = [math.comb(pair.inputs, k) * math.comb(total - pair.inputs, wrong - k) for k in counts]
        is_certain = sum(ways) / math.comb(total, wrong) * 45 <= 0.05
        assert pair.verdict == ("truly confused" if is_certain and pair.rate > found.cutoff else "as expected")
    assert found.certain == 0
    assert found.finding.sentence.endswith("at the rate of the other pairs, as expected.")
    assert [pair.rate for pair in found.pairs] == sorted(values[values > 0], reverse=True)[: bounds.PAIRS]
    for one in found.least_accurate:
        of_class = true == int(one.name)
        assert (one.correct, one.inputs) == (((said == true) & of_class).sum(), of_class.sum())
        assert one.low <= one.share == one.correct / one.inputs <= one.high


def test_every_criterion_is_scored_as_it_scores_itself(material, report):
    scores = {one.name: one.score for one in report.criteria}
    assert list(scores) == list(CRITERIA)
    for name in ("nc", "kmnc", "nlc"):
        own = CRITERIA[name](material.open_model(), "fc2").fit(material.train_traces).update(material.test_traces)
        assert scores[name] == pytest.approx(own.score)
    assert scores["idc"] == material.analysis.score


def test_the_file_follows_the_schema_and_names_what_it_was_made_of(material, report):
    document = json.loads(report.to_json())
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(document, SCHEMA)
    assert document["network"]["fingerprint"] == material.card.fingerprint
    assert document["training"]["fingerprint"] == material.train.fingerprint
    assert document["tests"]["fingerprint"] == material.test.fingerprint
    assert {"IDC Studio", "Python", "torch", "NumPy"} == set(document["versions"])
    for wrong in ({"coverage": document["coverage"] | {"idc": 2}}, {"extra": 1}, {"summary": []}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document | wrong, SCHEMA)


def test_a_sketch_is_said_with_its_bounds(material, report):
    assert report.sketch == ""
    analysis = material.analysis
    pairs = zip(analysis.train_activations.T, analysis.clusters, strict=True)
    clusters = tuple(SketchedPartitions.of(values, (exact.k,)).choose((exact.k,)) for values, exact in pairs)
    sketched = replace(material, analysis=replace(analysis, clusters=clusters))
    found = make_report(sketched, date=DATE)
    assert found.sketch == sketch_sentence([one.sketch for one in clusters], len(analysis.train_activations))
    page = _write_page(found, [grid_chart(material), histogram_chart(material)]).decode()
    assert found.sketch in page
    jsonschema.validate(json.loads(found.to_json()), SCHEMA)


@pytest.fixture(scope="module")
def files(material):
    return make_files(material, date=DATE)


def test_the_same_gives_the_same_bytes_but_for_the_date(material, some, files):
    again = gathered(material.open_model(), material.train, material.test, "fc2", 6)
    second = make_files(again, date="2027-01-01")
    for one, other in ((files.page, second.page), (files.json, second.json)):
        assert one != other
        assert one.replace(DATE.encode(), b"") == other.replace(b"2027-01-01", b"")
    assert len(files.page) < 5_000_000
    assert make_report(some, date=DATE).to_json() != files.json.decode()


def test_tiles_of_the_grid_show_their_most_typical_tests_in_both_themes_and_in_print(files):
    page = files.page.decode()
    in_charts = re.findall(r'"source": ?"(data:image/webp;base64,[^"]+)"', page)
    (in_print,) = re.findall(r'<image [^>]*href="(data:image/webp;base64,[^"]+)"', page)
    assert in_charts == [in_print] * 2
    assert "Each shows its most typical test." in page


def test_cards_of_the_neurons_are_in_the_report_with_their_names(material):
    neuron = int(material.analysis.important[0])
    place = {"model": "lenet5-digits", "layer": "fc2", "neuron": str(neuron)}
    name = Note("note-1", "2026-11-23T10:00:00+00:00", f"neuron {neuron}", "", "loop <below>", place, names=True)
    page = make_files(material, date=DATE, notes=[name]).page.decode()
    assert page.count('aria-label="Neuron ') == material.analysis.m
    assert "loop &lt;below&gt;" in page
    assert "Notes</h2>" not in page, "a name is no note"
    assert "data-test" not in page


def test_notes_are_those_on_the_setup(material):
    def note(text, **place):
        return Note(f"note-{text:0>16}", "2026-11-23T10:00:00+00:00", "neuron 5", "LeNet-5", text, place)

    kept = [note("1"), note("2", model="lenet1-digits"), note("3", layer="fc1"), note("4", input="7", data="digits")]
    mine = notes_on(kept, "lenet5-digits", "digits", "fc2")
    assert [one.text for one in mine] == ["1", "4"]
    assert [one.text for one in notes_on(kept, "lenet5-digits", "digits", "fc1")] == ["3"]
    found = make_report(material, date=DATE, notes=mine * 8)
    assert len(found.notes) == bounds.NOTES
    assert found.notes_left_out == 16 - bounds.NOTES
    assert b"12 older notes left out" in make_files(material, date=DATE, notes=mine * 8).page


def test_unknown_classes_are_refused_and_stop_stops(material):
    with pytest.raises(SettingError, match="There is no class 'ten'; the classes are 0, 1, 2"):
        gathered(material.open_model(), material.train, material.test, "fc2", 6, classes=("ten",))
    with pytest.raises(CancelledError):
        make_files(material, date=DATE, on_progress=lambda *_: False)


def test_pages_say_what_the_file_says(files, report):
    page = files.page.decode()
    text = re.sub(r"<[^>]+>|\s+", " ", page[page.index("<main>") : page.index("</main>")])
    sentences = (*report.summary, report.left.halves.sentence)
    for one in (*sentences, report.network.fingerprint, *(cell.cell for cell in report.uncovered.listed)):
        assert " ".join(one.split()) in " ".join(text.split()).replace("&#39;", "'")
