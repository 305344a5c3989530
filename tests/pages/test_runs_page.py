"""Runs: what was finished on other pages is listed, filtered, named, compared, and opened again."""

import numpy as np
import pytest

from idc_core import store
from idc_core.cli import main
from idc_core.runs import find_runs
from idc_core.work import analysis as work
from studio.runs.opening import page_of, parameters_of
from studio.state import visitor
from tests.pages.reading import charts, forget_all, open_page, text
from tests.pages.test_every_control import CHOICES, TEXTS, elements, kind, wrong

MADE = {
    "coverage": "analysis",
    "testsets": "comparisons",
    "adversarial": "attack-runs",
    "differential": "searches",
    "hypotheses": "inspections",
    "classes": "class-errors",
}


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory):
    """A home of its own, in which every page was opened once, and Coverage with other settings."""
    forget_all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDC_HOME", str(tmp_path_factory.mktemp("home")))
        assert "No runs yet" in text(open_page("runs"))
        for name in MADE:
            assert not open_page(name).exception
        open_page("coverage", m="3", data="digits", classes="1")
        open_page("coverage", m="3", k="2")
        open_page("adversarial", attack="bim", attacked="32")
        yield
        forget_all()


def runs(**wanted):
    return find_runs(**wanted)


def click(app, key):
    return next(one for one in app.button if one.key == key).click().run()


def rows(app, column="kind"):
    return next(table.value for table in app.dataframe if column in table.value.columns)


def test_every_kind_of_run_is_listed_with_the_address_that_opens_it():
    assert {run.facts.kind for run in runs()} == set(MADE.values())
    app = open_page("runs")
    assert not app.exception
    assert len(rows(app)) == len(runs())
    assert f"{len(runs())} runs of 1 network" in text(app)
    for name, made in MADE.items():
        for run in runs(kind=made):
            assert page_of(run) == name
            assert run.main is not None, run
            assert run.is_current
    (bim,) = runs(kind="attack-runs", text="bim")
    assert parameters_of(bim) == {"model": "lenet5-digits", "data": "digits", "layer": "fc2", "m": "6"} | {
        "attack": "bim",
        "attacked": "32",
    }
    (two,) = (run for run in runs(kind="analysis") if parameters_of(run).get("k") == "2")
    assert two.facts.scores["cells"] == 8
    # A class filter is no other analysis.
    assert len([run for run in runs(kind="analysis") if run.facts.settings["m"] == 3]) == 2


@pytest.mark.parametrize("tab", ["all", "compare", "versions"])
def test_every_control_says_what_it_does(tab):
    controls = [one for one in elements(open_page("runs", tab=tab)) if kind(one) in (*CHOICES, *TEXTS)]
    assert controls
    assert not {f"{one.label}: {lack}" for one in controls if (lack := wrong(one, untouched=True))}


def test_filters_keep_what_fits():
    app = open_page("runs", **{"run-kind": "attack-runs"})
    assert set(rows(app)["kind"]) == {"Attack"}
    assert len(rows(app)) == 2
    app.text_input(key="run-text").set_value("bim").run()
    assert len(rows(app)) == 1
    app.text_input(key="run-text").set_value("nowhere").run()
    assert "No run passes" in text(app)


def test_a_run_is_opened_as_its_address_says():
    (bim,) = runs(kind="attack-runs", text="bim")
    count = len(runs())
    # Another m was chosen before: the run's own holds.
    app = open_page("runs", run=bim.id, m="9")
    click(app, "run-open")
    assert not app.exception
    assert app.title[0].value == "What do attacks reveal that the tests do not?"
    assert "m = 6 · 540 tests" in text(app)
    assert app.selectbox(key="attack").value == "bim"
    assert len(runs()) == count, "nothing is computed anew"


def test_a_run_is_named_pinned_and_deleted():
    open_page("coverage", m="2")
    run = runs()[0]
    app = open_page("runs", run=run.id)
    app.text_input(key=f"run-name-{run.id}").set_value("*Release* 1").run()
    click(app, "run-rename")
    click(app, "run-pin")
    assert store.marks()[run.id] == store.Mark("*Release* 1", True)
    assert [one.id for one in runs(text="release")] == [run.id]
    assert "1 pinned run" in text(app)
    click(app, "run-delete")
    click(app, "run-really")
    assert not app.exception
    assert run.id not in {one.id for one in runs()}
    assert run.id not in store.marks()


def test_settings_come_first_then_figures_then_cells():
    first, second = (run for run in runs(kind="analysis") if run.facts.settings["m"] in (6, 12))
    app = open_page("runs", tab="compare", **{"compared-runs": f"{first.id},{second.id}"})
    assert not app.exception
    heads = [one.value for one in app.header]
    assert heads == ["Settings that differ", "Results", "Cells gained and lost"]
    assert rows(app, "setting")["setting"].tolist() == ["m"]
    assert "IDC" in rows(app, "figure")["figure"].tolist()
    (chart,) = charts(app)
    assert len(chart["data"]) == 4
    assert chart["layout"]["yaxis"]["ticktext"] == ["A", "B"]
    # The first six neurons are the same, and so are the tests: no cell over them is gained or lost.
    assert "**Reached by A and B: " in text(app)
    assert "B alone reaches 0, A alone 0. Compared over" in text(app)
    other = next(run for run in runs(kind="analysis") if parameters_of(run).get("k") == "2")
    third = next(run for run in runs(kind="analysis") if run.facts.settings["m"] == 3 and run.id != other.id)
    app = open_page("runs", tab="compare", **{"compared-runs": f"{third.id},{other.id}"})
    assert "clusters of neuron" in text(app)


def test_versions_of_a_network_are_followed():
    app = open_page("runs", tab="versions")
    assert "Only one version" in text(app)
    run = next(run for run in runs(kind="analysis") if run.facts.settings["m"] == 6)
    path = store.results_folder() / f"{run.id}{store.ENDING}"
    facts, value = store.read_facts(path), store.read(path)
    facts.settings["network_fingerprint"] = "f" * 16
    facts.scores["idc"] = 0.5
    other = store.results_folder() / f"{'f' * 32}{store.ENDING}"
    store.keep(other, value, facts)
    app = open_page("runs", tab="versions")
    assert not app.exception
    assert "50.0 %" in " ".join(rows(app, "version")["IDC"])
    assert len(app.get("plotly_chart")) == 1
    other.unlink()


def test_the_command_line_and_the_dashboard_analyse_the_same_once(monkeypatch, capsys):
    computed = []
    analyze = work.analyze
    monkeypatch.setattr(work, "analyze", lambda *given, **more: (computed.append(given[4]), analyze(*given, **more))[1])
    assert main(["analyze", "--m", "5", "--layer", "fc1"]) == 0
    assert computed == [5]
    app = open_page("coverage", m="5", layer="fc1")
    assert not app.exception
    assert computed == [5], "the dashboard found it"
    open_page("coverage", m="4", layer="fc1")
    assert main(["analyze", "--m", "4", "--layer", "fc1"]) == 0
    assert computed == [5, 4], "the command line found it"
    assert "made before and is kept" in capsys.readouterr().out
    made = {run.facts.settings["m"]: run for run in runs(kind="analysis", text="fc1")}
    first = store.read(store.results_folder() / f"{made[4].id}{store.ENDING}")
    assert main(["analyze", "--m", "4", "--layer", "fc1", "--fresh"]) == 0
    assert computed == [5, 4, 4]
    again = store.read(store.results_folder() / f"{made[4].id}{store.ENDING}")
    assert np.array_equal(first.assignments, again.assignments)
    # What the dashboard cannot show has no address.
    assert main(["analyze", "--m", "2", "--original"]) == 0
    newest = next(run for run in runs(kind="analysis") if run.facts.settings.get("original"))
    assert page_of(newest) == ""


def test_runs_of_others_uploads_are_not_listed(monkeypatch):
    count = len(rows(open_page("runs")))
    run = next(run for run in runs(kind="analysis") if run.facts.settings["m"] == 6)
    path = store.results_folder() / f"{run.id}{store.ENDING}"
    facts, value = store.read_facts(path), store.read(path)
    for place, changes in enumerate(({"network": "theirs"}, {"tests": "theirs"}, {"models": ["theirs"]})):
        changed = facts.settings | changes
        store.keep(
            store.results_folder() / f"{place:032x}{store.ENDING}",
            value,
            type(facts)(**vars(facts) | {"settings": changed}),
        )
    # Of something that is not here any more, at this computer; from elsewhere whose it was cannot be known.
    assert len(rows(open_page("runs"))) == count + 3
    monkeypatch.setattr(visitor, "is_local", lambda: False)
    assert len(rows(open_page("runs"))) == count
    monkeypatch.undo()
    for place in range(3):
        store.delete(f"{place:032x}")
