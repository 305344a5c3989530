"""The Test sets page: what each suite adds as the engine counts it, its controls, addresses, Stop."""

import io
import json

import numpy as np
import pytest

import idc_core as idc
from idc_core.evidence.additions import addition
from idc_core.evidence.discovery import Discovery
from idc_core.suites import (
    compare_suites,
    make_suite,
    original,
    pack_suite,
    perturbed,
    sample_tests,
    saved_suites,
    union,
)
from studio.jobs import jobs, suite_catalog
from studio.jobs.results import open_view
from studio.jobs.suite_addresses import parse
from studio.state.setup import DEFAULT
from studio.testsets import seeds
from tests.pages.reading import forget, text

MS = (6, 8, 10, 12)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


@pytest.fixture(scope="module")
def expected(view):
    """The usual comparison, straight from the engine."""
    learnt = idc.IDC(view.model, "fc2", m=12).fit(view.train)
    suites = [original(view.test), *(make_suite(name, view.test, view.model) for name in ("noise", "guided"))]
    return compare_suites(view.model, suites, learnt)


def figure(app, index=0) -> dict:
    return json.loads(app.get("plotly_chart")[index].proto.spec)


def table(app):
    coverage, answers = (frame.value.set_index("suite") for frame in app.dataframe[:2])
    return coverage.join(answers)


def captions(app) -> str:
    return "\n".join(image.caption for element in app.get("image") for image in element.proto.imgs)


def test_page_opens_on_the_papers_suites_as_the_engine_compares_them(open_page, expected):
    app = open_page("testsets")
    assert not app.exception
    shown = table(app)
    assert list(shown.index) == ["Original tests", "Random noise", "Relevance-guided noise"]
    for row, result in zip(shown.to_dict("records"), expected.suites, strict=True):
        assert row["inputs"] == f"{result.inputs:,}"
        assert row["accuracy"] == f"{100 * result.accuracy:.1f} %"
        assert row["confidence"] == f"{100 * result.confidence:.1f} %"
        for m in MS:
            assert row[f"IDC, m = {m}"].startswith(f"{100 * result.cells[m].score:.1f} %")
            assert row[f"IDC, m = {m}"].endswith(f"({len(result.cells[m].added):+,})") or result.extra == 0
    assert shown.loc["Random noise", "accuracy on added inputs"] == f"{100 * expected.suites[1].extra_accuracy:.1f} %"


@pytest.fixture(scope="module")
def by_seed(view):
    """New cells at m = 6 and accuracy of ten seeds of either noise, one after the other, straight from the engine."""
    learnt = idc.IDC(view.model, "fc2", m=12).fit(view.train)
    made = {}
    for name in ("noise", "guided"):
        suites = [original(view.test), *(make_suite(name, view.test, view.model, seed=seed) for seed in range(10))]
        results = [compare_suites(view.model, [suites[0], one], learnt).suites[1] for one in suites[1:]]
        accuracies = [one.extra_accuracy for one in results]
        made[name] = [len(one.cells[6].added) for one in results], float(np.mean(accuracies))
    return made


def test_what_each_adds_stands_beside_natural_inputs(open_page, view, by_seed):
    app = open_page("testsets")
    counts, total = np.unique(view.analysis.codes, return_counts=True)[1], view.analysis.total
    expected, low, high = Discovery.of_counts(counts, total).new(540)
    beside = f"{expected:.1f} ({low} to {high}) in as many natural inputs"
    for name, label in (("noise", "random noise"), ("guided", "relevance-guided noise")):
        added, accuracy = by_seed[name]
        spread = f"540 inputs; mean of 10 seeds, {min(added)} to {max(added)}"
        finding = addition("x", added, counts, total, 540, looks=2)
        number, verdict = finding.write(np.mean(added)), finding.verdict
        ending = "." if verdict == "stands out" else f", {verdict}."
        assert f"New cells at m = 6 from {label} ({spread}): {number}, and {beside}{ending}" in text(app)
        assert f"{label} {100 * accuracy:.1f} %" in text(app)
        cell = app.dataframe[2].value.set_index("suite").loc[label.capitalize(), "m = 6"]
        assert cell.startswith(f"{number} / {expected:.1f} ({low} to {high})")


def test_without_further_seeds_the_page_tells_of_one(open_page, monkeypatch):
    monkeypatch.setattr(seeds, "_QUICK", 0)
    app = open_page("testsets", suites="noise~pixels=20")
    (button,) = (one for one in app.button if one.key == "ten-seeds")
    assert "from random noise (pixels 20) (540 inputs): " in text(app)
    button.click().run()
    assert "from random noise (pixels 20) (540 inputs; mean of 10 seeds" in text(app)
    assert not [one for one in app.button if one.key == "ten-seeds"]


def test_figures_show_gains_shared_cells_and_both_orders(open_page, expected):
    app = open_page("testsets")
    marks = [trace for trace in figure(app)["data"] if trace["mode"] == "markers+text"]
    values = [100 * one.cells[m].score for m in MS for one in expected.suites]
    assert [mark["x"][0] for mark in marks] == pytest.approx(values)
    app = open_page("testsets", tab="overlap")
    matrix = figure(app)["data"][0]["z"]
    if isinstance(matrix, dict):
        import base64

        matrix = np.frombuffer(base64.b64decode(matrix["bdata"]), matrix["dtype"]).reshape(3, 3)
    np.testing.assert_array_equal(matrix, expected.shared[6])
    given, best = figure(app, 1)["data"]
    assert given["x"] == expected.marginal(6)[1:].tolist()
    assert best["x"] == expected.marginal(6, expected.best_order(6))[1:].tolist()


def test_inputs_that_add_cells_are_shown_beside_their_source(open_page, view, expected):
    app = open_page("testsets", shown="guided", **{"cells-m": "10"})
    cells = expected.suites[2].cells[10]
    assert f"{len(cells.adding)} inputs of relevance-guided noise lie in {len(cells.added)} cells" in text(app)
    first = int(cells.first.min())
    source = first - 540
    assert f"Original, {source}: " in captions(app)
    code = expected.cell(int(cells.codes[first]), 10)
    assert f"reaches cell {'-'.join(map(str, code))}, which no original test reaches" in text(app)
    picked = int(np.sort(cells.first)[3])
    again = open_page("testsets", shown="guided", pick=str(picked), **{"cells-m": "10"})
    code = expected.cell(int(cells.codes[picked]), 10)
    assert f"reaches cell {'-'.join(map(str, code))}" in text(again)


def test_selected_test_is_the_one_that_is_looked_at(open_page, expected):
    cells = expected.suites[2].cells[12]
    position = int(np.sort(cells.first)[2])
    app = open_page("testsets", shown="guided", input=str(position - 540), **{"cells-m": "12"})
    code = expected.cell(int(cells.codes[position]), 12)
    assert f"reaches cell {'-'.join(map(str, code))}" in text(app)


def test_settings_of_a_suite_are_in_the_address_and_change_only_it(open_page, view, expected):
    app = open_page("testsets")
    app.number_input(key="1-guided-pixels").set_value(60).run()
    assert app.query_params["suites"] == "noise,guided~pixels=60"
    shown = table(app)
    assert "Relevance-guided noise (pixels 60)" in shown.index
    learnt = idc.IDC(view.model, "fc2", m=12).fit(view.train)
    made = make_suite("guided", view.test, view.model, share=60 / 784)
    found = compare_suites(view.model, [original(view.test), made], learnt).suites[1]
    assert shown.loc["Relevance-guided noise (pixels 60)", "IDC, m = 12"].endswith(f"({len(found.cells[12].added):+})")
    again = open_page("testsets", suites="noise,guided~pixels=60")
    assert table(again).equals(shown)
    app.number_input(key="1-guided-pixels").set_value(15).run()
    assert app.query_params["suites"] == "noise,guided"


def test_fewer_tests_can_be_changed(open_page, view):
    app = open_page("testsets", suites="noise")
    app.number_input(key="perturbed-count").set_value(100).run()
    assert app.query_params["perturbed"] == "100"
    assert table(app).loc["Random noise", "added inputs"] == "100"
    assert "Suites perturb 100 of the 540 tests" in text(app)
    learnt = idc.IDC(view.model, "fc2", m=12).fit(view.train)
    base = original(view.test)
    found = compare_suites(
        view.model, [base, union([base, perturbed(sample_tests(base, 100), "noise")])], learnt
    ).suites[1]
    assert table(app).loc["Random noise", "IDC, m = 6"].endswith(f"({len(found.cells[6].added):+})")


def test_the_same_kind_twice_with_two_strengths(open_page):
    app = open_page("testsets", suites="rotation")
    app.button(key="0-another").click().run()
    assert app.query_params["suites"] == "rotation,rotation~degrees=30"
    assert list(table(app).index) == ["Original tests", "Rotation", "Rotation (degrees 30)"]


def test_parts_of_the_tests_add_nothing_and_say_what_they_reach(open_page, view):
    app = open_page("testsets", suites="original~answers=wrong,original~class=3-4~sure=0.5to1")
    wrong = ~view.correct
    cells = len(np.unique(view.analysis.codes[wrong]))
    assert f"misclassified tests ({wrong.sum()}) cover {cells}" in text(app)
    shown = table(app)
    label = "Tests of classes 3, 4 with confidence 0.5 to 1"
    many = np.isin(view.test.targets, [3, 4]) & (view.analysis.confidence >= 0.5)
    assert shown.loc[label, "inputs"] == f"{many.sum():,}"
    assert shown.loc[label, "added inputs"] == "0"
    assert shown.loc["Misclassified tests", f"IDC, m = {view.analysis.m}"].endswith(" %"), "nothing in brackets"
    title = json.loads(app.get("plotly_chart")[0].proto.spec)["layout"]["title"]["text"].replace("<br>", " ")
    assert title == "Coverage (IDC) of the original tests, and with each suite"
    assert f"Of the {view.table.covered} cells covered at m = 6, misclassified tests" in text(app)


def test_every_kind_of_suite_is_offered(view):
    offered = suite_catalog._catalogue(view)
    assert {"noise", "guided", "rotation", "jpeg", "fog", "fgsm", "cw", "mnist"} <= set(offered)
    parts = [one.label for one in offered.values() if one.within]
    first = view.test.class_names[view.test.targets[0]]
    assert parts[:2] == [f"Tests of class {first}", "Tests with confidence 0 to 0.9"]
    assert parts[2:] == ["Misclassified tests", "Correctly classified tests"]
    for name, one in offered.items():
        recipe = parse(name)
        assert recipe.text == name
        assert one.help.endswith(".")


def test_unions_hold_both(open_page):
    app = open_page("testsets", suites="noise|rotation,noise,rotation")
    shown = table(app)
    assert shown.loc["Random noise + rotation", "inputs"] == "1,620"
    gain = {name: int(shown.loc[name, "IDC, m = 12"].split("+")[1][:-1]) for name in shown.index[1:]}
    both = gain["Random noise + rotation"]
    assert max(gain["Random noise"], gain["Rotation"]) <= both <= gain["Random noise"] + gain["Rotation"]


def test_inputs_that_add_cells_can_be_kept_and_used_on_the_criteria_page(open_page, view, expected):
    app = open_page("testsets", shown="guided")
    app.button(key="keep-adding").click().run()
    assert "Kept as \u201cRelevance-guided noise, adding cells\u201d" in text(app)
    (name,) = saved_suites(view.test)
    assert saved_suites(view.test)[name].inputs == len(expected.suites[2].cells[6].added)
    criteria = open_page("criteria", suites=f"{name},original~answers=wrong", criteria="nc")
    assert not criteria.exception
    shown = next(frame.value for frame in criteria.dataframe if "All tests" in frame.value).set_index("criterion")
    both = len(expected.suites[0].cells[6].added) + expected.suites[0].cells[6].covered
    added = len(expected.suites[2].cells[6].added)
    total = expected.suites[0].cells[6].total
    assert shown.loc["IDC", "Relevance-guided noise, adding cells added"] == f"{100 * (both + added) / total:.1f} %"
    assert "Misclassified tests" in shown.columns


def test_inputs_of_all_suites_that_add_cells_are_kept_by_one_click(open_page, view, expected):
    app = open_page("testsets", tab="adding", suites="noise,guided,original~answers=wrong", **{"cells-m": "8"})
    app.button(key="keep-all-adding").click().run()
    assert not app.exception
    added = [len(one.cells[8].added) for one in expected.suites[1:]]
    kept = {one.label: one.inputs for one in saved_suites(view.test).values()}
    assert kept == dict(zip(("Random noise, adding cells", "Relevance-guided noise, adding cells"), added, strict=True))
    names = "\u201cRandom noise, adding cells\u201d, \u201cRelevance-guided noise, adding cells\u201d"
    assert f"Kept as {names}: {sum(added)} inputs." in text(app)
    alone = open_page("testsets", tab="adding", suites="noise", **{"cells-m": "8"})
    assert "keep-all-adding" not in [button.key for button in alone.button]


def test_pack_holds_what_is_offered(view, expected):
    cells = expected.suites[1].cells[12]
    from idc_core.suites import select_tests

    suite = make_suite("noise", view.test)
    with np.load(io.BytesIO(pack_suite("x", select_tests(suite, cells.first))), allow_pickle=False) as file:
        np.testing.assert_array_equal(file["inputs"], suite.take(np.sort(cells.first)))


def test_suites_that_are_not_here_are_named(open_page):
    app = open_page("testsets", suites="noise,foo~x=1,rotation~degrees=900")
    assert "Not available for this setup, left out: foo\\~x=1." in text(app)
    assert "Rotation (degrees 900) is left out. degrees of Rotation must be" in text(app)
    assert list(table(app).index) == ["Original tests", "Random noise"]


def test_equal_suites_are_shown_once(open_page):
    app = open_page("testsets", suites="noise,noise~deviation=0.5")
    assert not app.exception
    assert "Random noise (deviation 0.5) is left out: it has the same inputs as random noise." in text(app)
    assert list(table(app).index) == ["Original tests", "Random noise"]


def test_nothing_chosen_shows_the_original_alone(open_page):
    app = open_page("testsets", suites="none")
    assert "Only the original tests are shown" in text(app)
    assert list(table(app).index) == ["Original tests"]
    assert len(app.get("plotly_chart")) == 1


def test_stop_keeps_the_suites_that_were_finished(open_page):
    app = open_page("testsets", suites="noise,blur~width=2.5")
    last = next(reversed(jobs.shelf()._jobs["seen"]))
    forget("seen", last.__eq__)
    app.session_state[jobs.STOPPED] = True
    app.run()
    assert not app.exception
    assert "Stopped before it was finished: Blur (width 2.5)." in text(app)
    assert list(table(app).index) == ["Original tests", "Random noise"]
    next(button for button in app.button if button.label == "Start again").click().run()
    assert list(table(app).index) == ["Original tests", "Random noise", "Blur (width 2.5)"]


def test_class_filter_holds_for_all_suites(open_page, view):
    app = open_page(
        "testsets", classes="3", suites="noise,mnist" if "mnist" in suite_catalog._catalogue(view) else "noise"
    )
    many = int((view.test.targets == 3).sum())
    assert table(app).loc["Random noise", "inputs"] == f"{2 * many:,}"


def test_pinned_setup_is_drawn_beside(open_page):
    app = open_page("testsets", pin="layer=fc1")
    assert not app.exception
    assert len(app.get("plotly_chart")) == 3
    assert "On the pinned setup: new cells at m = 6 from " in text(app)


def test_small_layers_show_the_numbers_that_fit(open_page):
    app = open_page("testsets", layer="conv1", suites="noise")
    assert [name for name in table(app).columns if name.startswith("IDC")] == ["IDC, m = 6"]


def test_setup_with_another_m_opens_on_it(open_page):
    app = open_page("testsets", m="3", suites="noise")
    assert [name for name in table(app).columns if name.startswith("IDC")] == [f"IDC, m = {m}" for m in (3, *MS)]
    assert "New cells at m = 3 from random noise" in text(app)
