"""The bench: a criterion from a file beside kept records, its laws, its card, and the documents made of records."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from idc_core.cli import main
from idc_core.coverage import CRITERIA
from idc_core.datasets import load_dataset
from idc_core.errors import DataError, SettingError, SetupError
from idc_core.lrp.rules import RelevanceSettings
from idc_core.models import load_model
from idc_core.opening.criterion_file import open_criterion
from idc_core.tracing.trace import collect
from idc_core.work import Source
from idc_core.work.local import ByBlocks
from idc_core.work.worth import study_networks
from idc_core.worth import networks
from idc_core.worth import published as module
from idc_core.worth.documents import bench_document, result_document
from idc_core.worth.laws import check_laws
from idc_core.worth.networks import PoolSettings, study_network
from idc_core.worth.published import joined, publish, published
from idc_core.worth.study import StudySettings

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "docs" / "examples" / "criteria").glob("*.py"))
TOY = ROOT / "tests" / "registries" / "toys" / "criterion.py"
SMALL = ("--limit", "120", "--limit-train", "200")
NETWORK = "lenet1-digits"


@pytest.fixture
def own_file(tmp_path, monkeypatch):
    """A file with a criterion of its own name, and a folder for what is finished."""
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))
    file = tmp_path / "mine.py"
    file.write_text(TOY.read_text().replace('"toy"', '"mine"'))
    yield file
    CRITERIA.pop("mine", None)


def left_out(*_, **__):
    """Stands for corruptions, which have tests of their own."""
    raise DataError("left out here")


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """A small study of one network by one yardstick, made once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(networks, "YARDSTICKS", {"kinds of mistakes": networks.YARDSTICKS["kinds of mistakes"]})
        patch.setattr(networks, "corrupted_gains", left_out)
        patch.setenv("IDC_HOME", str(tmp_path_factory.mktemp("home")))
        settings = StudySettings(suites=8, draws=20, orders=2)
        yield study_network(NETWORK, PoolSettings(300, 200), settings, criteria=["idc", "nc"])


@pytest.mark.slow
def test_the_command_prints_laws_and_rows_and_writes_the_card(own_file, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(networks, "corrupted_gains", left_out)
    monkeypatch.setattr(module, "FOLDER", tmp_path / "none")
    for ending in ("json", "md"):
        assert main(["benchmark", str(own_file), "--models", NETWORK, *SMALL, "--card", f"{tmp_path}/c.{ending}"]) == 0
        CRITERIA.pop("mine")
    told = capsys.readouterr().out
    assert "> mine" in told
    assert "NOT KEPT" not in told
    card = json.loads((tmp_path / "c.json").read_text())
    assert card["criterion"] == "mine"
    assert card["networks"] == [NETWORK]
    assert all(law["kept"] for law in card["laws"])
    assert (tmp_path / "c.md").read_text().startswith("# Silent neuron coverage")


def test_a_file_registers_one_criterion(own_file, tmp_path):
    name, code = open_criterion(own_file)
    assert (name, len(code)) == ("mine", 16)
    with pytest.raises(SettingError, match="'mine' is taken"):
        open_criterion(own_file)
    broken = tmp_path / "broken.py"
    broken.write_text(own_file.read_text().replace('"mine"', '"other"') + "\n1 / 0\n")
    with pytest.raises(SetupError, match=r"broken.py, line \d+.*ZeroDivisionError"):
        open_criterion(broken)
    assert "other" not in CRITERIA
    broken.write_text("x = 1\n")
    with pytest.raises(SetupError, match="registers 0 criteria"):
        open_criterion(broken)


@pytest.mark.parametrize(
    "name", ["nlc", *(pytest.param(name, marks=pytest.mark.slow) for name in ("idc", "cc", "dsc"))]
)
def test_shipped_criteria_keep_the_laws_that_are_for_them(name):
    laws = check_laws(name)
    assert [law.says for law in laws if law.kept is False] == []
    left_out = CRITERIA[name].card.can_fall + CRITERIA[name].card.order_matters
    assert sum(law.kept is None for law in laws) == left_out


@pytest.mark.slow
def test_a_broken_law_is_told(own_file, monkeypatch):
    open_criterion(own_file)
    kind = CRITERIA["mine"]

    def flip(self, batch):
        self._hit ^= self._profile(batch).dense.any(0)

    def refuse(self, other):
        raise KeyError("seen")

    monkeypatch.setattr(kind, "_count", flip)
    monkeypatch.setattr(kind, "merge", refuse)
    broken = {law.says: law.why for law in check_laws("mine") if law.kept is False}
    assert "Its score does not fall when tests are added." in broken
    assert "KeyError" in broken["Merging does not depend on who merges."]
    assert "A profile counts nothing." not in broken


def test_a_study_is_kept_and_found_again(record, monkeypatch):
    monkeypatch.setattr(networks, "study", None)  # it would be called to make it again
    settings = StudySettings(suites=8, draws=20, orders=2)
    assert study_network(NETWORK, PoolSettings(300, 200), settings, criteria=["idc", "nc"]) == record
    assert set(record["yardsticks"]) == {"kinds of mistakes"}
    assert record["missing"]["corruptions"] == "left out here"
    assert record["budgets"] == [3, 9, 15]


def test_an_engine_studies_network_by_network(record, monkeypatch):
    monkeypatch.setattr(networks, "study", None)  # finished
    settings = StudySettings(suites=8, draws=20, orders=2)
    monkeypatch.setattr(
        "idc_core.work.worth.study_network",
        lambda name, pool, how, **more: study_network(name, pool, how, criteria=["idc", "nc"]),
    )
    source = Source(NETWORK, "digits", "test", 1)
    with ByBlocks() as executor:
        found = study_networks(executor, source, [NETWORK], PoolSettings(300, 200), settings)
    assert found == {NETWORK: record}


def test_rankings_join_on_one_pool_only(record, tmp_path):
    other = json.loads(json.dumps(record))
    for held in other["yardsticks"].values():
        held["rankings"] = {"mine": held["rankings"]["nc"]}
    other["ranges"] = {"mine": record["ranges"]["nc"]}
    publish({NETWORK: record}, tmp_path)
    publish({NETWORK: other}, tmp_path)
    (whole,) = published(tmp_path).values()
    assert set(whole["yardsticks"]["kinds of mistakes"]["rankings"]) == {"idc", "nc", "size", "mine"}
    assert whole == joined(record, other)
    other["prints"] = ["another", "train", "pool"]
    with pytest.raises(DataError, match="other fingerprints"):
        joined(record, other)
    publish({NETWORK: other}, tmp_path)
    assert published(tmp_path) == {NETWORK: other}


def test_documents_say_that_few_networks_are_too_few(record):
    document = result_document({NETWORK: record})
    assert "too few for a headline" in document
    assert f"| {NETWORK} | digits | 300 | 200 |" in document
    assert all(len(line) <= 125 or line.startswith("|") for line in document.splitlines())
    assert "IDC" in bench_document({NETWORK: record})


def test_the_documents_are_those_of_the_kept_records():
    records, docs = published(), ROOT / "docs"
    assert records
    assert (docs / "results" / "worth.md").read_text() == result_document(records)
    assert (docs / "BENCHMARK.md").read_text() == bench_document(records)


def test_the_experiment_has_a_row_a_yardstick_budget_and_ranking(record):
    from idc_core.cli.experiments.worth import records_of

    rows = records_of({NETWORK: record})
    assert len(rows) == 3 * 2  # budgets, rankings; size selects nothing
    row = next(
        row for row in rows if (row["yardstick"], row["budget"], row["ranking"]) == ("kinds of mistakes", "5 %", "nc")
    )
    held = record["yardsticks"]["kinds of mistakes"]
    assert row["found"] == held["rankings"]["nc"]["found"][2]
    assert row["more"] == pytest.approx(row["found"] - held["random"][2][0])
    assert np.isfinite(row["p_holm"])


@pytest.mark.slow
def test_the_experiment_prints_and_writes_its_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    monkeypatch.setattr(networks, "YARDSTICKS", {"kinds of mistakes": networks.YARDSTICKS["kinds of mistakes"]})
    monkeypatch.setattr(networks, "corrupted_gains", left_out)
    file = tmp_path / "worth.csv"
    arguments = ["experiment", "worth", "--models", NETWORK, "--limit", "300", "--limit-train", "200"]
    assert main([*arguments, "--out", str(file)]) == 0
    told = capsys.readouterr().out
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert {row["budget"] for row in rows} == {"1 %", "3 %", "5 %"}
    assert set(CRITERIA) | {"deepgini", "margin", "lsa", "diversity"} <= {row["ranking"] for row in rows}
    assert len(told.splitlines()) == len(rows) + 3
    assert main([*arguments, "--engine", "local"]) == 0
    assert capsys.readouterr().out.splitlines() == told.splitlines()[:-2]


def test_engines_and_published_rows_are_for_worth_alone(capsys):
    assert main(["experiment", "rq2", "--publish"]) == 2
    assert "are for worth" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "file", sorted((ROOT / "docs" / "examples" / "criteria").glob("*.py")), ids=lambda file: file.stem
)
def test_criteria_of_the_examples_keep_the_laws(file):
    name, _ = open_criterion(file)
    try:
        assert [law for law in check_laws(name) if law.kept is False] == []
    finally:
        del CRITERIA[name]


@pytest.mark.slow
def test_a_path_holds_the_fewest_neurons_that_carry_the_relevance():
    name, _ = open_criterion(ROOT / "docs" / "examples" / "criteria" / "npc.py")
    try:
        model, tests = load_model("lenet4-digits"), load_dataset("digits", "test", 12)
        paths, predicted, _ = CRITERIA[name](model, model.card.layers)._critical(tests, None)
        traces = collect(model, tests, model.card.layers, RelevanceSettings("epsilon"))
        assert predicted.tolist() == traces.predictions.tolist()
        for layer, path in zip(model.card.layers, paths, strict=True):
            for relevance, mine in zip(np.maximum(traces.relevance[layer], 0).astype(float), path, strict=True):
                chosen = []
                while sum(relevance[chosen]) < 0.7 * relevance.sum() - 1e-12:
                    chosen.append(max(set(range(len(relevance))) - set(chosen), key=lambda one: relevance[one]))
                assert np.flatnonzero(mine).tolist() == sorted(chosen)
    finally:
        del CRITERIA[name]
