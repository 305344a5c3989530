"""The Differential page, and inputs for a cell: the engine's own finds, the address, Stop, suites, one model."""

import io
import json
from functools import partial

import numpy as np
import pytest
import torch
from PIL import Image

from idc_core.experiments import disagreements
from idc_core.experiments.disagreements import ADDITIONS
from idc_core.generation import CONSTRAINTS, differential_search, majority, make_guidance, reach_cell
from idc_core.models import load_model
from idc_core.suites.saved_suites import open_saved, saved_suites
from studio.differential import coverage_gain, retraining, search
from studio.differential import disagreements as shown
from studio.jobs import jobs
from studio.jobs.results import open_view
from studio.state.setup import DEFAULT
from studio.widgets import cell_search
from tests.pages.reading import forget, run_until

NAMES = ("lenet5-digits", "lenet1-digits", "lenet4-digits")
SMALL = {"count": "12", "search-iterations": "15"}


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


def text(app) -> str:
    kinds = (app.markdown, app.caption, app.info, app.warning, app.success)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def disagreement_table(app):
    return next(frame.value for frame in app.dataframe if "majority" in frame.value)


def figure(app, index=0) -> dict:
    return json.loads(app.get("plotly_chart")[index].proto.spec)


def pictures(app) -> list[str]:
    return [image.caption for frame in app.get("image") for image in frame.proto.imgs]


def positions(count, seed=0):
    return np.random.default_rng(seed).permutation(540)[:count]


def test_opens_on_the_disagreements_of_three_networks_as_the_engine_finds_them(open_page, view):
    app = open_page("differential")
    assert not app.exception
    models = [load_model(name) for name in NAMES]
    found = differential_search(models, view.test.inputs[positions(50)])
    table = disagreement_table(app)
    assert table["seed"].tolist() == view.test.ids[positions(50)[found.seed_index]].tolist()
    assert table["steps"].tolist() == found.iterations.tolist()
    names = view.train.class_names
    assert table[["LeNet-5", "LeNet-1", "LeNet-4"]].to_numpy().tolist() == [
        [names[one] for one in row] for row in found.predictions
    ]
    votes = majority(found.predictions)
    assert table["majority"].tolist() == [shown._NONE if one < 0 else names[one] for one in votes]
    steps = found.settings["iterations"]
    made = found.iterations > 0
    assert 0 < made.sum() < len(found)
    assert f"**Disagreements within {steps} steps: {made.sum()} of {50 - (~made).sum()} seeds" in app.markdown[0].value
    assert "They disagree on 1 more seed without any change." in app.markdown[0].value
    assert f"{(votes[made] < 0).sum()} have no majority" in app.markdown[0].value
    progress = open_page("differential", tab="steps")
    assert figure(progress)["data"][0]["customdata"][0] == 0
    assert figure(progress)["data"][0]["customdata"][-1] == made.sum()


def test_choices_are_in_the_address_and_reach_the_search(open_page, view):
    parameters = SMALL | {"constraint": "L2 ball", "l2-epsilon": "4.0", "seeds": "Least certain", "search-seed": "3"}
    app = open_page("differential", against="lenet5-digits,lenet1-digits", **parameters)
    assert not app.exception
    top = np.sort(torch.softmax(torch.tensor(view.test_traces.scores, dtype=torch.float64), 1).numpy(), axis=1)
    places = np.argsort(-(1 - (top[:, -1] - top[:, -2])), kind="stable")[:12]
    found = differential_search(
        [load_model(name) for name in NAMES[:2]],
        view.test.inputs[places],
        CONSTRAINTS["l2"](epsilon=4.0),
        iterations=15,
        seed=3,
    )
    assert disagreement_table(app)["seed"].tolist() == view.test.ids[places[found.seed_index]].tolist()
    assert "two models have no majority" in app.markdown[0].value
    assert disagreement_table(app)["L2"].max() <= 4.0 + 1e-5


def test_other_guidance_aims_at_what_the_tests_leave_uncovered(open_page, view):
    settings = search.SearchSettings(
        NAMES, count=12, guide="kmnc", weight_coverage=3.0, iterations=15, constraint="linf"
    )
    models = [load_model(name) for name in NAMES]
    guidance = make_guidance("kmnc", models, view.train, view.test)
    found = differential_search(
        models, view.test.inputs[positions(12)], "linf", weight_coverage=3.0, iterations=15, guidance=guidance
    )
    app = open_page(
        "differential",
        **SMALL,
        guide="k-multisection neuron coverage",
        constraint="L-inf ball",
        **{"search-weight_coverage": "3.0"},
    )
    assert not app.exception
    assert search.run(view, settings).disagreements.iterations.tolist() == found.iterations.tolist()
    assert disagreement_table(app)["steps"].tolist() == found.iterations.tolist()


def test_choosing_a_row_shows_its_disagreement_and_selects_its_seed(open_page, view):
    result = search.run(view, search.SearchSettings(NAMES))
    number = int(view.test.ids[result.origin[5]])
    app = open_page("differential", find=str(number))
    captions = pictures(app)
    assert f"Seed: test {number}, {shown.truth(view, int(result.origin[5]))}" in captions
    assert sum(caption.startswith("LeNet-1 predicts") for caption in captions) == 2
    other = open_page("differential", input=str(number))
    assert f"Seed: test {number}, {shown.truth(view, int(result.origin[5]))}" in pictures(other)
    for one in (app, other):
        (small,) = (json.loads(tiles.proto.json) for tiles in one.get("bidi_component") if "tiles" in tiles.proto.json)
        first = np.argsort(result.disagreements.iterations, kind="stable")[: len(small["tiles"])]
        assert [tile["test"] for tile in small["tiles"]] == view.test.ids[result.origin[first]].tolist()
        assert small["selected"] == number


def test_models_that_agree_everywhere_are_told_in_a_sentence(open_page, monkeypatch):
    own = load_model("lenet5-digits")
    monkeypatch.setattr(search, "_open", lambda waiting, view, name: own)
    app = open_page("differential", **SMALL, **{"search-seed": "77"})
    assert not app.exception
    assert not app.error
    assert ": 0 of 12 seeds.** Between LeNet-5, LeNet-1 and LeNet-4." in app.markdown[0].value
    assert "There is no disagreement to show." in text(app)
    assert not any("majority" in frame.value for frame in app.dataframe)
    progress = open_page("differential", **SMALL, tab="steps", **{"search-seed": "77"})
    assert len(progress.get("plotly_chart")) == 1


def test_stop_shows_the_disagreements_so_far(open_page, view):
    settings = {**SMALL, "search-seed": "5", "constraint": "L-inf ball"}
    open_page("differential", **settings)
    done = jobs.shelf()._jobs["searches"]
    (key,) = [key for key in done if isinstance(key[2], search.SearchSettings) and key[2].seed == 5]
    so_far = jobs.shelf()._told
    whole = so_far[key]
    models = [load_model(name) for name in NAMES]
    early = []
    differential_search(
        models, view.test.inputs[positions(12, 5)], "linf", iterations=15, seed=5, on_disagreements=early.append
    )
    assert 0 < len(early[0]) < len(whole)
    for held, expected in ((early[0], len(early[0])), (None, 0)):
        app = open_page("differential", **settings)
        forget("searches", key.__eq__)
        so_far.pop(key, None)
        if held is not None:
            so_far[key] = held
        app.session_state[jobs.STOPPED] = True
        app.run()
        assert not app.exception
        if expected:
            assert "Stopped: these are the disagreements so far" in text(app)
            assert len(disagreement_table(app)) == expected
        else:
            assert "Stopped before any disagreement was found." in text(app)
    next(button for button in app.button if button.label == "Start again").click().run()
    assert len(disagreement_table(app)) == len(whole)
    assert "Stopped" not in text(app)


def test_disagreements_are_kept_as_a_suite_by_votes_or_as_their_seeds(open_page, view, monkeypatch, tmp_path):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    app = open_page("differential")
    result = search.run(view, search.SearchSettings(NAMES))
    app.text_input(key="keep-finds-name").set_value("Disagreements").run()
    app.button(key="keep-finds").click().run()
    assert "Kept as \u201cDisagreements\u201d" in text(app)
    (one,) = saved_suites(view.test).values()
    assert one.label == "Disagreements"
    suite = open_saved(one.name)
    rows = np.flatnonzero(result.voted)
    np.testing.assert_array_equal(suite.targets, result.votes[rows])
    np.testing.assert_array_equal(suite.origin, view.test.ids[result.origin[rows]])
    np.testing.assert_array_equal(suite.take(np.arange(len(rows))), result.disagreements.inputs[rows])
    next(group for group in app.get("button_group") if group.label == "Labels").set_value("seeds").run()
    app.button(key="keep-finds").click().run()
    suites = [open_saved(name) for name in saved_suites(view.test)]
    assert sorted(map(len, suites)) == sorted([len(rows), len(result.disagreements)])


def test_files_hold_the_disagreements(view):
    result = search.run(view, search.SearchSettings(NAMES))
    with np.load(io.BytesIO(shown._npz(view, result)), allow_pickle=False) as file:
        np.testing.assert_array_equal(file["inputs"], result.disagreements.inputs)
        np.testing.assert_array_equal(file["majority"], result.votes)
        assert np.abs(file["seeds"] - view.test.inputs[result.origin]).max() < 0.003
        assert json.loads(str(file["settings"]))["iterations"] == "50"
    assert Image.open(io.BytesIO(shown._sheet(view, result))).width <= 1200


def test_gain_is_that_of_the_tests_together_with_the_disagreements(view):
    from idc_core.coverage import CRITERIA
    from idc_core.coverage.streamed import measure

    result = search.run(view, search.SearchSettings(NAMES))
    found = coverage_gain._gain(view, result.disagreements.inputs, ["idc", "kmnc", "tknp"], result.key)
    assert set(found.scores) == {"idc", "kmnc", "tknp"}
    both = np.concatenate([view.test.inputs, result.disagreements.inputs])
    for name in ("kmnc", "tknp"):
        suites = (view.test.inputs, both)
        expected = [measure([CRITERIA[name](view.model, "fc2")], view.train, one)[0] for one in suites]
        assert found.scores[name] == pytest.approx(expected)
    assert found.scores["idc"][0] == pytest.approx(view.analysis.score)
    assert round((found.scores["idc"][1] - found.scores["idc"][0]) * view.analysis.total) == found.new_cells > 0
    assert (found.shares["kmnc"], found.shares["tknp"]) == (True, False)


def test_published_networks_are_offered_where_their_weights_are(monkeypatch, tmp_path):
    monkeypatch.setenv("IDC_DATA", str(tmp_path))
    from dataclasses import replace
    from types import SimpleNamespace

    one = SimpleNamespace(setup=replace(DEFAULT, model="lenet5-mnist"))
    assert not any(name.startswith("deep") for name in search.offered(one))
    assert search.usual(one) == ["lenet5-mnist", "lenet1-mnist", "lenet4-mnist"]
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "deepxplore-model2.npz").touch()
    assert search.offered(one)["deepxplore-model2"] == "LeNet-4 of DeepXplore"
    assert next(iter(search.offered(one))) == "lenet5-mnist"
    published = SimpleNamespace(setup=replace(DEFAULT, model="deepxplore-model2"))
    assert search.usual(published)[0] == "deepxplore-model2"
    pair = SimpleNamespace(setup=replace(DEFAULT, model="vit-cifar10"))
    assert search.usual(pair) == ["vit-cifar10", "convnet-cifar10"]
    alone = SimpleNamespace(setup=replace(DEFAULT, model="dave2-udacity"))
    assert search.usual(alone) == ["dave2-udacity", search._COPY]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_every_constraint_can_be_chosen(open_page, name):
    app = open_page("differential", **SMALL, constraint=CONSTRAINTS[name].card.label, against="lenet1-digits")
    assert not app.exception
    assert not app.error
    for one in CONSTRAINTS[name].card.parameters:
        assert app.number_input(key=f"{name}-{one.name}").value == one.default


def test_only_marked_rows_change(open_page, view):
    settings = search.SearchSettings(
        NAMES, count=12, iterations=15, constraint="only", parameters=(("rows", (4, 12)), ("columns", (0, 28)))
    )
    result = search.run(view, settings)
    changed = (result.disagreements.inputs != result.seeds[result.disagreements.seed_index]).any((0, 1, 3))
    assert changed[4:12].any()
    assert not changed[:4].any()
    assert not changed[12:].any()


def test_a_rectangle_outside_the_picture_is_a_sentence(open_page):
    app = open_page("differential", **SMALL, constraint="Occlusion", **{"occlusion-height": "40"})
    assert not app.exception
    assert "does not fit into pictures of 28 x 28 pixels" in app.error[0].value


def test_one_model_alone_is_searched_for_a_cell(open_page):
    app = open_page("differential", against="lenet5-digits")
    assert not app.exception
    assert "**LeNet-5** alone cannot disagree" in app.markdown[0].value
    assert "Led to cell" not in text(app)
    app.button(key="make-inputs").click().run()
    assert not app.exception
    assert "**Led to cell " in text(app)


def test_a_long_search_waits_for_a_click_and_is_found_again(open_page):
    settings = {"against": "lenet5-digits,lenet1-digits", "count": "70"}
    app = open_page("differential", **settings)
    assert "This search waits for a click" in app.markdown[0].value
    assert not app.dataframe
    app.button(key="search-start").click().run()
    assert "69 of 69 seeds" in app.markdown[0].value
    assert "69 of 69 seeds" in open_page("differential", **settings).markdown[0].value
    app.number_input(key="count").set_value(80).run()
    assert "This search waits for a click" in app.markdown[0].value


def test_numbers_differ_by_more_than_the_bound(small_data, open_page):
    app = open_page("differential", model="dave2-udacity", **{"search-bound": "0.01"}, constraint="L-inf ball")
    app.button(key="search-start").click().run()
    assert not app.exception
    assert not app.error
    table = disagreement_table(app)
    shown = table[["Dave-2", "Dave-2 with 4 bits per weight"]]
    angles = shown.replace("\u2212", "-", regex=True).astype(float).to_numpy()
    assert (np.abs(angles[:, 0] - angles[:, 1]) > 0.0099).all()
    assert "classes" not in [box.key for box in app.multiselect]


def test_pinned_setup_is_searched_beside(open_page):
    app = open_page("differential", **SMALL, tab="steps", pin="layer=fc1")
    assert not app.exception
    assert "of 12 seeds on the pinned setup" in text(app)
    assert len(app.get("plotly_chart")) == 3


def test_coverage_page_makes_an_input_for_an_uncovered_cell(open_page, view, monkeypatch, tmp_path):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    covered = {tuple(cell) for cell in view.table.cells.tolist()}
    cell = "0-0-0-0-0-0"
    assert tuple(map(int, cell.split("-"))) not in covered
    app = open_page("coverage", cell=cell, tab="fill")
    assert "Inputs generated for cell" not in "".join(header.value for header in app.header)
    app.button(key="make-inputs").click().run()
    assert not app.exception
    assert f"Inputs generated for cell {cell}" in [header.value for header in app.header]
    made = cell_search._make(view, tuple(map(int, cell.split("-"))), 0.3, 24)
    found = reach_cell(view.model, view.analysis, cell, view.test.inputs[made.positions])
    np.testing.assert_array_equal(made.reached.inputs, found.inputs)
    assert f"**Led to cell {cell} by changes of at most 0.3: {len(found)} of 24 tests" in text(app)
    app.button(key="keep-made").click().run()
    (one,) = saved_suites(view.test).values()
    suite = open_saved(one.name)
    np.testing.assert_array_equal(suite.targets, view.test.targets[made.origin])
    app.button(key="make-inputs").click().run()
    assert f"Inputs generated for cell {cell}" not in [header.value for header in app.header]


def test_coverage_page_says_plainly_when_no_input_was_reached(open_page):
    settings = {"make-epsilon": "0.02", "make-seeds": "1"}
    app = open_page("coverage", cell="1-1-0-1-0-0", make="1-1-0-1-0-0", **settings)
    assert not app.exception
    assert "**Led to cell 1-1-0-1-0-0 by changes of at most 0.02: 0 of 1 test.**" in text(app)


def test_texts_get_no_button(small_data, open_page):
    app = open_page("coverage", model="textcnn-20newsgroups", cell="1-1-1-1-1-1", tab="fill")
    assert not {"make-inputs", "fill-all-start"} & {button.key for button in app.button}


def test_texts_are_told_apart(small_data, open_page):
    app = open_page("differential", model="textcnn-20newsgroups")
    assert "The search changes pictures, and these tests are none" in app.markdown[0].value


@pytest.mark.rare
def test_retraining_is_begun_by_a_button_and_drawn(open_page, view, monkeypatch, tmp_path):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    monkeypatch.setattr(retraining, "_SEEDS", 2)
    monkeypatch.setattr(retraining, "_EPOCHS", 1)
    few = partial(disagreements.DisagreementSettings, added=12, searched=24)
    monkeypatch.setattr(disagreements, "DisagreementSettings", few)
    app = open_page("differential", **SMALL, tab="retraining", constraint="L2 ball")
    assert not app.get("plotly_chart")
    app.button(key="retraining-continue").click().run()
    run_until(app)
    assert not app.exception
    assert not app.error
    spec = figure(app)
    assert {line["name"] for line in spec["data"] if line.get("showlegend")} == set(ADDITIONS.values())
    title = spec["layout"]["title"]["text"].replace("<br>", " ")
    assert title.startswith("Accuracy on new disagreements with disagreements added: ")
    assert "with nothing added" in title
    assert "Held-out tests, disagreements against nothing added" in text(app)
    assert open_page("differential", **SMALL, constraint="L2 ball", retrain="1").get("plotly_chart")


def test_two_networks_have_no_votes_to_train_with(open_page):
    app = open_page("differential", **SMALL, tab="retraining", against="lenet5-digits,lenet1-digits")
    assert "choose at least three classifiers" in text(app)
    assert not any(button.key == "retraining-continue" for button in app.button)


def test_retraining_waits_for_a_click(open_page, monkeypatch, tmp_path):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    app = open_page("differential", **SMALL, retrain="1")
    assert app.button(key="retraining-continue").label == "Start"
    assert not app.get("progress")
    assert not any(button.key == "retraining-stop" for button in app.button)
