"""The Robustness page: what it shows is what the engine finds, unit by unit, and a stop keeps what was finished."""

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from idc_core.datasets import load_dataset
from idc_core.evidence.paired import equivalent_within
from idc_core.experiments.retraining_results import Difference
from idc_core.experiments.rq6 import ADDITIONS, TESTS, prepare_rq6, usual
from studio.jobs.jobs import _State
from studio.jobs.results import open_view
from studio.robustness import results, retraining
from studio.state.setup import DEFAULT, parse
from studio.widgets import retraining as watched
from studio.widgets.retraining import RetrainingRun
from tests.pages.reading import forget_all, is_trained, run_until

QUICK = {"epochs": "1", "seeds": "2"}


@pytest.fixture(autouse=True, scope="module")
def home(tmp_path_factory):
    """A folder for what is retrained, and few inputs of the digits; a browser's page retrains on all of them."""

    def few(name, split, limit=None, **settings):
        return load_dataset(name, split, {"train": 300, "test": 120}[split] if name == "digits" else limit, **settings)

    forget_all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDC_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setattr("idc_core.datasets.load_dataset", few)
        yield
    forget_all()


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


def text(app):
    return " ".join(element.value for element in (*app.markdown, *app.caption, *app.info))


def figure(app, place=0):
    import json

    return json.loads(app.get("plotly_chart")[place].proto.spec)


def button(app, key):
    return next(one for one in app.button if one.key == key)


def started(app):
    """Press Start, or Continue."""
    button(app, "retraining-continue").click().run()
    assert not app.exception
    return app


def until_finished(app, some=False):
    """What the polling does in a browser: the page runs again until every unit is there, or some."""

    def there(app):
        assert not app.exception
        assert not app.error, app.error[0].value
        return is_trained(app) or bool(some and app.get("plotly_chart"))

    return run_until(app, there, pause=0.2 if some else 0.6)


@pytest.fixture(scope="module")
def reference(view):
    """The same run by the engine alone."""
    settings = replace(usual(view.train, "fc2", 84), epochs=1)
    from idc_core import analyze

    learnt = analyze(view.model, view.train, view.test, "fc2", 12)
    ready = prepare_rq6(view.model, view.train, view.test, learnt, settings)
    from idc_core.experiments.retraining import retrain

    return settings, retrain(view.model, view.train, ready.additions, ready.tests, seeds=2, epochs=1)


class Idle:
    """A job that has not begun."""

    state, done = _State(0, 0, ""), False


def test_nothing_starts_before_it_is_asked_for(open_page, monkeypatch):
    """What would be done is said; then the first network is begun in the background, and said to be."""
    begun = []
    monkeypatch.setattr(RetrainingRun, "_job", lambda self, kind, key, work: begun.append(kind.name) or Idle())
    app = open_page("robustness", **QUICK)
    assert not app.exception
    assert not app.get("plotly_chart")
    assert begun == []
    assert "**No network is retrained yet.** Start trains 6 copies for 1 epoch each. It shows" in text(app)
    assert not app.code, "the command line trains for more epochs"
    assert button(app, "retraining-continue").label == "Start"
    started(app)
    assert begun == ["retrained-tests"]
    assert "**Retrained: 0 of 6 networks.** Significance needs two seeds." in text(app)
    assert "How this was computed" in [one.label for one in app.expander]
    button(app, "retraining-stop").click().run()
    assert "Significance needs two seeds" not in text(app)
    assert "No network is retrained yet" in text(app)
    assert len(begun) == 1


@pytest.mark.parametrize(
    ("significant", "said"),
    [
        ([], ""),
        ([1], "+2.0 points on random noise"),
        ([0, 1, 3], "\u22121.0 to +2.0 points on 3 of 6 test sets, most on random noise"),
    ],
)
def test_significant_differences_are_counted_with_their_range(significant, said):
    mean = np.array([-0.01, 0.02, 0.5, 0.004, -0.5, 0.0])
    half = np.full(6, 1.0)
    half[significant] = 0.001
    pair = Difference("raising", "random", mean[None], mean, mean - half, mean + half)
    run = SimpleNamespace(result=SimpleNamespace(task="classification", tests=tuple(TESTS)))
    assert results._significant(run, pair) == said


def test_the_time_left_follows_from_the_networks_finished(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(watched.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(watched.st, "session_state", {})
    prepared = [None]
    monkeypatch.setattr(watched, "shelf", lambda: SimpleNamespace(finished=lambda *_: prepared[0]))
    run = RetrainingRun(Path("x"), ("a",), (0, 1, 2), lambda report: None)
    assert watched._time_left(run, 3, 0.9) == "", "preparation is no network"
    prepared[0] = "there"
    assert watched._time_left(run, 3, 0.0) == ""
    clock[0] = 65.0
    assert watched._time_left(run, 3, 0.5) == ", about 5 min left"
    clock[0] = 130.0
    assert watched._time_left(run, 2, 0.0) == ", about 4 min left"


@pytest.mark.slow
def test_page_ends_with_what_the_engine_finds(open_page, view, reference):
    settings, expected = reference
    app = until_finished(started(open_page("robustness", **QUICK)), some=True)
    assert len(app.get("plotly_chart")) == 1
    first = retraining.rq6_run(view, settings, (0, 1))
    assert 1 <= len(first.result.networks) <= 6
    until_finished(app)
    run = retraining.rq6_run(view, settings, (0, 1))
    assert run.left == []
    assert np.array_equal(run.result.values, expected.values)
    table = app.dataframe[0].value
    assert list(table["test"]) == list(TESTS.values())
    mean, spread = expected.mean()[2, -1, 0], expected.deviation()[2, -1, 0]
    assert table[ADDITIONS["raising"]][0] == f"{100 * mean:.1f} ± {100 * spread:.1f} %"
    column = expected.most_different("raising", "random")
    own, other = (100 * expected.mean()[place, -1, column] for place in (2, 1))
    assert f"inputs that raise IDC: {own:.1f} %, and {other:.1f} % (" in text(app)
    against_random = expected.difference("raising", "random").exceeds
    assert (") with as many random ones, as expected.**" in text(app)) == (not against_random.any())
    lines = [trace for trace in figure(app)["data"] if trace.get("name")]
    assert [line["name"] for line in lines[:: len(TESTS)]] == [results._SHORT[name] for name in ADDITIONS]
    assert "How this was computed" in [one.label for one in app.expander]


@pytest.mark.slow
def test_what_was_retrained_is_shown_at_once_in_every_tab(open_page, reference):
    """Whichever test comes first has it retrained: after that nothing is left to start."""
    app = open_page("robustness", **QUICK)
    if any(one.key == "retraining-continue" for one in app.button):
        until_finished(started(app))
    _, expected = reference
    pair = expected.difference("raising", "none")
    app = open_page("robustness", tab="differences", **QUICK)
    assert not any(one.key in ("retraining-stop", "retraining-continue") for one in app.button)
    starred = [value.endswith("*") for value in app.dataframe[0].value["raising IDC \u2212 nothing added"]]
    assert starred == pair.exceeds.tolist()
    apart = 100 * equivalent_within(expected.difference("raising", "random").values)
    told = app.dataframe[0].value["as good as random within"]
    assert list(told) == [f"{value:.1f}" for value in apart]
    assert len(app.get("plotly_chart")) == 1
    app = open_page("robustness", tab="added", **QUICK)
    sheets = [image for element in app.get("image") for image in element.proto.imgs]
    assert len(sheets) == 2
    for image in sheets:
        assert "True classes by row" in image.alt
        assert image.url.endswith(".png"), "no pixel is made up by compression"
    assert len([one for one in app.get("download_button") if one.proto.label.startswith("Weights: ")]) == 3


@pytest.mark.slow
def test_stop_keeps_what_is_finished_and_continue_goes_on(open_page, view):
    app = until_finished(started(open_page("robustness", **QUICK, **{"noisy-pixels": "10"})), some=True)
    button(app, "retraining-stop").click().run()
    assert not app.exception
    settings = replace(usual(view.train, "fc2", 84), epochs=1, share=0.1)
    time.sleep(0.5)
    held = retraining.rq6_run(view, settings, (0, 1)).result.networks
    assert 1 <= len(held) < 6
    assert len(app.get("plotly_chart")) >= 1
    if ("raising", 1) not in held:
        assert "There is no result yet" in text(app)
    assert button(app, "retraining-continue").label == "Continue"
    until_finished(started(app))
    whole = retraining.rq6_run(view, settings, (0, 1)).result
    assert whole.complete
    key = ("none", 0)
    assert np.array_equal(whole.networks[key].values, held[key].values)


def test_the_command_line_is_said_where_it_makes_the_same(open_page):
    app = open_page("robustness", seeds="3")
    assert app.code[0].value == "python -m idc_core experiment rq6 --models lenet5-digits --seeds 3"
    for other in ({"layer": "fc1"}, {"k": "3"}, {"classes": "3"}, {"epochs": "2"}):
        app = open_page("robustness", **other)
        assert not app.exception
        assert "No network is retrained yet" in text(app)
        assert not app.code


def test_clusters_zeros_and_classes_are_the_setups(open_page):
    """Other clusters are other cells, and other classes other tests: a run of its own, by the engine's own numbers."""
    asked = {"layer": "fc1", "k": "4", "zeros": "dropped", "classes": "3,5"}
    app = until_finished(started(open_page("robustness", **QUICK, **asked)), some=True)
    view = open_view(parse(asked))
    tests = view.test.only(view.chosen)
    assert set(tests.targets.tolist()) == {3, 5}
    clustered = {"clusters": (4,), "drop_zeros": True}
    settings = replace(usual(view.train, "fc1", view.train_traces.activations["fc1"].shape[1]), epochs=1, **clustered)
    run = retraining.rq6_run(view, settings, (0, 1))
    assert run.result.networks, "the page retrains with these settings"
    from idc_core import analyze

    learnt = analyze(view.model, view.train, tests, "fc1", settings.m, **clustered)
    found = prepare_rq6(view.model, view.train, tests, learnt, settings)
    assert found.store.path == run.path
    assert run.result.networks["none", 0].values[0, 0] == np.mean(view.correct[view.chosen])
    app = open_page("robustness", tab="added", **QUICK, **asked)
    computed = " ".join(one.value for one in app.expander[-1].markdown)
    assert "m = 12, k-means, k = 4, zeros dropped" in computed
    assert "Tests are those of class 3, 5" in computed
    asked.pop("classes")
    assert retraining.rq6_run(open_view(parse(asked)), settings, (0, 1)).path != run.path


def test_nothing_new_to_add_is_said(open_page, monkeypatch):
    from idc_core.errors import DataError
    from idc_core.experiments.rq6 import Candidates

    def nothing(self, seed, on_progress=None):
        raise DataError("None raises IDC. Choose more neurons.")

    monkeypatch.setattr(Candidates, "_make", nothing)
    app = started(open_page("robustness", **QUICK, combined="4"))
    run_until(app, lambda app: bool(app.error), pause=0.2)
    assert [error.value for error in app.error] == ["None raises IDC. Choose more neurons."]
    assert len(app.get("plotly_chart")) == 1


def test_pinned_setup_is_told(open_page):
    app = open_page("robustness", **QUICK, pin="layer=fc1")
    assert not app.exception
    assert "0 on the pinned setup" in text(app)


def test_texts_are_said_to_have_nothing_to_add(small_data, open_page):
    app = open_page("robustness", model="textcnn-20newsgroups", data="20newsgroups")
    assert not app.exception
    assert "defined for pictures, and these tests are none" in text(app)
    assert [one.proto.page for one in app.get("page_link")] == ["testsets"]


@pytest.mark.rare
def test_regression_is_measured_by_its_error(small_data, open_page, monkeypatch):
    app = open_page("robustness", model="dave2-udacity", data="udacity", **QUICK, added="20")
    assert not app.exception
    assert not app.error
    until_finished(started(app))
    table = app.dataframe[0].value
    assert list(table["test"]) == [TESTS[name] for name in ("clean", "noise", "guided")]
    assert "RMSE" in text(app)


@pytest.mark.slow
def test_a_saved_suite_is_added_and_the_tests_it_was_made_of_are_not_measured(open_page, view):
    from idc_core.suites import ProvenanceStep, save_suite
    from idc_core.suites.custom_tests import SuiteFormat, suite_from_arrays

    step = ProvenanceStep("original", "tests", {"fingerprint": view.test.fingerprint})
    form, origin = SuiteFormat.of(view.test), view.test.ids[[4, 9]]
    given = (1 - view.test.inputs[:2]), view.test.targets[:2]
    name = save_suite("Mine", suite_from_arrays(*given, form, origin=origin, provenance=[step])).stem
    until_finished(started(open_page("robustness", **QUICK, **{"own-suite": name})))
    run = retraining.rq6_run(view, replace(usual(view.train, "fc2", 84), epochs=1, suite=name), (0, 1))
    assert len(run.tests) == len(view.test) - 2
    assert not np.isin(origin, run.tests.ids).any()
    assert run.result.networks["raising", 0].added == run.result.networks["random", 0].added == 2
    app = open_page("robustness", tab="added", **QUICK, **{"own-suite": name})
    assert "Added are the 2 inputs of the suite" in " ".join(one.value for one in app.expander[-1].markdown)
    assert "2 inputs of the suite" in text(open_page("robustness", **QUICK, **{"own-suite": name}))
