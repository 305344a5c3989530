"""The Hypotheses page over the epochs of training: what it says is what the engine finds at every checkpoint."""

import dataclasses
import json

import pytest
from streamlit.testing.v1 import AppTest

from idc_core.datasets import load_dataset
from idc_core.inspection import inspect, library
from idc_core.inspection.epochs import scores_by_epoch
from idc_core.inspection.result import grid
from idc_core.models import MODELS, checkpoints
from idc_core.models.checkpoints import SHIPPED_FOLDER, all_series, kept_folder, read_series
from studio.hypotheses import epochs
from studio.jobs import jobs
from studio.jobs.jobs import shelf
from tests.pages.reading import forget_all, open_page

NAME = "lenet5-digits"


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))


@pytest.fixture
def none_shipped(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SHIPPED_FOLDER", tmp_path / "none")


def opened(**parameters) -> AppTest:
    app = open_page("hypotheses", **{"families": "labels", "over-epochs": "true", **parameters})
    assert not app.exception
    return app


def text(app) -> str:
    return "\n".join(str(element.value) for kind in (app.markdown, app.caption, app.code) for element in kind)


def charts(app) -> dict[str, dict]:
    specs = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    return {spec["layout"]["title"]["text"].replace("<br>", " "): spec for spec in specs}


def by_epoch(app) -> dict:
    return charts(app)["Strongest score of every hypothesis in fc2, by epoch"]


@pytest.fixture(scope="module")
def found():
    """Scores of the shipped digits network, one inspection per epoch."""
    data = load_dataset("digits", "test")
    (series,) = all_series(NAME)
    grids = {}
    for epoch in series.epochs:
        run = inspect({"m": series.open(epoch)}, data, library(data, ["labels"]), layers=["fc2"])
        grids[epoch] = grid(run, "pearson", "m", "fc2")
    return scores_by_epoch(grids)


@pytest.mark.rare
def test_finding_and_lines_are_what_the_engine_finds(found):
    app = opened()
    first = int(found.most_gained()[0])
    better = int((found.clear & (found.gain > 0)).sum())
    said = text(app)
    assert f"**Clearly raised by training: {better} of 10 strongest scores" in said
    example = f"Of “{found.names[first]}” it went from {found.strongest[0, first]:.2f}"
    assert (example in said) == found.clear[first]
    spec = by_epoch(app)
    lines = {line["name"]: line for line in spec["data"] if "name" in line}
    line = lines[found.names[first]]
    assert line["y"] == pytest.approx(found.strongest[:, first].tolist(), abs=1e-6)
    assert line["customdata"] == [[first, int(unit)] for unit in found.unit[:, first]]
    below = spec["layout"]["xaxis"]["ticktext"]
    assert [tick.split("<br>")[0] for tick in below] == ["0", "1", "2", "4", "8", "16", "20"]
    assert below[-1].endswith("98.3 % right")
    assert any(button.key == "data-by-epoch" for button in app.get("download_button"))
    assert not [button for button in app.button if button.key == "train-epochs"]


def test_the_unit_that_is_looked_at_is_followed(found):
    unit = int(found.unit[-1, 3])
    app = opened(neuron=str(unit), hypothesis="class 3")
    spec = charts(app)[f"Scores of neuron {unit} of fc2, by epoch"]
    line = next(line for line in spec["data"] if line.get("name") == found.names[3])
    assert line["y"] == pytest.approx(found.score[:, 3, unit].tolist(), abs=1e-6)


def test_nothing_is_computed_before_it_is_asked_for():
    forget_all()
    app = opened(**{"over-epochs": "false"}, tab="epochs")
    assert not shelf()._jobs["epochs"]
    assert "When does a neuron come to respond" in text(app)
    assert not any("by epoch" in title for title in charts(app))


@pytest.mark.usefixtures("none_shipped")
def test_training_again_keeps_epochs_and_shows_them(monkeypatch):
    entry = MODELS[NAME]
    short = dataclasses.replace(entry.recipe, epochs=2, batch=256)
    monkeypatch.setitem(MODELS, NAME, dataclasses.replace(entry, recipe=short))
    app = opened()
    assert "No weights between the 2 epochs of this network's training were kept." in text(app)
    assert by_epoch(app)["layout"]["xaxis"]["ticktext"][0] == "0"
    app.button(key="train-epochs").click().run()
    assert not app.exception
    assert not app.error
    series = read_series(NAME, kept_folder(NAME))
    assert (series.epochs, series.complete) == ((0, 1, 2), True)
    assert "These epochs are of a repeat of the training" in text(app)
    assert len(by_epoch(app)["layout"]["xaxis"]["ticktext"]) == 3
    done = list(shelf()._jobs["trainings"].values())
    app.run()
    assert list(shelf()._jobs["trainings"].values()) == done, "never twice"


def keep_some(*stems):
    folder = kept_folder(NAME)
    folder.mkdir(parents=True)
    for file in (SHIPPED_FOLDER / NAME).iterdir():
        if file.stem in stems:
            (folder / file.name).write_bytes(file.read_bytes())
    return folder


@pytest.mark.usefixtures("none_shipped")
def test_a_stopped_training_says_what_is_there(monkeypatch):
    keep_some("epoch-000", "epoch-001", "epoch-002")
    monkeypatch.setattr(epochs, "_QUICK_S", 0)
    app = opened()
    assert "A training was stopped after epoch 2 of 20; the epochs after it are missing." in text(app)
    assert f"python -m idc_core train {NAME} --checkpoints" in text(app)
    assert len(by_epoch(app)["layout"]["xaxis"]["ticktext"]) == 4, "and the network as it is"


@pytest.mark.usefixtures("none_shipped")
def test_damaged_checkpoints_are_an_error_in_words():
    folder = keep_some("epoch-000", "epoch-001", "epoch-020")
    (folder / "epoch-001.json").write_text("{", encoding="utf-8")
    app = opened()
    assert "epoch-001.json cannot be read" in app.error[0].value
    assert app.main.markdown[0].value.startswith("**Significant "), "the rest of the page is there"


def test_stopping_shows_the_epochs_that_were_looked_at(monkeypatch):
    import streamlit as st

    opened()
    done = shelf()._jobs["epochs"]
    done.pop(next(key for key in done if key[1] == read_series(NAME, SHIPPED_FOLDER / NAME).open(2).card.fingerprint))
    real = jobs.Waiting.get

    def halted(self, kind, *rest, **more):
        st.session_state[jobs.HALTED] = kind.name == "epochs"
        return real(self, kind, *rest, **more)

    monkeypatch.setattr(jobs.Waiting, "get", halted)
    app = opened()
    assert "Stopped: 1 epoch of 7 not inspected." in text(app)
    assert len(by_epoch(app)["layout"]["xaxis"]["ticktext"]) == 6
