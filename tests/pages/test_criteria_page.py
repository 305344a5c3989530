"""The Criteria page: every criterion and suite as the engine measures them, correlations, orders, parameters, Stop."""

import base64
import json

import numpy as np
import pytest

from idc_core.coverage import CRITERIA
from idc_core.coverage.agreement import equal_suites
from idc_core.coverage.prioritisation import UNCERTAINTIES, apfd, most_first
from idc_core.coverage.streamed import measure
from idc_core.suites import SUITES, make_suite
from studio.criteria import compared_suites, criterion_controls, criterion_scores
from studio.jobs import jobs
from studio.jobs.results import open_view
from studio.state.setup import DEFAULT
from tests.pages.reading import forget

NAMES = [name.upper() for name in CRITERIA]


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


def text(app) -> str:
    kinds = (app.markdown, app.caption, app.info, app.warning)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def figure(app, index=0) -> dict:
    return json.loads(app.get("plotly_chart")[index].proto.spec)


def table(app, column):
    return next(frame.value for frame in app.dataframe if column in frame.value)


def title(spec) -> str:
    return spec["layout"]["title"]["text"].replace("<br>", " ")


def test_table_holds_every_criterion_and_suite_as_measured_from_the_inputs(open_page, view):
    app = open_page("criteria")
    shown = table(app, "All tests").set_index("criterion")
    assert list(shown.index) == NAMES
    assert shown.loc["IDC", "All tests"] == f"{100 * view.analysis.score:.1f} %"
    half = view.test.inputs[compared_suites.PARTS["half"].positions(view)]
    for name in ("kmnc", "tknp", "dsc", "nlc"):
        one = CRITERIA[name](view.model, "fc2")
        (score,) = measure([one], view.train, half)
        share = name in ("kmnc", "dsc")
        written = shown.loc[name.upper(), "Random half"]
        assert written == (f"{100 * score:.1f} %" if share else f"{score:.3g}")


def test_parts_are_what_their_names_say(view):
    found = compared_suites.parts(view)
    assert sorted([*found["first"], *found["last"]]) == list(range(540))
    assert view.test.targets[found["first"]].max() < view.test.targets[found["last"]].min()
    assert view.correct[found["right"]].all()
    assert not view.correct[found["wrong"]].any()
    assert len(found["right"]) + len(found["wrong"]) == 540
    rest = np.setdiff1d(np.arange(540), found["uncertain"])
    assert len(found["uncertain"]) == 135
    assert view.analysis.confidence[found["uncertain"]].max() <= view.analysis.confidence[rest].min()
    assert (len(found["half"]), len(np.unique(found["half"]))) == (270, 270)


def test_small_multiples_draw_the_table(open_page):
    app = open_page("criteria")
    shown = table(app, "All tests").set_index("criterion")
    bars = figure(app)["data"]
    assert len(bars) == len(NAMES)
    columns = [part.label for part in compared_suites.PARTS.values()]
    assert [bar["text"] for bar in bars] == shown[columns].to_numpy().tolist()


@pytest.fixture(scope="module")
def agreement(view):
    """The scores of a hundred halves of the tests by some criteria, each half measured from the inputs."""
    halves = equal_suites(540)
    scores = {name: [] for name in ("idc", "kmnc", "nlc")}
    criteria = [CRITERIA[name](view.model, "fc2") for name in scores]
    for half in halves[:3]:
        for name, score in zip(scores, measure(criteria, view.train, view.test.inputs[half]), strict=True):
            scores[name].append(score)
    return scores


def test_suites_of_equal_size_are_scored_as_from_their_inputs(view, agreement):
    measured = criterion_scores.measure_criteria(view, list(agreement), {name: {} for name in agreement})
    agreed = criterion_scores.agree(view, measured)
    assert agreed.size == 270
    for name, scores in agreement.items():
        assert agreed.scores[name][:3] == pytest.approx(scores, rel=1e-5)
        assert len(agreed.scores[name]) == 100


def test_finding_says_who_agrees_over_suites_of_equal_size(open_page, view):
    app = open_page("criteria", tab="agreement")
    matrix = np.array(figure_matrix(figure(app)))
    place = int(np.nanargmax(np.abs(matrix[0, 1:])))
    words = f"{NAMES[1:][place]} correlates most with IDC over 100 suites of 270 tests: "
    number = f"{matrix[0, 1 + place]:.2f}".replace("-", "\u2212")
    assert title(figure(app)).startswith(f"{words}{number}, and 0 (")
    assert f"**{words}{number}, and 0 (" in text(open_page("criteria"))
    shown = table(app, "p among all").set_index("criterion")
    assert shown.loc[NAMES[1:][place], "correlation with IDC"].lstrip("+") == number
    assert "NC" not in shown.index, "the same for every half"
    assert "Of 540 tests, correlations beyond 0." in text(open_page("criteria"))


def test_prioritisation_says_who_meets_mistakes_first(open_page):
    app = open_page("criteria", tab="prioritisation")
    orders = table(app, "APFD (%)")
    best = f"Average percentage of faults detected (APFD) by {orders['order'][0]}, the best of {len(orders)} orders: "
    assert title(figure(app)).startswith(f"{best}{orders['APFD (%)'][0]:.1f} %, and 50.")
    assert title(figure(app)).endswith(" in random orders")


def numbers(values) -> list:
    """Read numbers of a figure, which may be packed."""
    if isinstance(values, dict):
        flat = np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
        return flat.reshape([int(part) for part in values.get("shape", "-1").split(",")]).tolist()
    return values


def figure_matrix(spec) -> list:
    return numbers(spec["data"][0]["z"])


def test_apfd_is_that_of_the_real_mistakes(open_page, view):
    shown = table(open_page("criteria", tab="prioritisation"), "APFD (%)").set_index("order")["APFD (%)"]
    gini = most_first(UNCERTAINTIES["deepgini"](view.test_traces.scores))
    assert shown["DeepGini"] == pytest.approx(100 * apfd(gini, ~view.correct))
    assert {"IDC, most new coverage", "DSC, most surprising", "NLC, largest gain", "Margin"} <= set(shown.index)


def test_correlation_over_suites_of_different_size_is_another(open_page):
    app = open_page("criteria", tab="agreement")
    before = figure_matrix(figure(app))
    over = next(group for group in app.get("button_group") if group.label == "Compared over")
    over.set_value("suites").run()
    assert not app.exception
    after = figure_matrix(figure(app))
    assert title(figure(app)) == "Rank correlation of the criteria over suites of different size"
    assert abs(after[0][4]) > abs(before[0][4])  # KMNC and IDC agree over suites because both grow with the tests


def test_first_picks_are_the_chosen_orders(open_page, view):
    app = open_page("criteria", order="DeepGini")
    expected = most_first(UNCERTAINTIES["deepgini"](view.test_traces.scores))[:20]
    wrong = int((~view.correct[expected]).sum())
    assert "First tests by DeepGini" in [element.value for element in app.header]
    assert f"Misclassified: {wrong} of 20 tests" in text(app)
    app.selectbox(key="order").set_value("nlc-value").run()
    assert "First tests by NLC, largest gain" in [element.value for element in app.header]


def test_selected_test_is_found_in_the_order(open_page, view):
    first = most_first(UNCERTAINTIES["deepgini"](view.test_traces.scores))[2]
    app = open_page("criteria", order="DeepGini", input=str(view.test.ids[first]))
    assert "The selected test is number 3 of 540." in text(app)


def test_parameters_change_only_their_criterion_and_are_in_the_address(open_page):
    app = open_page("criteria")
    before = table(app, "All tests").set_index("criterion")["All tests"]
    app.number_input(key="kmnc-k").set_value(10).run()
    after = table(app, "All tests").set_index("criterion")["All tests"]
    assert [name for name in NAMES if before[name] != after[name]] == ["KMNC"]
    again = open_page("criteria", **{"kmnc-k": "10"})
    assert table(again, "All tests").set_index("criterion")["All tests"]["KMNC"] == after["KMNC"]


def test_what_can_fall_and_what_depends_on_order_is_said_where_criteria_are_chosen(open_page):
    pills = next(group for group in open_page("criteria").get("button_group") if group.label == "Criteria")
    assert "NLC can fall when tests are added; CC depends on the order of the tests." in pills.help
    assert "can fall when tests are added" in CRITERIA["nlc"].card.help


def test_every_parameter_has_a_control_with_the_default_of_its_criteria():
    shared = criterion_controls._shared_parameters()
    assert "lsc-dsc-mdsc-buckets" in [criterion_controls._parameter_key(*one) for one in shared]
    for names, parameter in shared:
        for name in names:
            assert CRITERIA[name].card.defaults[parameter.name] == parameter.default
        assert parameter.default in parameter.offered or parameter.low <= parameter.default <= parameter.high


def test_chosen_criteria_are_kept_in_the_address_and_idc_always_is(open_page):
    app = open_page("criteria", criteria="kmnc,nlc")
    assert list(table(app, "All tests")["criterion"]) == ["IDC", "KMNC", "NLC"]
    assert len(figure(app)["data"]) == 3


def test_slow_criteria_wait_until_they_are_chosen(open_page, monkeypatch):
    monkeypatch.setattr(criterion_controls, "MANY_PAIRS", 10)
    app = open_page("criteria")
    assert set(NAMES) - set(table(app, "All tests")["criterion"]) == {"LSC", "DSC", "CC"}
    assert "Not measured: LSC, DSC and CC. They compare every test with many other inputs" in text(app)
    chosen = open_page("criteria", criteria="kmnc,dsc")
    assert list(table(chosen, "All tests")["criterion"]) == ["IDC", "KMNC", "DSC"]


def test_every_tab_computes_only_its_own(open_page, monkeypatch):
    shelf = jobs.shelf()
    monkeypatch.setattr(shelf, "_jobs", type(shelf._jobs)(shelf._jobs.default_factory))
    kinds = {"growth": "growth", "prioritisation": "orders", "agreement": "criteria", "scores": "criteria"}
    for tab, kind in kinds.items():
        for one in ("growth", "orders"):
            shelf._jobs.pop(one, None)
        open_page("criteria", tab=tab, criteria="kmnc")
        assert {"criteria", kind} == {"criteria", "growth", "orders"} & set(shelf._jobs), tab


def test_the_default_criteria_are_not_in_the_address(open_page):
    app = open_page("criteria", criteria="kmnc")
    pills = next(group for group in app.get("button_group") if group.label == "Criteria")
    pills.set_value([name for name in CRITERIA if name != "idc"]).run()
    assert "idc" not in app.query_params["criteria"][0]
    pills = next(group for group in app.get("button_group") if group.label == "Criteria")
    pills.set_value(list(CRITERIA)).run()
    assert "criteria" not in app.query_params


def test_one_class_has_fewer_parts(open_page):
    app = open_page("criteria", classes="3", criteria="nc")
    assert not app.exception
    assert "First classes" not in table(app, "All tests").columns


def test_stop_keeps_what_was_finished(open_page):
    app = open_page("criteria")
    assert forget("criteria", lambda key: "mdsc" in key)
    app.session_state[jobs.STOPPED] = True
    app.run()
    assert not app.exception
    assert "Stopped before it was finished: Mahalanobis surprise coverage" in text(app)
    assert list(table(app, "All tests")["criterion"])[:3] == ["IDC", "NC", "TKNC"]
    next(button for button in app.button if button.label == "Start again").click().run()
    assert list(table(app, "All tests")["criterion"]) == NAMES


def test_pinned_setup_is_drawn_beside(open_page):
    app = open_page("criteria", pin="layer=fc1")
    assert not app.exception
    assert len(app.get("plotly_chart")) == 3
    assert "On the pinned setup: " in text(app)
    assert text(app).count("correlates most with IDC over 100 suites of 270 tests") == 3


def test_made_tests_are_added_to_the_tests(open_page, view):
    # First, as the library of the attacks tries to import a package "coverage": while a page runs by itself, its folder
    # is searched, and holds one of that name.
    both = make_suite("fgsm", view.test, view.model).take(range(1080))
    app = open_page("criteria", suites="noise,fgsm", criteria="snac")
    assert not app.exception
    shown = table(app, "All tests")
    both = np.concatenate(
        [view.test.inputs, make_suite("fgsm", view.test, view.model, with_original=False).take(range(540))]
    )
    (score,) = measure([CRITERIA["snac"](view.model, "fc2")], view.train, both)
    row = shown[shown["criterion"] == "SNAC"].iloc[0]
    assert row[f"{SUITES['fgsm'].label} added"] == f"{100 * score:.1f} %"
    assert any("(1,080)" in label for label in figure(app)["layout"]["yaxis"]["ticktext"])
    assert "Random noise added" in shown.columns


def test_other_data_sets_are_suites(small_data, open_page):
    app = open_page("criteria", suites="mnist", criteria="kmnc")
    assert not app.exception
    shown = table(app, "MNIST").set_index("criterion")["MNIST"]
    assert set(shown.index) == {"IDC", "KMNC"}
    assert not (shown == "").any()
    assert any("MNIST" in label for label in figure(app)["layout"]["yaxis"]["ticktext"])


def test_regression_has_no_mistakes_and_says_which_criteria_do_not_fit(small_data, open_page):
    app = open_page("criteria", model="dave2-udacity")
    assert not app.exception
    assert not app.warning, "a first look is no mistake of the person's"
    assert "Not measured: DSC. It compares classes" in text(app)
    assert {"Smaller targets", "Larger targets"} <= set(table(app, "All tests").columns)
    assert "classes" not in title(figure(app))
    asked = open_page("criteria", model="dave2-udacity", criteria="dsc")
    assert "Distance surprise coverage is left out." in text(asked)
    assert "Misclassified" not in table(app, "All tests").columns
    orders = open_page("criteria", model="dave2-udacity", tab="prioritisation")
    assert "accuracy is not defined for these tests" in text(orders)


def test_few_texts_are_shown_since_each_takes_a_row(small_data, open_page):
    app = open_page("criteria", tab="prioritisation", model="textcnn-20newsgroups", data="20newsgroups")
    assert not app.exception
    assert " of 6 tests" in next(one.value for one in app.markdown if one.value.startswith("Misclassified: "))
