"""The Layers page: every layer and m in one figure and one table, a way into each, and what Stop leaves."""

import json
import threading
from dataclasses import replace

import pytest

import idc_core as idc
from idc_core.analysis.analysis import analyze
from studio.jobs import jobs
from studio.jobs.results import open_view
from studio.state.setup import DEFAULT
from tests.pages.reading import forget

LAYERS = ["conv1", "pool1", "conv2", "pool2", "fc1", "fc2", "logits"]


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


def figure(app, index=1) -> dict:
    """A chart of the page: the first shows the chance of a new cell, the second IDC."""
    return json.loads(app.get("plotly_chart")[index].proto.spec)


def table(app):
    return next(frame.value for frame in app.dataframe if "IDC (%)" in frame.value)


def text(app) -> str:
    kinds = (app.markdown, app.caption, app.info, app.warning)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def test_table_holds_every_layer_and_m_as_the_engine_counts_them(open_page, view):
    shown = table(open_page("layers"))
    assert shown["layer"].unique().tolist() == LAYERS
    assert shown["m"].unique().tolist() == [2, 4, 6, 8, 10, 12]
    assert len(shown) == 7 * 6
    for layer, m in (("fc1", 8), ("conv2", 4), ("fc2", 6)):
        alone = analyze(view.model, view.train, view.test, layer, m)
        row = shown[(shown["layer"] == layer) & (shown["m"] == m)].iloc[0]
        assert (row["covered"], row["cells"]) == (
            alone.covered,
            str(alone.total) if alone.total < 1000 else row["cells"],
        )
        assert row["IDC (%)"] == pytest.approx(100 * alone.score)


def test_finding_compares_chances_of_a_new_cell_and_says_where_nothing_stands_out(open_page, view):
    for m in ("6", "8"):
        app = open_page("layers", m=m)
        at_m = table(app)[table(app)["m"] == int(m)].sort_values("new cell (%)", ascending=False)
        first, second = at_m.iloc[0], at_m.iloc[1]
        apart = first["from (%)"] > second["to (%)"]
        highest = f"The chance of a new cell is highest in layer {first['layer']}: {first['new cell (%)']:.1f} %, and"
        (said,) = [one for one in text(app).splitlines() if one.startswith(f"**{highest}")]
        assert f" in layer {second['layer']}" in said
        assert (", as expected.**" in said) == (not apart)
        assert app.get("plotly_chart")[0].proto.alt.startswith(highest)
        assert not any(word in text(app) for word in ("weakest", "covered best"))
    shown = at_m.set_index("layer")
    alone = idc.discovery(idc.IDC(view.model, "fc1", 8).fit(view.train).update(view.test))
    assert shown.loc["fc1", "new cell (%)"] == pytest.approx(100 * alone.chance)
    assert shown.loc["fc1", "from (%)"] == pytest.approx(100 * alone.low)


def test_every_layers_chance_is_drawn_with_its_interval(open_page):
    app = open_page("layers")
    (points,) = figure(app, 0)["data"]
    at_m = table(app)[table(app)["m"] == 6]
    assert [layer for _, layer, _ in points["customdata"]] == LAYERS
    assert points["x"] == pytest.approx(at_m["new cell (%)"].tolist())
    assert points["marker"]["symbol"].index("diamond") == LAYERS.index("fc2")


def test_most_possible_is_one_cell_a_test(open_page):
    shown = table(open_page("layers"))
    row = shown[(shown["layer"] == "logits") & (shown["m"] == 6)].iloc[0]
    assert row["most possible (%)"] == pytest.approx(100 * 540 / 768)
    assert (shown["IDC (%)"] <= shown["most possible (%)"] + 1e-9).all()


def test_small_layers_say_that_all_their_neurons_are_taken(open_page):
    app = open_page("layers", m="12")
    shown = table(app)
    assert set(shown.loc[shown["layer"] == "conv1", "neurons used"]) == {2, 4, 6}
    assert any("all 6" in written for written in figure(app)["data"][0]["text"])
    assert "the layer has only 6 neurons" in text(app)


def test_m_of_the_setup_is_always_a_column(open_page):
    app = open_page("layers", m="5")
    assert 5 in set(table(app)["m"])
    app.get("button_group")[0].set_value([3]).run()
    assert set(table(app)["m"]) == {3, 5}


def test_other_test_sets_get_a_panel_and_rows_of_their_own(open_page, data_folder):
    app = open_page("layers", suites="mnist")
    assert not app.exception
    assert len(figure(app)["data"]) == 2
    titles = [note["text"] for note in figure(app)["layout"]["annotations"]]
    assert [title.partition(":")[0] for title in titles] == ["Handwritten digits (scikit-learn)", "MNIST"]
    assert set(table(app)["tests"]) == {"digits", "mnist"}


def test_class_filter_counts_only_its_tests(open_page):
    whole, few = table(open_page("layers")), table(open_page("layers", classes=["3"]))
    assert (few["covered"] <= whole["covered"]).all()
    assert few["covered"].sum() < whole["covered"].sum()
    assert few["cells"].tolist() == whole["cells"].tolist()


def test_settings_of_the_clusters_hold_here_too(open_page):
    shown = table(open_page("layers", k="2"))
    assert shown[shown["m"] == 4]["cells"].tolist() == ["16"] * 7


def test_stop_keeps_what_was_finished_and_can_be_taken_up_again(open_page):
    app = open_page("layers")
    assert forget("states", lambda key: bool({"fc2", "logits"} & set(key)))
    app.session_state[jobs.STOPPED] = True
    app.run()
    assert not app.exception
    assert "Finished before the stop: 5 layers of 7." in text(app)
    assert table(app)["layer"].unique().tolist() == LAYERS[:5]
    next(button for button in app.button if button.label == "Start again").click().run()
    assert "Stopped" not in text(app)
    assert table(app)["layer"].unique().tolist() == LAYERS


def test_stop_before_any_layer_is_finished_leaves_a_way_on(open_page):
    app = open_page("layers")
    assert forget("activities")
    app.session_state[jobs.STOPPED] = True
    app.run()
    assert not app.exception
    assert "No layer is finished yet." in text(app)
    next(button for button in app.button if button.label == "Start again").click().run()
    assert len(table(app)) == 42


def test_layers_are_shown_as_they_are_finished(open_page, monkeypatch):
    import idc_core.analysis.layer_sweep as engine
    from studio.layers import sweep_view

    open_page("layers")
    assert forget("states", lambda key: "logits" in key)
    seen, shown, cluster, draw = [], threading.Event(), engine.cluster_layer, sweep_view.draw_partly

    def slowly(model, ranked, settings, **more):
        assert ranked.layer != "logits" or shown.wait(20), "the other layers were not shown meanwhile"
        return cluster(model, ranked, settings, **more)

    def note(place, view, sweep):
        draw(place, view, sweep)
        seen.append(list(dict.fromkeys(cell.layer for cell in sweep.cells)))
        shown.set()

    monkeypatch.setattr(engine, "cluster_layer", slowly)
    monkeypatch.setattr(sweep_view, "draw_partly", note)
    app = open_page("layers")
    assert not app.exception
    assert seen == [LAYERS[:-1]]
    assert len(app.get("plotly_chart")) == 2
    assert table(app)["layer"].unique().tolist() == LAYERS


def test_the_setups_own_layer_is_shown_before_the_others_are_ranked(open_page, monkeypatch):
    from idc_core.importance import training_pass
    from studio.layers import sweep_view

    app = open_page("layers")
    assert forget("activities")
    seen, shown, rank, draw = [], threading.Event(), training_pass.rank_layers, sweep_view.draw_partly

    def slowly(*given, **settings):
        assert shown.wait(20), "nothing was shown meanwhile"
        return rank(*given, **settings)

    def note(place, view, sweep):
        draw(place, view, sweep)
        seen.append(sweep.cells)
        shown.set()

    monkeypatch.setattr(training_pass, "rank_layers", slowly)
    monkeypatch.setattr(sweep_view, "draw_partly", note)
    app = open_page("layers")
    assert not app.exception
    assert [(cell.layer, cell.m) for cell in seen[0]] == [("fc2", 2), ("fc2", 4), ("fc2", 6)]
    rows = table(app).set_index(["layer", "m"])
    assert [rows.loc[cell.layer, cell.m]["covered"] for cell in seen[0]] == [cell.covered for cell in seen[0]]


def test_a_layer_that_was_shown_beforehand_may_be_the_only_one_finished(monkeypatch):
    """Both pictures are of one layer; Streamlit refuses a second element of the same key."""
    import streamlit as st

    from idc_core.analysis.layer_sweep import Sweep
    from studio.layers import sweep_view
    from studio.layers.layer_sweep import _own_layer

    keys = []
    monkeypatch.setattr(st, "plotly_chart", lambda figure, key, theme: keys.append(key))
    view = open_view(DEFAULT)
    cells = tuple(_own_layer(view, {view.setup.data: view.test}, [2, 4, 6]))
    before = Sweep(tuple(LAYERS), (2, 4, 6), (view.setup.data,), cells, {}, {}, {})
    for sweep in (before, replace(before, neurons=dict.fromkeys(LAYERS))):
        sweep_view.draw_partly(st.empty(), view, sweep)
    assert len(set(keys)) == 2


def test_pinned_setup_is_drawn_beside_with_the_difference(open_page):
    app = open_page("layers", pin="model=lenet1-digits&m=4")
    assert not app.exception
    assert len(app.get("plotly_chart")) == 4
    assert "Here, m = 6: The chance of a new cell is highest in layer" in text(app)
    assert "LeNet-1" in text(app)


def test_layers_of_a_network_for_text(small_data, open_page):
    app = open_page("layers", model="textcnn-20newsgroups")
    assert not app.exception
    assert table(app)["layer"].unique().tolist() == ["conv1", "conv2", "conv3", "pool1", "pool2", "pool3", "logits"]
