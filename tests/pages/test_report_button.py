"""The button that makes a report: the files that the command line writes, Stop, and commands that cannot be."""

import shlex

import pytest
import torch

import idc_core as idc
from idc_core.cli import main
from idc_core.datasets import DATASETS
from idc_core.models import MODELS
from idc_core.opening.live import enter_live
from idc_core.store.reports import REPORTS
from studio.jobs import jobs
from studio.jobs.results import open_view
from studio.shell import search
from studio.state.setup import parse
from studio.widgets import report
from tests.pages.reading import forget_all, text

SETUP = {"layer": "fc1", "m": "3", "k": "3", "zeros": "dropped", "classes": "3,8"}
SETUP |= {"predicted": "3,5,8", "answers": "right", "confidence": "0.5to1", "without": "label,ambiguous"}


def press(app):
    return next(button for button in app.button if button.label == "Make report").click().run()


def first_difference(one, other):
    """Return what is around the first place where two files differ: pytest's comparison of such takes half an hour."""
    if one == other:
        return ()
    place = next(place for place, (a, b) in enumerate(zip(one + b" ", other + b" ", strict=False)) if a != b)
    return one[place - 200 : place + 100], other[place - 200 : place + 100]


@pytest.mark.slow
@pytest.mark.parametrize("setup", [{}, SETUP], ids=["default", "another"])
def test_it_gives_what_the_command_line_writes(open_page, monkeypatch, tmp_path, setup):
    offered, real = {}, report.st.download_button

    def offer(label, data, *rest, **more):
        offered[label] = data
        return real(label, data, *rest, **more)

    monkeypatch.setattr(report.st, "download_button", offer)
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))  # what other tests have kept, a page may not have read yet
    forget_all()
    app = open_page("overview", **setup)
    assert "Report (HTML)" not in offered
    press(app)
    assert not app.exception
    assert {"Report (HTML)", "Report (JSON)"} <= set(offered)
    monkeypatch.chdir(tmp_path)
    words = shlex.split(report._command_line(open_view(parse(setup))))
    assert main([*words[3:], "--json", "report.json"]) == 0
    assert shlex.join(words).encode() in offered["Report (JSON)"]
    assert offered["Report (JSON)"] == (tmp_path / "report.json").read_bytes()
    assert first_difference(offered["Report (HTML)"], (tmp_path / "report.html").read_bytes()) == ()
    app.query_params["m"] = "2"
    app.run()
    assert not [one for one in app.get("download_button") if one.proto.label == "Report (HTML)"]
    # The search finds it, and leads back to it.
    (found,) = [id for id, one in REPORTS.listed().items() if parse(one.setup) == parse(setup)]
    made = REPORTS.find(found)
    entries: list[dict[str, str]] = []
    with monkeypatch.context() as patch:

        def choose(data, on_chosen_change, **rest):
            entries.extend(data["entries"])
            if not opened:
                on_chosen_change()
                opened.append(found)

        opened: list[str] = []
        patch.setattr(search, "_search", choose)
        patch.setattr(search, "_open", lambda: search._OPENED["report"](found))
        app.run()
    app.run()
    assert not app.exception
    assert {"kind": "report", "label": f"{made.line}, {made.date}", "value": found} in entries
    assert [one for one in app.get("download_button") if one.proto.label == "Report (HTML)"]
    assert first_difference(offered["Report (HTML)"], (tmp_path / "report.html").read_bytes()) == ()


def test_stop_takes_the_wish_back(open_page, monkeypatch):
    app = open_page("overview", layer="fc1")
    monkeypatch.setattr(report, "_command_line", lambda view: "not made yet")
    app.session_state[jobs.STOPPED] = True
    press(app)
    assert not app.exception
    assert "Stopped." in text(app)
    app.run()
    assert not [one for one in app.get("download_button") if one.proto.label == "Report (HTML)"]


def test_stop_is_heard_on_the_overview_that_opens_at_once(open_page, monkeypatch):
    app = open_page("overview")
    monkeypatch.setattr(report, "_command_line", lambda view: "not made yet either")
    app.session_state[jobs.STOPPED] = True
    press(app)
    assert not app.exception
    assert not [one for one in app.get("download_button") if one.proto.label == "Report (HTML)"]
    assert jobs.STOPPED not in app.session_state


def test_a_running_programs_network_has_no_command():
    before = [dict(registry) for registry in (MODELS, DATASETS)]
    arrays = torch.rand(20, 4), torch.arange(20) % 2
    try:
        entry = enter_live(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)), arrays, arrays)
        assert report._command_line(open_view(parse({"model": entry.name, "m": "2"}))) == ""
    finally:
        for registry, kept in zip((MODELS, DATASETS), before, strict=True):
            registry.clear()
            registry.update(kept)
    assert idc.load_model("lenet5-digits").card.name in report._command_line(open_view(parse({})))
