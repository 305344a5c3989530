"""The Adversarial page: the engine's own numbers, settings from the address, Stop, all attacks, keeping."""

import io
import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import idc_core as idc
from idc_core.base.files import cache_folder
from idc_core.errors import SettingError
from idc_core.evidence.discovery import Discovery
from idc_core.perturbation.attacks import ATTACKS
from idc_core.suites import attacked as engine
from idc_core.suites.saved_suites import open_saved, saved_suites
from studio.adversarial import attack_results, attack_runs, attacks
from studio.adversarial.attacks import Plan
from studio.jobs import jobs
from studio.jobs.results import open_view
from studio.state.setup import DEFAULT
from studio.text import cell_name, percent
from tests.pages.reading import forget, open_page


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


@pytest.fixture
def forgotten():
    """Attacks of other tests are not found again."""
    for kind in ("attacks", "attacked", "moved"):
        forget(kind)


def opened(**parameters: str) -> AppTest:
    """Open the page; two underscores stand for a hyphen."""
    app = open_page("adversarial", **{name.replace("__", "-"): value for name, value in parameters.items()})
    assert not app.exception
    return app


def text(app) -> str:
    kinds = (app.markdown, app.caption, app.info, app.warning, app.success)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def figure(app, index=0) -> dict:
    return json.loads(app.get("plotly_chart")[index].proto.spec)


def table(app, column):
    return next(frame.value for frame in app.dataframe if column in frame.value)


def button(app, label):
    return next(one for one in app.button if one.label.startswith(label))


def plan(attack="fgsm", **other) -> Plan:
    values = {one.name: one.default for one in ATTACKS[attack].parameters}
    return Plan(attack, tuple({**values, **other.pop("settings", {})}.items()), **other)


def attacked(view, one: Plan):
    """Attack the plan's tests in one go, without the page."""
    places = attacks.sample(view, one)
    inputs, targets = view.test.inputs[places], view.test.targets[places]
    numbers = view.test.ids[places]
    settings = dict(one.settings)
    return places, idc.attack(
        view.model, inputs, targets, one.attack, goal=one.goal, seed=one.seed, numbers=numbers, **settings
    )


def test_opens_on_fgsm_with_the_engines_own_numbers(view):
    app = opened()
    places, result = attacked(view, plan())
    assert len(places) == 64
    finding = app.markdown[0].value
    fooled = f"{int(result.success.sum())} of 64 correctly classified tests"
    assert f": {fooled}" in finding
    assert f"{result.linf[result.success].mean():.3g} (L\u221e)" in finding
    assert f"{result.l2[result.success].mean():.2f} (L2)" in finding
    cells = {tuple(cell) for cell in view.analysis.assignments.tolist()}
    from idc_core.tracing.trace import collect

    found = view.analysis.assign(collect(view.model, result.inputs, ["fc2"]).activations["fc2"])
    new = {tuple(cell) for cell in found.tolist()} - cells
    counts = np.unique(view.analysis.codes, return_counts=True)[1]
    expected, low, high = Discovery.of_counts(counts, view.analysis.total).new(64)
    beside = f"{len(new)}, and {expected:.2f} ({low} to {high}) in as many natural inputs."
    assert f"New cells from the attacked inputs: {beside}" in finding
    accuracy = (result.predictions == result.targets).mean()
    assert f"Accuracy on attacked inputs: {percent(accuracy)}." in finding
    listed = table(opened(tab="cells"), "first test")
    assert set(listed["cell"]) == {cell_name(cell) for cell in new}
    assert listed["attacked inputs"].sum() == sum(tuple(cell) in new for cell in found.tolist())


def test_tests_are_drawn_by_the_seed_and_larger_draws_keep_them(view):
    some, more = (attacks.sample(view, plan(numbers=number)) for number in (32, 100))
    np.testing.assert_array_equal(more[:32], some)
    assert view.correct[more].all()
    assert len(set(more.tolist())) == 100
    assert set(attacks.sample(view, plan(seed=1)).tolist()) != set(attacks.sample(view, plan()).tolist())
    every = attacks.sample(view, plan(numbers=10_000, every=True))
    assert len(every) == 540
    towards = attacks.sample(view, plan(numbers=10_000, goal=3))
    assert not (view.test.targets[towards] == 3).any()
    assert not (view.analysis.predictions[towards] == 3).any()


def test_confusion_before_and_after_is_drawn(view):
    app = opened(seed="1", tab="confusions")
    _, result = attacked(view, plan(seed=1))
    spec = figure(app)
    maps = [trace for trace in spec["data"] if trace["type"] == "heatmap"]
    totals = [np.nansum(numbers(one["z"])) for one in maps]
    assert totals == [64, 64]
    before, after = result.confusion(10)
    for one, counts in zip(maps, (before, after), strict=True):
        np.testing.assert_array_equal(np.nan_to_num(numbers(one["z"])).reshape(10, 10), counts)
    most = table(app, "of").iloc[0]
    true, predicted = int(most["true class"]), int(most["predicted class"])
    assert most["inputs"] == (after - np.diag(np.diag(after))).max() == after[true, predicted]
    assert [one.value for one in app.header] == [f"Class {true} as {predicted}"]
    assert spec["layout"]["title"]["text"].startswith("Tests of class ")
    assert "at equal rates for all pairs" in spec["layout"]["title"]["text"].replace("<br>", " ")


def test_every_tab_says_what_the_whole_attack_does_and_draws_its_own_part():
    finding = opened().markdown[0].value
    for name, charts in {"sizes": 1, "confusions": 1, "cells": 0, "all": 1}.items():
        app = opened(tab=name)
        assert app.markdown[0].value == finding
        assert len(app.get("plotly_chart")) == charts, name


def test_a_selected_cell_shows_its_inputs():
    app = opened(tab="cells")
    listed = table(app, "first test")
    cell, inputs = listed.iloc[0][["cell", "attacked inputs"]]
    app = opened(tab="cells", cell=cell)
    assert [one.value for one in app.header] == [f"Inputs in cell {cell}"]
    (gallery,) = (json.loads(one.proto.json) for one in app.get("bidi_component") if "tiles" in one.proto.json)
    assert len(gallery["tiles"]) == inputs


def numbers(packed) -> np.ndarray:
    import base64

    return np.frombuffer(base64.b64decode(packed["bdata"]), np.dtype(packed["dtype"]))


def test_the_address_chooses_attack_settings_goal_and_tests(view):
    app = opened(attack="PGD", pgd__epsilon="0.15", pgd__steps="5", goal="7", attacked="32", seed="3")
    one = plan("pgd", settings={"epsilon": 0.15, "steps": 5}, goal=7, seed=3, numbers=32)
    _, result = attacked(view, one)
    finding = app.markdown[0].value
    assert f"into class 7: {int(result.success.sum())} of 32" in finding
    assert "PGD (epsilon 0.15, steps 5)" in finding


@pytest.mark.slow
def test_the_presets_say_which_is_which_and_set_their_values():
    app = opened(attack="Carlini-Wagner L2", cw__iterations="1", cw__search_steps="1", attacked="32")
    choice = next(one for one in app.get("button_group") if one.label == "Preset")
    assert choice.value == "own"
    assert "paper's: learning rate 0.005" in choice.help
    choice.set_value("sensible").run()
    assert not app.exception
    button(app, "Start attack").click().run()
    assert "Fooled by Carlini-Wagner L2 (sensible): 32 of 32" in app.markdown[0].value
    assert {one.label: one.value for one in app.select_slider}["Learning rate"] == 0.1
    assert app.query_params["cw-learning_rate"] == "0.1"


def test_stopping_shows_what_is_finished_and_going_on_attacks_only_the_rest(forgotten, monkeypatch):
    app = opened(attacked="100")
    done = list(jobs.shelf()._jobs["attacks"])
    assert len(done) == 4
    forget("attacks", done[2:].__contains__)
    for path in (cache_folder() / "suites").glob("*.npz"):
        path.unlink()
    ran = []
    attack = engine.attack
    monkeypatch.setattr(engine, "attack", lambda *given, **named: ran.append(len(given[1])) or attack(*given, **named))
    app.session_state[jobs.STOPPED] = True
    app.run()
    assert not app.exception
    assert "was stopped after 64 of 100 inputs" in text(app)
    assert "of 64 correctly classified tests" in app.markdown[0].value
    assert ran == []
    app.run()  # something else is touched: it stays stopped
    assert "was stopped after 64 of 100 inputs" in text(app)
    assert ran == []
    button(app, "Resume").click().run()
    assert "was stopped" not in text(app)
    assert "of 100 correctly classified tests" in app.markdown[0].value
    assert ran == [32, 4]


@pytest.mark.parametrize("name", ["cw", "jsma"])
def test_a_slow_attack_waits_for_a_click(forgotten, monkeypatch, name):
    ran = []
    monkeypatch.setattr(engine, "attack", lambda *given, **_: ran.append(given) or halt())
    app = opened(attack=name)
    assert "waits for a click" in app.markdown[0].value
    assert ran == []
    assert not app.get("plotly_chart")
    button(app, "Start attack").click().run()
    assert len(ran) == 1
    assert [one.value for one in app.error] == ["an attack is not needed here"]


def halt():
    raise SettingError("an attack is not needed here")


def test_quick_attacks_are_those_with_few_passes(view):
    quick = {name: attacks.is_quick(view, Plan(name, tuple(usual_settings(name).items()))) for name in ATTACKS}
    assert [name for name in quick if quick[name]] == ["fgsm", "bim", "pgd", "deepfool", "pgd-l2"]
    assert not attacks.is_quick(view, plan("bim", settings={"steps": 1000}))
    assert attacks.is_quick(view, plan("cw", settings={"search_steps": 1, "iterations": 50}))


def test_stopped_before_anything_is_finished(forgotten):
    app = opened()
    forget("attacks")
    app.session_state[jobs.STOPPED] = True
    app.run()
    assert not app.exception
    assert "was stopped after 0 of 64 inputs; no input is finished yet" in text(app)
    button(app, "Start again").click().run()
    assert "of 64 correctly classified tests" in app.markdown[0].value


@pytest.mark.slow
def test_all_attacks_run_on_the_same_tests(forgotten, monkeypatch):
    few = {"steps": 3}
    walks = dict.fromkeys(("pgd", "deepfool", "pgd-l2", "ddn", "boundary", "hop-skip-jump"), few)
    for name, fast in (("cw", {"iterations": 5}), *walks.items()):
        usual = attack_runs._usual_settings(name)
        monkeypatch.setitem(FAST, name, {**usual, **fast})
    monkeypatch.setattr(attack_runs, "_usual_settings", lambda name: FAST.get(name) or usual_settings(name))
    app = opened(attacked="32", tab="all")
    assert list(table(app, "added cells")["attack"]) == ["FGSM"]
    button(app, OTHERS).click().run()
    assert not app.exception
    shown = table(app, "added cells")
    assert len(shown) == len(ATTACKS)
    assert (shown["inputs"] == 32).all()
    assert not [one for one in app.button if one.label.startswith("Run the other")]
    assert list(figure(app)["layout"]["yaxis"]["ticktext"]) == list(shown["attack"])


FAST: dict = {}
OTHERS = f"Run the other {len(ATTACKS) - 1} attacks"
usual_settings = attack_runs._usual_settings


def test_attacks_that_are_stopped_leave_the_comparison_and_the_others_stay(forgotten, monkeypatch):
    FAST.clear()
    monkeypatch.setattr(attack_runs, "_usual_settings", lambda name: FAST.get(name) or usual_settings(name))
    app = opened(attacked="32", tab="all")
    button(app, OTHERS).click()
    app.session_state[jobs.STOPPED] = True
    app.run()
    assert not app.exception
    assert f"{len(ATTACKS) - 1} attacks not finished" in text(app)
    assert list(table(app, "added cells")["attack"]) == ["FGSM"]
    assert [one for one in app.button if one.label == OTHERS]


def test_the_selected_test_is_looked_at_even_where_it_is_not_among_the_others(view):
    places = attacks.sample(view, plan())
    app = opened(input=str(view.test.ids[places[5]]))
    assert "was attacked separately" not in text(app)
    images = [image.caption for one in app.get("image") for image in one.proto.imgs]
    assert any(caption.startswith(f"Test {view.test.ids[places[5]]}: predicted") for caption in images)
    other = int(np.setdiff1d(np.arange(540), places)[0])
    app = opened(input=str(view.test.ids[other]))
    assert f"The selected test {view.test.ids[other]} was attacked separately" in text(app)
    assert "of 64 correctly classified tests" in app.markdown[0].value


def test_the_shown_inputs_are_stepped_through(view):
    run = attacks.open_run(view, plan())
    order = [int(number) for number in view.test.ids[run.positions[attack_results.places(run, "fooled")]]]
    app = opened()
    assert [app.button(key=f"step-{label}").proto.shortcut for label in ("Previous", "Next")] == ["left", "right"]
    for label, number in (("Next", order[1]), ("Previous", order[0]), ("Previous", order[-1])):
        app.button(key=f"step-{label}").click().run()
        assert app.query_params["input"] == str(number)
        images = [image.caption for one in app.get("image") for image in one.proto.imgs]
        assert any(caption.startswith(f"Test {number}: predicted") for caption in images)


def test_attacked_inputs_are_kept_as_a_suite(view):
    app = opened()
    button(app, "Keep ").click().run()
    _, result = attacked(view, plan())
    assert f"Kept as \u201cFGSM on digits, seed 0\u201d: {int(result.success.sum())} inputs" in text(app)
    (one,) = saved_suites(view.test).values()
    suite = open_saved(one.name)
    np.testing.assert_array_equal(suite.take(range(len(suite))), result.inputs[result.success])


def test_archive_can_be_read_as_own_tests(view):
    from idc_core.suites import custom_suite
    from studio.adversarial.attack_results import _archive, _table_of

    run = attacks.open_run(view, plan())
    suite = custom_suite(_archive(view, run), view.test)
    np.testing.assert_array_equal(suite.take(range(64)), run.result.inputs)
    with np.load(io.BytesIO(_archive(view, run))) as file:
        np.testing.assert_array_equal(file["originals"], view.test.inputs[run.positions])
    listed = _table_of(view, run)
    assert (listed["prediction_before"] == listed["true_class"]).all()
    assert (listed["fooled"] == (listed["prediction_after"] != listed["true_class"])).all()


def test_heatmaps_can_explain_the_right_class_both_times(view):
    given, right = (attacks.open_run(view, plan(), explained) for explained in ("answer", "right"))
    np.testing.assert_allclose(given.before, right.before, err_msg="the answer before is the right class")
    changed = given.result.predictions != given.result.targets
    assert not np.allclose(given.after[changed], right.after[changed])
    np.testing.assert_allclose(given.after[~changed], right.after[~changed])


def test_pinned_setup_is_attacked_in_the_same_way():
    app = opened(pin="layer=fc1", attacked="32", tab="sizes")
    assert "on the pinned setup. New cells here: " in text(app)
    assert len(app.get("plotly_chart")) == 3
