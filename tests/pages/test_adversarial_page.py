"""The Adversarial page: the engine's own numbers, settings from the address, Stop, all attacks, keeping."""

import io
import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import idc_core as idc
from idc_core.files import cache_folder
from idc_core.perturbation.attacks import ATTACKS
from idc_core.suites import attacked as engine
from idc_core.suites.saved_suites import open_saved, saved_suites
from studio.adversarial import attacks
from studio.adversarial.attacks import Plan
from studio.engine import jobs
from studio.engine.results import open_view
from studio.state.setup import DEFAULT
from studio.text import cell_name, percent
from tests.pages.reading import open_page


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
        jobs.shelf()._jobs[kind].clear()


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
    fooled = f"{int(result.success.sum())} of 64 correctly classified tests ({percent(result.success_rate)})"
    assert fooled in finding
    assert f"{result.linf[result.success].mean():.3g} (L\u221e)" in finding
    assert f"{result.l2[result.success].mean():.2f} (L2)" in finding
    cells = {tuple(cell) for cell in view.analysis.assignments.tolist()}
    from idc_core.tracing.trace import collect

    found = view.analysis.assign(collect(view.model, result.inputs, ["fc2"]).activations["fc2"])
    new = {tuple(cell) for cell in found.tolist()} - cells
    assert f"add {len(new)} cells to those of the 540 original tests" in finding
    listed = table(app, "first test")
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
    app = opened(seed="1")
    _, result = attacked(view, plan(seed=1))
    spec = figure(app, 1)
    maps = [trace for trace in spec["data"] if trace["type"] == "heatmap"]
    totals = [np.nansum(numbers(one["z"])) for one in maps]
    assert totals == [64, 64]
    before, after = result.confusion(10)
    for one, counts in zip(maps, (before, after), strict=True):
        np.testing.assert_array_equal(np.nan_to_num(numbers(one["z"])).reshape(10, 10), counts)


def numbers(packed) -> np.ndarray:
    import base64

    return np.frombuffer(base64.b64decode(packed["bdata"]), np.dtype(packed["dtype"]))


def test_the_address_chooses_attack_settings_goal_and_tests(view):
    app = opened(attack="PGD", pgd__epsilon="0.15", pgd__steps="5", goal="7", attacked="32", seed="3")
    one = plan("pgd", settings={"epsilon": 0.15, "steps": 5}, goal=7, seed=3, numbers=32)
    _, result = attacked(view, one)
    finding = app.markdown[0].value
    assert f"into class 7 on {int(result.success.sum())} of 32" in finding
    assert "PGD (epsilon 0.15, steps 5)" in finding


@pytest.mark.slow
def test_the_presets_say_which_is_which_and_set_their_values():
    app = opened(attack="Carlini-Wagner L2", cw__iterations="1", cw__search_steps="1", attacked="32")
    choice = next(one for one in app.get("button_group") if one.label == "Settings")
    assert choice.value == "own"
    assert "paper's: learning rate 0.005" in choice.help
    choice.set_value("sensible").run()
    assert not app.exception
    assert "Carlini-Wagner L2 (sensible) fools the network on 32 of 32" in app.markdown[0].value
    assert {one.label: one.value for one in app.select_slider}["Learning rate"] == 0.1
    assert app.query_params["cw-learning_rate"] == "0.1"


def test_stopping_shows_what_is_finished_and_going_on_attacks_only_the_rest(forgotten, monkeypatch):
    app = opened(attacked="100")
    done = jobs.shelf()._jobs["attacks"]
    made = len(done)
    assert made == 4
    for key in list(done)[2:]:
        del done[key]
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


def test_stopped_before_anything_is_finished(forgotten):
    app = opened()
    jobs.shelf()._jobs["attacks"].clear()
    app.session_state[jobs.STOPPED] = True
    app.run()
    assert not app.exception
    assert "was stopped after 0 of 64 inputs; no input is finished yet" in text(app)
    button(app, "Start again").click().run()
    assert "of 64 correctly classified tests" in app.markdown[0].value


def test_all_attacks_run_on_the_same_tests(forgotten, monkeypatch):
    for name, fast in (("cw", {"iterations": 5}), ("pgd", {"steps": 3}), ("deepfool", {"steps": 3})):
        usual = attacks.usual_settings(name)
        monkeypatch.setitem(FAST, name, {**usual, **fast})
    monkeypatch.setattr(attacks, "usual_settings", lambda name: FAST.get(name) or usual_settings(name))
    app = opened(attacked="32")
    assert list(table(app, "added cells")["attack"]) == ["FGSM"]
    button(app, "Run the other 5 attacks").click().run()
    assert not app.exception
    shown = table(app, "added cells")
    assert len(shown) == len(ATTACKS)
    assert (shown["inputs"] == 32).all()
    assert not [one for one in app.button if one.label.startswith("Run the other")]
    assert list(figure(app, 2)["layout"]["yaxis"]["ticktext"]) == list(shown["attack"])


FAST: dict = {}
usual_settings = attacks.usual_settings


def test_attacks_that_are_stopped_leave_the_comparison_and_the_others_stay(forgotten, monkeypatch):
    FAST.clear()
    monkeypatch.setattr(attacks, "usual_settings", lambda name: FAST.get(name) or usual_settings(name))
    app = opened(attacked="32")
    button(app, "Run the other 5 attacks").click()
    app.session_state[jobs.STOPPED] = True
    app.run()
    assert not app.exception
    assert "5 attacks not finished" in text(app)
    assert list(table(app, "added cells")["attack"]) == ["FGSM"]
    assert [one for one in app.button if one.label == "Run the other 5 attacks"]


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
    from studio.adversarial.attack_results import archive, table_of

    run = attacks.open_run(view, plan())
    suite = custom_suite(archive(view, run), view.test)
    np.testing.assert_array_equal(suite.take(range(64)), run.result.inputs)
    with np.load(io.BytesIO(archive(view, run))) as file:
        np.testing.assert_array_equal(file["originals"], view.test.inputs[run.positions])
    listed = table_of(view, run)
    assert (listed["prediction_before"] == listed["true_class"]).all()
    assert (listed["fooled"] == (listed["prediction_after"] != listed["true_class"])).all()


def test_heatmaps_can_explain_the_right_class_both_times(view):
    given, right = (attacks.open_run(view, plan(), explained) for explained in ("answer", "right"))
    np.testing.assert_allclose(given.before, right.before, err_msg="the answer before is the right class")
    changed = given.result.predictions != given.result.targets
    assert not np.allclose(given.after[changed], right.after[changed])
    np.testing.assert_allclose(given.after[~changed], right.after[~changed])


@pytest.mark.parametrize(
    ("setup", "said", "link"),
    [
        ({"model": "textcnn-20newsgroups", "data": "20newsgroups"}, "There are no attacks on texts", "relevance"),
        ({"model": "dave2-udacity", "data": "udacity"}, "it predicts an angle", "testsets"),
    ],
)
def test_setups_that_cannot_be_attacked_say_why_and_where_to_go(small_data, setup, said, link):
    app = opened(**setup)
    assert not app.error
    assert said in app.markdown[0].value
    assert [one.proto.page for one in app.get("page_link")] == [link]


def test_pinned_setup_is_attacked_in_the_same_way():
    app = opened(pin="layer=fc1", attacked="32")
    assert "on the pinned setup. It adds" in text(app)
    assert len(app.get("plotly_chart")) == 5
