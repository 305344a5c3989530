"""The Class errors page: the engine's own numbers, a chosen pair, groups, own predictions, many classes."""

import io
import json
import re

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import idc_core as idc
from idc_core.confusion import (
    activation_probability,
    average_bias,
    class_distance,
    countable_layers,
    evaluate,
    pair_confusion,
    suspects,
    type1_confusion,
)
from idc_core.figures.wording import signed
from studio.classes.suspected_pairs import _NONE
from studio.jobs.results import open_view
from studio.state.setup import DEFAULT
from studio.text import percent
from tests.pages.reading import open_page, run_until


def opened(**parameters) -> AppTest:
    """Open the page, in the tab of pairs unless another one is named or has one of these controls."""
    if not {"pair-shown", "third", "pair"} & set(parameters):
        parameters.setdefault("tab", "pairs")
    app = open_page("classes", **parameters)
    assert not app.exception
    assert not app.error
    return app


def words(app) -> str:
    kinds = (app.markdown, app.caption, app.info, app.warning)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def table(app, column):
    return next(frame.value for frame in app.dataframe if column in frame.value)


def spec(app, index=0) -> dict:
    return json.loads(app.get("plotly_chart")[index].proto.spec)


def title(figure) -> str:
    return figure["layout"]["title"]["text"].replace("<br>", " ")


@pytest.fixture(scope="module")
def found():
    """Distances and truth of the default setup, from the network."""
    view = open_view(DEFAULT)
    probability = activation_probability(view.model, view.test, countable_layers(view.model))
    truth = pair_confusion(type1_confusion(view.test.targets, view.analysis.predictions, 10))
    return view, class_distance(probability), truth


def test_pairs_are_ranked_as_the_engine_ranks_them(found):
    view, distance, truth = found
    app = opened()
    shown = table(app, "suspicion")
    pairs = suspects(distance)
    names = np.array(view.test.class_names)
    assert shown["first"].tolist() == names[pairs[:, 0]].tolist()
    assert shown["second"].tolist() == names[pairs[:, 1]].tolist()
    np.testing.assert_allclose(shown["distance"], distance[tuple(pairs.T)])
    np.testing.assert_allclose(shown["confusion (%)"], 100 * truth[tuple(pairs.T)])
    np.testing.assert_allclose(shown["average bias"], average_bias(distance)[tuple(pairs.T)])
    values = truth[np.triu_indices(10, 1)]
    assert (shown["labels"].isin(["confirmed", "not reported"])).sum() == (values > values.mean() + values.std()).sum()
    first = f"{names[pairs[0, 0]]} and {names[pairs[0, 1]]}"
    assert f"Ranked by distance, {first} come first." in words(app)
    assert title(spec(app)) == "Distances of the classes, by how they activate the neurons"


def test_every_verdict_comes_with_counts_an_interval_and_the_cutoff(found):
    view, distance, truth = found
    values = truth[np.triu_indices(10, 1)]
    cutoff = values.mean() + values.std()
    first, second = suspects(distance)[0].tolist()
    wrong = sum(
        int(((view.test.targets == a) & (view.analysis.predictions == b)).sum())
        for a, b in ((first, second), (second, first))
    )
    inputs = int(np.isin(view.test.targets, [first, second]).sum())
    app = opened()
    said = app.main.markdown[0].value
    assert f"Confused among {inputs} tests of {first} and {second}: {wrong}, and " in said
    assert said.count(" at the rate of the other pairs, as expected.") == 2, "also of the most confused pair"
    assert "**Truly confused: 0 of 45 pairs.**" in said
    assert "**Reported without labels: 7 of 45 pairs (15.6 %).**" in said
    assert "Truly confused among the 7 pairs reported without labels: 0, and 0 among as many random pairs, too" in said
    assert f"Labels confirm a pair above {percent(cutoff)} confusion: the mean of all 45 pairs + 1 SD." in words(app)
    assert f"A pair as large as {first} and {second} is certain from 3 confused tests on." in words(app)
    shown = table(app, "suspicion")
    np.testing.assert_array_equal(
        shown["labels"].isin(["confirmed", "not reported"]), shown["confusion (%)"] > 100 * cutoff
    )
    assert (shown["from (%)"] <= shown["confusion (%)"]).all()
    assert (shown["confusion (%)"] <= shown["to (%)"]).all()
    np.testing.assert_array_equal(shown["certain"], np.where(shown["labels"] == _NONE, _NONE, "no"))
    assert (shown["confused"][0], shown["inputs"][0]) == (wrong, inputs)
    bias = words(opened(tab="bias"))
    assert re.search(
        r"Disparity between \d and \d: 0\.\d+ %, and 0\.\d+ % \(0\.\d+ % to 0\.\d+ %\) with equal rates, as expected\.",
        bias,
    )


def test_the_confusion_matrix_comes_first_and_a_cell_shows_its_tests(found):
    view, _, _ = found
    true, said = view.test.targets, view.analysis.predictions
    counts = np.array([[((true == a) & (said == b)).sum() for b in range(10)] for a in range(10)])
    app = open_page("classes")
    assert not app.exception
    assert "tab" not in app.query_params
    missed = int((true != said).sum())
    assert title(spec(app)) == f"Misclassified: {missed} of 540 tests ({percent(missed / 540)})"
    cells = {
        cell: int(text)
        for trace in spec(app)["data"]
        if trace["type"] == "scatter" and "customdata" in trace
        for cell, text in zip(trace["customdata"], trace["text"], strict=True)
    }
    assert cells == {f"{a}-{b}": counts[a, b] for a, b in np.argwhere(counts)}
    wrong = counts - np.diag(np.diag(counts))
    first = divmod(int(wrong.argmax()), 10)
    assert f"{first[0]}, classified as {first[1]}:" in words(app)
    shown = table(app, "recall (%)")
    np.testing.assert_allclose(shown["recall (%)"], 100 * np.diag(counts) / counts.sum(1))
    np.testing.assert_allclose(shown["precision (%)"], 100 * np.diag(counts) / counts.sum(0))
    for name in ("recall", "precision"):
        assert (shown[f"{name} from (%)"] <= shown[f"{name} (%)"]).all()
        assert (shown[f"{name} (%)"] <= shown[f"{name} to (%)"]).all()
    app = open_page("classes", matrix="8-1", **{"matrix-numbers": "shares"})
    assert f"{counts[8, 1]} test{'' if counts[8, 1] == 1 else 's'} of 8, classified as 1:" in words(app)
    galleries = [json.loads(one.proto.json) for one in app.get("bidi_component") if '"tiles"' in one.proto.json]
    numbers = [tile["test"] for tile in galleries[0]["tiles"]]
    assert numbers == view.test.ids[(true == 8) & (said == 1)][:20].tolist()
    for junk in ("8", "99-1", "a-b", "0-1-2"):
        app = open_page("classes", matrix=junk)
        assert not app.exception
        assert f"{first[0]}, classified as {first[1]}:" in words(app)


def test_without_labels_there_is_no_matrix_and_the_pairs_are_one_click_away():
    app = open_page("classes")
    upload(app, npz(probability=predictions(5)))
    assert "A confusion matrix needs labels" in words(app)
    app.button(key="open-pairs").click().run()
    assert not app.exception
    assert len(table(app, "suspicion")) == 10


def test_cost_effectiveness_counts_what_is_reported(found):
    _, distance, truth = found
    told = evaluate(distance, truth)
    app = opened(**{"pairs-shown": "cost"})
    row = table(app, "recall").iloc[0]
    assert (row["pairs"], row["true"], row["reported"]) == (45, told.true_pairs, told.at_deviations.reported)
    assert row["of them true"] == told.at_deviations.true_positives
    assert row["gain"] == f"{100 * told.gain:.0f}\u00a0%"
    reported = "Truly confused among the 7 pairs reported without labels: 0, and 0 among as many random pairs"
    assert title(spec(app)).startswith(reported)
    assert reported in words(app)


def test_threshold_counts_again(found):
    view = found[0]
    app = opened()
    app.slider(key="activation").set_value(0.3).run()
    assert not app.exception
    probability = activation_probability(view.model, view.test, countable_layers(view.model), threshold=0.3)
    distance = class_distance(probability)
    np.testing.assert_allclose(np.sort(table(app, "suspicion")["distance"]), np.sort(distance[np.triu_indices(10, 1)]))


def test_normalised_and_unfiltered(found):
    view = found[0]
    app = opened(normalise="true", near="false")
    probability = activation_probability(view.model, view.test, countable_layers(view.model))
    distance = class_distance(probability, True)
    shown = table(app, "suspicion")
    np.testing.assert_allclose(np.sort(shown["distance"]), np.sort(distance[np.triu_indices(10, 1)]))
    bias = average_bias(distance, filtered=False)[np.triu_indices(10, 1)]
    np.testing.assert_allclose(np.sort(shown["average bias"]), np.sort(bias))


def test_counted_layers_are_chosen(found):
    view = found[0]
    app = opened(counted="fc1,fc2")
    distance = class_distance(activation_probability(view.model, view.test, ["fc1", "fc2"]))
    np.testing.assert_allclose(np.sort(table(app, "suspicion")["distance"]), np.sort(distance[np.triu_indices(10, 1)]))
    assert "Settings (1)" in [one.proto.popover.label for one in app.get("popover")]
    app = opened(counted="fc1,fc2", **{"pair-shown": "neurons"})
    assert set(table(app, "neuron")["layer"]) <= {"fc1", "fc2"}


def test_a_chosen_pair_shows_what_is_behind_it(found):
    view, _, _ = found
    wrong = (view.test.targets == 1) & (view.analysis.predictions == 8)
    wrong |= (view.test.targets == 8) & (view.analysis.predictions == 1)
    assert wrong.any()
    app = opened(pair="1-8", tab="pair")
    assert "**Confused tests of 1 and 8**" in words(app)
    galleries = [json.loads(one.proto.json) for one in app.get("bidi_component") if '"tiles"' in one.proto.json]
    numbers = [tile["test"] for tile in galleries[0]["tiles"]]
    assert numbers == view.test.ids[wrong][:20].tolist()
    app = opened(pair="1-8", **{"pair-shown": "neurons"})
    neurons = table(app, "neuron")
    assert {"relevance for 1", "relevance for 8", "active for others (%)"} <= set(neurons.columns)
    own = neurons[neurons["layer"] == "fc2"]
    said = view.analysis.predictions == 1
    for _, row in own.iterrows():
        mean = view.test_traces.relevance["fc2"][said, row["neuron"]].mean(dtype=np.float64)
        assert row["relevance for 1"] == signed(mean)
    important = table(app, "cluster of most 1")
    assert important["neuron"].tolist() == view.analysis.important.tolist()
    counts = np.bincount(view.analysis.assignments[said, 2])
    assert important["cluster of most 1"][2] == f"{counts.argmax()} ({100 * counts.max() / said.sum():.0f} %)"
    assert "Both classes reach" in words(app)


def test_a_pair_is_chosen_by_its_names():
    app = opened(tab="pair")
    app.selectbox(key="pair-first").set_value(4).run()
    app.selectbox(key="pair-second").set_value(7).run()
    assert not app.exception
    assert title(spec(app)).startswith("Inputs classified as 4 and 7 whose nearest neighbour is of their kind: ")
    assert "".join(app.query_params["pair"]) == "4-7"
    app.selectbox(key="pair-second").set_value(4).run()
    assert "Inputs classified as 4 and 7" in title(spec(app)), "a class is not compared with itself"


def test_the_chosen_pair_is_opened_in_its_tab():
    app = opened(pair="2-3")
    app.button(key="open-pair").click().run()
    assert app.query_params["tab"] in ("pair", ["pair"])
    assert "Inputs classified as 2 and 3" in title(spec(app))


def test_a_link_from_before_the_tabs_opens_the_one_with_the_third_class():
    app = opened(pair="1-8", third="9")
    assert "Classified as **9**" in words(app)


def test_groups_become_classes():
    app = opened(groups="round: 0, 6, 8, 9; straight: 1, 4, 7")
    shown = table(app, "suspicion")
    assert set(shown["first"]) | set(shown["second"]) == {"2", "3", "5", "round", "straight"}
    app.text_area(key="groups").set_value("round: 0, nine").run()
    assert "There is no class 'nine'" in words(app)
    assert not app.exception


def npz(**arrays) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def upload(app, content, name="own.npz"):
    app.file_uploader(key="own-predictions").upload(name, content, "application/octet-stream").run()
    assert not app.exception
    return app


def predictions(classes, inputs=0, seed=0):
    random = np.random.default_rng(seed)
    probability = np.clip(random.random((60, 1)) + 0.2 * random.standard_normal((60, classes)), 0, 1)
    probability[:, 1] = np.clip(probability[:, 0] + 0.01, 0, 1)
    return probability.astype(np.float32)


@pytest.mark.parametrize("classes", [5, 100, pytest.param(1000, marks=pytest.mark.slow)])
def test_own_probability_matrix_of_any_number_of_classes(classes):
    app = upload(opened(), npz(probability=predictions(classes)))
    assert "your own predictions" in words(app)
    shown = table(app, "suspicion")
    assert len(shown) == min(500, classes * (classes - 1) // 2)
    distance = class_distance(predictions(classes))
    first = suspects(distance)[0]
    assert (shown["first"][0], shown["second"][0]) == (str(first[0]), str(first[1]))
    assert "confusion (%)" not in shown
    drawn = [one for one in app.get("plotly_chart") if one.key.startswith("distances")]
    assert sum(len(one.proto.spec) for one in drawn) < 1_500_000
    assert len(drawn) == (1 if classes == 5 else 2), "many classes also show those around the pair"


def test_own_predictions_with_several_labels():
    random = np.random.default_rng(0)
    true = random.random((400, 6)) < 0.4
    predicted = true ^ (random.random((400, 6)) < 0.08)
    names = np.array(["woman", "man", "skis", "bag", "oven", "tie"])
    content = npz(activations=random.random((400, 30)), predicted=predicted, true=true, class_names=names)
    app = upload(opened(), content)
    assert {"woman", "man"} <= set(table(app, "suspicion")["first"])
    beside = table(app, "suspicion")["confusion (%)"].to_numpy()
    app.button_group(key="kind").set_value("type1").run()
    assert not app.exception
    assert not np.array_equal(beside, table(app, "suspicion")["confusion (%)"].to_numpy())
    app.text_area(key="groups").set_value("people: woman, man").run()
    assert not app.exception
    assert "people" in words(app)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"nothing", "not an npz file or a table"),
        (npz(activations=np.zeros((3, 2)), predicted=np.array([0, 1])), "expected arrays of the same inputs"),
        (npz(activations=np.zeros((3, 2)), predicted=np.array([0, 1, -1])), "classes numbered from 0"),
    ],
)
def test_bad_files_say_why_and_leave_the_page(content, said):
    app = upload(opened(), content)
    assert said in words(app)
    assert len(table(app, "suspicion")) == 45


def test_a_class_that_is_never_predicted_is_named():
    values = np.random.default_rng(0).random((30, 8))
    content = npz(activations=values, predicted=np.arange(30) % 3, class_names=np.array(["a", "b", "c", "d"]))
    app = upload(opened(), content)
    assert "No input is predicted as d: not analysed." in words(app)
    assert len(table(app, "suspicion")) == 3


def test_pinned_setup_beside():
    app = opened(pin="layer=fc1")
    assert "In both setups" in words(app)


def test_network_is_run_once(monkeypatch):
    opened()
    import idc_core.confusion.scaled_activation as statistics

    def fail(*args, **kwargs):
        raise AssertionError("a second pass")

    monkeypatch.setattr(statistics, "collect_statistics", fail)
    app = opened(activation="0.65")
    assert len(table(app, "suspicion")) == 45
    assert idc.load_dataset("digits").class_names[0] == "0"


def test_confused_tests_are_kept_as_a_suite(found, tmp_path, monkeypatch):
    from idc_core.suites.saved_suites import open_saved, saved_suites

    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    view, distance, _ = found
    app = opened(tab="remedy")
    values = distance[np.triu_indices(10, 1)]
    reported = {
        tuple(pair) for pair in suspects(distance).tolist() if distance[tuple(pair)] < values.mean() - values.std()
    }
    said = zip(view.test.targets.tolist(), view.analysis.predictions.tolist(), strict=True)
    rows = [i for i, (true, answer) in enumerate(said) if (min(true, answer), max(true, answer)) in reported]
    assert f", {len(rows)} tests of " in words(app)
    app.button(key="keep-confused").click().run()
    assert not app.exception
    assert "Kept as" in app.success[0].value
    (name,) = saved_suites(view.test)
    suite = open_saved(name)
    np.testing.assert_array_equal(suite.targets, view.test.targets[rows])
    np.testing.assert_array_equal(suite.origin, view.test.ids[rows])
    assert [step.settings.get("fingerprint") for step in suite.provenance] == [view.test.fingerprint, None]
    assert "suspected without labels" in suite.provenance[-1].label


@pytest.mark.slow
def test_retraining_shows_before_and_after(found):
    app = opened(deviations="0.5", tab="remedy")
    assert "before" not in [value for frame in app.dataframe for value in frame.value.iloc[:, 0].astype(str)]
    app.button(key="repair").click().run()
    run_until(app)
    assert not app.exception
    shown = table(app, "of the other pairs (%)")
    assert shown["network"].tolist()[0] == "before"
    assert len(shown) == 4
    assert "tests of the other half" in words(app)
