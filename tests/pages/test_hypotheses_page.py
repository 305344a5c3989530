"""The Hypotheses page: what it says is what the engine measures; pairs, records, Stop, SQL, and masks."""

import io
import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from idc_core.inspection import inspect, library
from idc_core.inspection.database import PREPARED
from idc_core.inspection.result import grid
from idc_core.tracing import batching
from studio.hypotheses import inspections
from studio.jobs import jobs
from studio.jobs.results import open_view
from studio.neurons.neuron import told
from studio.state.setup import DEFAULT
from tests.pages.reading import forget, open_page


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    """A place of its own for the database."""
    monkeypatch.setenv("IDC_HOME", str(tmp_path))


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


@pytest.fixture(scope="module")
def measured(view):
    found = inspect(view.model, view.test, library(view.test), ["pearson"], ["fc2"])
    return grid(found, "pearson", view.card.name, "fc2")


def opened(**parameters) -> AppTest:
    app = open_page("hypotheses", **parameters)
    assert not app.exception
    return app


def text(app) -> str:
    kinds = (app.markdown, app.caption, app.info, app.warning)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def titles(app) -> list[str]:
    specs = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    return [spec["layout"]["title"]["text"].replace("<br>", " ") for spec in specs]


def said(app, name) -> str:
    """What the address says under a name."""
    value = app.query_params[name]
    return value if isinstance(value, str) else ",".join(value)


def chart(app, words) -> dict:
    specs = [json.loads(one.proto.spec) for one in app.get("plotly_chart")]
    return next(one for one in specs if words in one["layout"]["title"]["text"].replace("<br>", " "))


def settings(**changes):
    usual = inspections.InspectionSettings(("labels",), (), ("pearson",), ("fc2",), 1024, None)
    return replace(usual, **changes)


def test_finding_is_the_strongest_association_that_the_engine_measures(measured):
    app = opened()
    hypothesis, unit = measured.strongest()
    said = text(app)
    score, low, high = (one[hypothesis, unit] for one in (measured.score, measured.low, measured.high))
    strongest = f"Listed first: neuron {unit} with “{measured.names[hypothesis]}”, Pearson correlation"
    assert f"{strongest} {score:.2f} ({low:.2f} to {high:.2f})." in said
    assert f"**Significant in fc2 (FDR 5\u00a0%): {measured.passes.sum()} of {measured.tested:,} associations (" in said
    assert f"{int(measured.passes.any(0).sum())} of 84 neurons have at least one" in said


def test_map_holds_the_strongest_scores_that_pass(measured):
    squares, marks, _ = chart(opened(), "Significant in fc2")["data"]
    for (hypothesis, unit), value in zip(marks["customdata"], np.ravel(squares_of(squares)), strict=True):
        if measured.passes[hypothesis, unit]:
            assert value == pytest.approx(measured.score[hypothesis, unit], abs=1e-6)
        else:
            assert np.isnan(value)


def squares_of(squares) -> np.ndarray:
    import base64

    z = squares["z"]
    if isinstance(z, dict):
        shape = [int(size) for size in str(z["shape"]).split(",")]
        return np.frombuffer(base64.b64decode(z["bdata"]), np.float32).reshape(shape)
    return np.array([[np.nan if value is None else value for value in row] for row in z], float)


def test_stricter_rate_leaves_fewer_squares(measured):
    strict = text(opened(rate="1 %"))
    assert f"{measured.passes.sum()} of {measured.tested:,}" not in strict
    assert "FDR 1\u00a0%" in strict


def test_what_is_looked_at_is_in_the_address_and_the_selected_neuron_is_the_unit(measured):
    app = opened(hypothesis="has a hole", neuron="7", tab="unit")
    unit, name = 7, measured.names.index("has a hole")
    of_hypothesis = chart(app, "Neurons by their score for “has a hole”")["data"][0]
    assert told([{"customdata": of_hypothesis["customdata"][0]}]) == measured.units_of(name)[0]
    of_unit = chart(app, "Hypotheses by their score for neuron 7")["data"][0]
    assert told([{"customdata": of_unit["customdata"][0]}]) == measured.hypotheses_of(unit)[0]
    app.selectbox(key="unit-chosen").set_value(11).run()
    assert said(app, "neuron") == "11"
    app.selectbox(key="hypothesis-chosen").set_value(measured.names.index("class 3")).run()
    assert said(app, "hypothesis") == "class 3"


def test_an_important_neuron_shows_where_the_hypothesis_holds_among_its_clusters(view):
    unit = int(view.analysis.important[0])
    app = opened(hypothesis="class 3", neuron=str(unit), tab="unit")
    table = next(frame.value for frame in app.dataframe if "cluster" in frame.value)
    tests, clusters = view.test.targets[:256], view.analysis.assignments[:256, 0]
    for at, row in enumerate(table.itertuples(index=False)):
        assert row[2] == int((clusters == at).sum())
        share = 100 * np.mean(tests[clusters == at] == 3)
        assert float(str(row[3]).removesuffix(" %")) == pytest.approx(share, abs=0.1)
    assert "cluster" not in " ".join(str(frame.value.columns) for frame in opened(neuron="2", tab="unit").dataframe)


def test_other_layers_are_not_the_setups_selection():
    app = opened(inspected="logits", families="labels", neuron="70", tab="unit")
    assert "**Significant in logits (FDR" in text(app)
    app.selectbox(key="unit-chosen").set_value(3).run()
    assert said(app, "unit") == "3"
    assert said(app, "neuron") == "70"
    important = opened(inspected="logits", families="labels", tab="important")
    assert "Important neurons are known for the setup's layer fc2; logits is shown." in text(important)
    next(button for button in app.button if button.key == "take-layer").click().run()
    assert (said(app, "layer"), said(app, "neuron")) == ("logits", "3")


def test_a_convolution_has_maps_over_the_pictures(view):
    found = inspections.look(view, "conv1", 1, library(view.test, ["shapes"])[0], np.arange(3))
    assert found.over(0).shape == view.test.inputs.shape[2:]
    app = opened(inspected="conv1", families="shapes", records="256", tab="unit")
    captions = [image.caption for element in app.get("image") for image in element.proto.imgs]
    assert sum(caption.startswith("the neuron's map over test") for caption in captions) == 6, captions


def test_probes_are_shown_for_the_layer_as_a_whole():
    app = opened(measures="logistic,majority", families="looks", records="256")
    table = next(frame.value for frame in app.dataframe if "logistic" in frame.value)
    assert set(table["hypothesis"]) == {"has a hole", "has two holes"}


@pytest.mark.slow
def test_mutual_information_is_tested_for_significance_too():
    shown = text(opened(measures="information", families="labels", records="256"))
    assert "**Significant in " in shown
    assert "all scores are shown" not in shown


@pytest.mark.slow
def test_a_class_of_several_shows_what_the_unit_does_in_each(view):
    app = opened(
        measures="information", families="labels", hypothesis="class", neuron="22", classes=["3", "8", "5"], tab="unit"
    )
    picture = chart(app, "Activation of neuron 22 by class")
    positions = np.flatnonzero(np.isin(view.test.targets, [3, 8, 5]))[:256]
    mean = {
        k: float(view.test_traces.activations["fc2"][positions[view.test.targets[positions] == k], 22].mean())
        for k in (3, 8, 5)
    }
    order = sorted(mean, key=lambda k: -mean[k])
    (marks,) = picture["data"]
    assert marks["x"] == pytest.approx([mean[k] for k in order], rel=1e-5)
    assert picture["layout"]["yaxis"]["ticktext"] == [str(k) for k in order]
    assert "7 of the 10 classes are not among these tests." in text(app)


def test_the_tests_behind_the_selected_pair_are_shown_and_lead_to_the_unit(view):
    app = opened(hypothesis="class 3", neuron="22")
    seen = view.test_traces.activations["fc2"][:256, 22]
    sent = next(json.loads(one.proto.json) for one in app.get("bidi_component") if '"tiles"' in one.proto.json)
    assert [tile["test"] for tile in sent["tiles"]] == view.test.ids[np.argsort(-seen, kind="stable")[:10]].tolist()
    app.button(key="open-unit").click().run()
    assert said(app, "tab") == "unit"
    assert "Hypotheses by their score for neuron 22" in titles(app)


def test_every_unit_can_be_shown_and_clicked(measured):
    app, met = opened(**{"units-shown": "40"}), set()
    assert part(app).options == ["1 to 40 of 84", "41 to 80 of 84", "81 to 84 of 84"]
    for number in range(3):
        part(app).set_value(number).run()
        met |= units_of_map(app)
    assert met == set(range(84))
    weakest = int(measured.part(1, 84)[1][-1])
    app = opened(neuron=str(weakest))
    assert part(app).value == 2
    assert weakest in units_of_map(app)
    assert not [one for one in opened(**{"units-shown": "all"}).selectbox if one.label == "Neurons by strength"]


def part(app):
    return next(one for one in app.selectbox if one.label == "Neurons by strength")


def units_of_map(app):
    return {unit for _, unit in chart(app, "Significant in fc2")["data"][1]["customdata"]}


def test_stop_keeps_what_was_read_and_scores_tighten(view, monkeypatch):
    import streamlit as st

    asked = settings(families=("labels", "looks"), layers=("conv1", "fc2"))
    monkeypatch.setattr(jobs, "SILENT_S", 0.0)
    monkeypatch.setattr(jobs, "_POLL_S", 0.005)
    monkeypatch.setattr(inspections, "_TELL_S", 0.0)
    parts = []
    whole = inspections.measure(view, asked, parts.append)
    assert (whole.records, whole.whole) == (540, True)
    assert parts, "scores are told while more is read"
    assert all(one.records < two.records for one, two in pairwise([*parts, whole]))
    widths = [part.grid("pearson", "fc2", 0.05).widest for part in (parts[0], whole)]
    assert widths[0] > widths[1]
    forget("inspections")
    monkeypatch.setitem(st.session_state, jobs.HALTED, True)
    stopped = inspections.measure(view, asked)
    assert (stopped.whole, stopped.found) == (False, jobs.shelf().told(last_key()))
    assert stopped.records < 540
    assert inspections.measure(view, settings(families=("labels",), layers=("pool1",))) is None


def test_a_stopped_inspection_goes_on_and_more_records_do_not_begin_anew(view, monkeypatch):
    """Every job is stopped after its first block: only what goes on comes to an end."""
    read = []
    asked = settings(families=("labels",), layers=("fc1",), measures=("pearson", "iou"))
    hook = view.model.register_forward_hook(lambda _, given, __: read.append(len(given[0])))
    # More than there are digits, so that there are more records to ask for than 1,024.
    tests = view.test.sample(540)
    many = replace(tests, **{name: np.concatenate([getattr(tests, name)] * 3) for name in ("inputs", "targets", "ids")})
    monkeypatch.setattr(inspections, "tests_of", lambda view: many)
    monkeypatch.setattr(jobs, "_GRACE_S", -1.0)
    monkeypatch.setattr(batching, "_must_run_alone", lambda *_: False)  # which runs some tests beside one another
    try:
        some = inspections.measure(view, asked)
        assert (some.records, some.whole) == (1024, True)
        every = inspections.measure(view, replace(asked, most=None))
        assert (every.records, every.whole) == (1620, True)
    finally:
        hook.remove()
    assert sum(size for size in read if size > 1) == 1620, "tests that were read twice"
    apart = inspect(view.model, many, library(view.test, ["labels"]), ["pearson", "iou"], ["fc1"])
    for column, values in apart.table.items():
        np.testing.assert_array_equal(values, every.found.table[column])


def last_key():
    return list(jobs.shelf()._told)[-1]


def test_early_stop_reads_fewer_records(view):
    every = inspections.measure(view, settings())
    early = inspections.measure(view, settings(error=0.45))
    assert early.grid("pearson", "fc2", 0.05).records.max() < every.grid("pearson", "fc2", 0.05).records.max()


def test_chosen_classes_are_read_alone():
    app = opened(classes=["3", "8"], families="looks")
    assert "of class 3, 8" in text(app)
    sizes = [frame for frame in text(app).splitlines() if frame.startswith("Read: ")]
    assert "540" not in sizes[0]


@pytest.mark.slow
def test_sql_answers_over_kept_runs_and_cannot_change_anything():
    app = opened(families="labels", tab="sql")
    assert "No run is kept yet." in text(app)
    app.button(key="keep-run").click().run()
    assert not app.exception
    assert "Kept as run" in text(app)
    answer = next(frame.value for frame in app.dataframe if "discovery" in frame.value)
    assert len(answer) == 10, "one row per class"
    for name in list(PREPARED)[-2:]:  # the engine answers them all: tests/inspection/test_database.py
        app.button(key=f"ask-{name}").click().run()
        assert not app.error, name
    for sql in ("DELETE FROM scores", "SELECT * FROM read_csv('/etc/passwd')"):
        box = next(area for area in app.text_area if area.label == "Query")
        box.set_value(sql)
        next(button for button in app.button if button.label == "Run query").click().run()
        assert len(app.error) == 1, sql
    box = next(area for area in app.text_area if area.label == "Query")
    box.set_value("SELECT error('![x](http://x.org) <img src=x>')")
    next(button for button in app.button if button.label == "Run query").click().run()
    assert r"!\[x\](http://x.org) \<img src=x\>" in app.error[0].value, "no markup of a query is rendered"
    assert len(app.get("download_button")) >= 8


def test_pinned_setup_is_drawn_beside():
    app = opened(pin="layer=fc1", families="labels")
    assert "Neurons that correlate with at least one hypothesis: here" in text(app)
    assert not app.error


def test_a_mask_of_ones_own_is_a_hypothesis_and_a_wrong_one_is_refused_in_words():
    app = opened(families="labels", inspected="conv1", records="256", tab="unit")
    mask = np.zeros((28, 28), bool)
    mask[:14] = True
    app.file_uploader(key="masks").upload("top.npy", packed(mask), "application/octet-stream").run()
    assert not app.exception
    assert "mask top.npy" in app.selectbox(key="hypothesis-chosen").options
    app.file_uploader(key="masks").clear().upload("small.npy", packed(mask[:3]), "application/octet-stream").run()
    assert "The mask small.npy has the shape (3, 28)" in app.error[0].value


def packed(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_hypotheses_that_never_hold_are_named_with_the_reason():
    app = opened(classes=["1", "2"])
    assert not app.exception
    said = next(caption.value for caption in app.caption if caption.value.startswith("Without a score (never"))
    assert said.startswith("Without a score (never true in the tests read): “class 0”, “class 3”, ")
    assert said.endswith(" and 5 others.")
    assert "“class 1”" not in said
