"""The Clusters page: its controls hold everywhere, what is selected is shown, and other choices are counted."""

import base64
import json
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from idc_core.analysis.projection import Projection, principal_components
from studio.clusters import histograms, projected_tests
from studio.jobs.results import open_view
from studio.state import selection
from studio.state.setup import DEFAULT

ROOT = Path(__file__).parents[2]


def words(app) -> str:
    kinds = (app.markdown, app.caption, app.subheader, app.info, app.warning, app.error)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def chart(app, part: str) -> dict:
    """The first chart whose alternative text holds these words."""
    return next(json.loads(one.proto.spec) for one in app.get("plotly_chart") if part in one.proto.alt)


def array(values) -> np.ndarray:
    """Read an array as plotly writes it."""
    if isinstance(values, dict):
        read = np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])
        return read.reshape([int(side) for side in values["shape"].split(",")]) if "shape" in values else read
    return np.array(values)


def named(figure: dict, part: str) -> list[dict]:
    return [trace for trace in figure["data"] if part in trace.get("name", "")]


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


@pytest.fixture
def studio():
    """The studio through its front door."""
    return AppTest.from_file(str(ROOT / "app.py"), default_timeout=30).run()


class TestControls:
    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("k", range(2, 9))
    def test_number_by_hand(self, open_page, k):
        app = open_page("clusters", k=str(k))
        assert not app.exception
        assert f"6 important neurons have {k} clusters each, {k**6:,} combinations in total." in words(app)
        assert f"· k = {k} ·" in words(app)

    def test_other_pages_follow(self, studio):
        app = studio.switch_page("pages/clusters.py").run()
        app.selectbox(key="k").select("3").run()
        app.selectbox(key="zeros").select("dropped").run()
        app.selectbox(key="clustering").select("gaussian-mixture").run()
        assert not app.exception
        line = "k = 3 · zeros dropped · gaussian-mixture"
        assert line in words(app)
        app.switch_page("pages/coverage.py").run()
        assert not app.exception
        assert line in words(app)

    def test_dbscan_takes_no_number(self, open_page, view):
        app = open_page("clusters", clustering="dbscan", k="4")
        assert not app.exception
        assert app.selectbox(key="k").disabled
        assert app.selectbox(key="k").value == "auto"
        assert "k = 4" not in words(app)

    @pytest.mark.parametrize("name", ["hierarchical", "dbscan", "gaussian-mixture"])
    def test_every_way_is_named_in_the_setup(self, open_page, name):
        app = open_page("clusters", clustering=name)
        assert not app.exception
        assert not app.error
        assert f"m = 6 · {name} · 540 tests" in words(app)

    def test_unknown_way_is_the_default(self, open_page):
        app = open_page("clusters", clustering="nonsense", zeros="nonsense", k="77")
        assert not app.exception
        assert not app.error
        assert "layer fc2 · m = 6 · 540 tests" in words(app)


class TestSelection:
    def test_cluster_in_the_address_is_shaded_and_shown_in_full(self, open_page, view):
        rank = max(range(6), key=lambda one: view.sizes[one])
        neuron = int(view.analysis.important[rank])
        app = open_page("clusters", neuron=str(neuron), cluster="1")
        assert not app.exception
        figure = chart(app, "Histograms")
        shade = next(shape for shape in figure["layout"]["shapes"] if shape["type"] == "rect")
        found = view.analysis.clusters[rank]
        assert shade["x0"] == pytest.approx(found.boundaries[0])
        assert shade["x1"] == pytest.approx(found.boundaries[1])
        inside = int((view.analysis.assignments[:, rank] == 1).sum())
        assert f"Download these {inside} tests (npz)" in [button.label for button in app.get("download_button")]
        assert f"20 of {inside} tests are shown." in words(app)
        links = [link.proto.label for link in app.get("page_link")]
        assert f"See the cells with neuron {neuron} in cluster 1" in links

    def test_tests_are_listed_by_cluster(self, open_page, view):
        neuron = int(view.analysis.important[0])
        app = open_page("clusters", neuron=str(neuron))
        for cluster in range(view.sizes[0]):
            inside = int((view.analysis.assignments[:, 0] == cluster).sum())
            assert f"{inside} tests and" in words(app)
            assert any(one.value.startswith(f"Cluster {cluster}") for one in app.subheader)

    def test_selected_test_is_marked_in_every_histogram(self, open_page, view):
        number = int(view.test.ids[117])
        app = open_page("clusters", input=str(number))
        stars = named(chart(app, "Histograms"), "selected test")
        assert [float(array(star["x"])[0]) for star in stars] == pytest.approx(
            view.analysis.test_activations[117].tolist()
        )
        assert f"Test {number}: neuron {view.analysis.important[0]} has the activation" in words(app)
        assert named(
            chart(open_page("clusters", tab="map", input=str(number)), "Tests whose"), f"selected test {number}"
        )

    def test_a_button_selects_a_cluster_and_takes_it_back(self, open_page, view):
        app = open_page("clusters")
        app.button(key="cluster-1").click().run()
        assert app.query_params["cluster"] == "1"
        assert app.query_params["neuron"] == str(view.analysis.important[0])
        assert app.button(key="cluster-1").label == "Show fewer"
        app.button(key="cluster-1").click().run()
        assert "cluster" not in app.query_params

    def test_bars_and_diamonds_carry_their_cluster(self, open_page, view):
        figure = chart(open_page("clusters"), "Histograms")
        bars = [trace for trace in figure["data"] if trace["type"] == "bar"]
        for rank, trace in enumerate(bars):
            carried, places = array(trace["customdata"]), array(trace["x"])
            assert (carried[:, 0] == view.analysis.important[rank]).all()
            expected = np.searchsorted(view.analysis.clusters[rank].boundaries, places)
            np.testing.assert_array_equal(carried[:, 1], expected)

    def test_clicks_without_a_cluster_select_nothing(self, monkeypatch):
        said = []
        monkeypatch.setattr(histograms, "select", lambda **given: said.append(given))
        histograms._told([{"x": 1.0, "y": 2.0}, {"customdata": [44, 2]}, {"customdata": [8, 1]}])
        histograms._told([{"x": 1.0}])
        assert said == [{"neuron": 44, "cluster": 2}]

    def test_neuron_that_is_not_important_gets_a_sentence(self, open_page, view):
        other = next(one for one in range(84) if one not in view.analysis.important)
        app = open_page("clusters", neuron=str(other), cluster="1")
        assert not app.exception
        assert f"The selected neuron {other} is not among the 6 important neurons" in words(app)

    def test_cluster_that_is_not_there_is_ignored(self, open_page, view):
        app = open_page("clusters", neuron=str(view.analysis.important[0]), cluster="99")
        assert not app.exception
        assert not [shape for shape in chart(app, "Histograms")["layout"].get("shapes", []) if shape["type"] == "rect"]


class TestChoices:
    def test_table_holds_what_each_setup_measures(self, open_page):
        app = open_page("clusters", tab="cells")
        table = next(one.value for one in app.dataframe if "mean silhouette" in one.value.columns)
        assert len(table) == 20
        for k, zeros in (("automatic", "kept"), ("2", "kept"), ("5", "dropped"), ("automatic", "dropped")):
            said = k.replace("automatic", "automatic by silhouette")
            row = table[(table["k"] == said) & (table["zeros"] == zeros)].iloc[0]
            setup = DEFAULT.__class__(**{**vars(DEFAULT), "k": k.replace("automatic", "auto"), "zeros": zeros})
            measured = open_view(setup).analysis
            assert (row["cells"], row["covered"]) == (measured.total, measured.covered)

    def test_the_other_ways_are_added_when_asked_for(self, open_page):
        app = open_page("clusters", tab="cells", k="3")
        app.toggle(key="other-ways").set_value(True).run()
        assert not app.exception
        table = next(one.value for one in app.dataframe if "mean silhouette" in one.value.columns)
        counts = table["clustering method"].value_counts().to_dict()
        assert counts == {"k-means": 20, "Hierarchical (Ward)": 20, "Gaussian mixture": 20, "DBSCAN": 2}

    def test_class_filter_counts_the_chosen_tests_only(self, open_page):
        app = open_page("clusters", tab="cells", classes=["3"])
        table = next(one.value for one in app.dataframe if "mean silhouette" in one.value.columns)
        setup = DEFAULT.__class__(**{**vars(DEFAULT), "classes": ("3",)})
        assert table.iloc[0]["covered"] == open_view(setup).table.covered


class TestPlane:
    def test_every_test_is_drawn_once_with_its_class(self, open_page, view):
        figure = chart(open_page("clusters", tab="map"), "Tests whose nearest neighbour has the same class: ")
        numbers = np.concatenate([array(trace["customdata"]) for trace in figure["data"]])
        assert sorted(numbers.tolist()) == sorted(view.test.ids.tolist())
        for label, trace in enumerate(figure["data"]):
            assert (view.test.targets[np.isin(view.test.ids, array(trace["customdata"]))] == label).all()
        symbols = [trace["marker"]["symbol"] for trace in figure["data"]]
        assert len(set(symbols)) == len(symbols) == 10

    @pytest.mark.parametrize(
        ("colour", "first"),
        [("cluster", "cluster 0, lowest cluster ("), ("cell", "cell 0-"), ("correctness", "correct (")],
    )
    def test_colours(self, open_page, colour, first):
        app = open_page("clusters", tab="map")
        app.segmented_control(key="plane-colour").set_value(colour).run()
        assert not app.exception
        figure = chart(app, "Tests whose nearest neighbour has the same ")
        assert figure["data"][0]["name"].startswith(first)
        assert sum(len(array(trace["customdata"])) for trace in figure["data"]) == 540
        assert len({trace["marker"]["symbol"] for trace in figure["data"]}) == len(figure["data"]) > 1

    def test_drawn_around_tests_are_shown_and_can_be_forgotten(self, open_page, view):
        app = open_page("clusters", tab="map")
        numbers = [int(one) for one in view.test.ids[[3, 5, 8]]]
        app.session_state[selection._AROUND] = ("digits", numbers)
        app.run()
        assert "Selected tests" in [one.value for one in app.subheader]
        assert "3 tests in " in words(app)
        assert "Download these 3 tests (npz)" in [button.label for button in app.get("download_button")]
        app.button(key="plane-forget").click().run()
        assert "No test is selected in a chart yet." in words(app)

    def test_drawn_around_tests_of_another_test_set_are_not_shown(self, open_page):
        app = open_page("clusters", tab="map")
        app.session_state[selection._AROUND] = ("mnist", [1, 2, 3])
        app.run()
        assert "No test is selected in a chart yet." in words(app)

    def test_umap_when_asked_for(self, studio, monkeypatch):
        # UMAP itself takes most of a minute to compile; a browser test waits for it.
        monkeypatch.setattr(
            projected_tests, "umap", lambda values, on_progress: Projection(principal_components(values).points)
        )
        studio.query_params["classes"] = "3"
        studio.query_params["tab"] = "map"
        app = studio.switch_page("pages/clusters.py").run().run()  # AppTest loses the first choice on a new page
        app.segmented_control(key="plane").set_value("umap").run()
        assert not app.exception
        figure = chart(app, "Tests whose nearest neighbour has the same class: 100.0 %, and 100.0 %")
        assert "variance" not in json.dumps(figure["layout"]["xaxis"])


def test_pinned_setup_is_shown_beside_this_one(open_page):
    app = open_page("clusters", pin="layer=fc1")
    assert not app.exception
    shown = [one.proto.alt.partition(",")[0] for one in app.get("plotly_chart")][1:]
    assert shown == ["Activations of neuron 18", "Activations of neuron 19"]
    assert "The cells are not comparable" in words(app)


@pytest.mark.parametrize("way", ["k-means", "dbscan"])
def test_one_neuron(open_page, way):
    app = open_page("clusters", m="1", clustering=way)
    assert not app.exception
    assert "The important neuron has" in words(app)
    assert "1 states" not in words(app)


def test_tests_of_a_cluster_are_shown_with_what_activates_the_neuron(open_page):
    def pictures(app):
        found = [json.loads(one.proto.json) for one in app.get("bidi_component") if "tiles" in one.proto.json]
        return {len(tile["places"]) for one in found for tile in one["tiles"]}

    app = open_page("clusters")
    assert not app.exception
    assert pictures(app) == {2}
    app.toggle(key="neuron-heatmaps").set_value(False).run()
    assert pictures(app) == {1}
    assert pictures(open_page("clusters", **{"neuron-heatmaps": "false"})) == {1}
