"""Work by blocks in this process, without Ray: the same results as one pass."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from idc_core.base import growing
from idc_core.coverage.streamed import fit_all
from idc_core.datasets import load_dataset
from idc_core.errors import CancelledError, DataError, SettingError
from idc_core.tracing.trace import collect
from idc_core.work import EXECUTORS, Here, Source, source
from idc_core.work.class_errors import count_classes
from idc_core.work.criteria import fit_criteria
from idc_core.work.executor import MOST_BLOCKS, cut
from idc_core.work.traces import trace_inputs
from tests.work.setups import (
    BATCH,
    DATA,
    LAYERS,
    TEST,
    TRAIN,
    assert_equal,
    assert_others_equal,
    criteria,
    in_one_process,
    network,
    on_engine,
)


def test_blocks_are_whole_batches():
    assert cut(10, 4) == [(0, 4), (4, 8), (8, 10)]
    many = cut(10_000_000, 7)
    assert len(many) <= MOST_BLOCKS
    assert all(start % 7 == 0 for start, _ in many)
    assert [end for _, end in many][:-1] == [start for start, _ in many][1:]
    assert many[-1][1] == 10_000_000


@pytest.mark.slow
def test_every_criterion_is_equal_to_one_pass():
    with EXECUTORS["local"].open("") as engine:
        assert_equal(on_engine(engine))


def test_in_one_piece_results_are_those_of_the_functions_bit_for_bit():
    with Here() as executor:
        found = on_engine(executor)
        assert_others_equal(executor)
    expected = in_one_process()
    for one in found:
        mine, other = one._state(), expected[one.card.name, getattr(one, "layer", "")]._state()
        assert one.score == expected[one.card.name, getattr(one, "layer", "")].score
        assert mine.keys() == other.keys()
        assert all(np.array_equal(mine[name], other[name]) for name in mine), one.card.name


def test_in_one_piece_nothing_that_is_there_is_opened_again(monkeypatch):
    monkeypatch.setattr(source, "load_dataset", None)
    data = load_dataset(DATA, "test", 40)
    here, told = Source.here(network().card, network, data), []
    with Here() as executor:
        found = trace_inputs(executor, here, ("fc2",), on_progress=lambda *now: told.append(now[:2]))
    assert np.array_equal(found.activations["fc2"], collect(network(), data, ["fc2"]).activations["fc2"])
    assert told[-1] == (40, 40)


def test_confusion_an_attack_and_an_analysis_are_equal_to_one_pass():
    with EXECUTORS["local"].open("") as engine:
        assert_others_equal(engine)


@pytest.mark.rare
def test_activations_that_wait_for_the_second_round_go_to_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    monkeypatch.setattr(growing, "config", lambda: SimpleNamespace(activations=20_000))
    shelves, made = [], growing.ShelvedRows.__init__
    monkeypatch.setattr(growing.ShelvedRows, "__init__", lambda self: shelves.append(self) or made(self))
    told = []

    def look(*now):
        told.extend((one._held, one._stream is not None) for one in shelves)

    with EXECUTORS["local"].open("") as engine:
        assert_equal(on_engine(engine, ("idc",), on_progress=look), ("idc",))
    held, on_disk = zip(*told, strict=True)
    assert 0 < max(held) <= 20_000
    assert any(on_disk)
    assert not any(one._held or one._stream for one in shelves)  # everything was taken, and no file is open


@pytest.mark.rare
@pytest.mark.parametrize("rows_kept", [100, 1 << 20])
def test_sketches_of_very_many_values_are_merged_to_that_of_one_process(tmp_path, monkeypatch, rows_kept):
    (tmp_path / "config.toml").write_text("[limits]\nsketch_from = 1000\n", encoding="utf-8")
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    monkeypatch.setattr("idc_core.work.criteria._SKETCHED", rows_kept)
    found, expected = criteria(("idc",)), criteria(("idc",))
    with EXECUTORS["local"].open("") as engine:
        fit_criteria(engine, found, TRAIN, batch_size=BATCH)
    fit_all(expected, load_dataset(DATA, "train"), batch_size=BATCH)
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one.important, other.important)
        for mine, theirs in zip(one.clusters, other.clusters, strict=True):
            assert mine.sketch is not None
            assert (mine.n_values, mine.sketch.cells) == (theirs.n_values, theirs.sketch.cells)
            assert mine.silhouettes == pytest.approx(theirs.silhouettes, rel=1e-9)
            assert np.array_equal(mine.counts, theirs.counts)
            np.testing.assert_allclose(mine.centroids, theirs.centroids, rtol=1e-12)
            np.testing.assert_allclose(mine.sketch.centroids, theirs.sketch.centroids, rtol=1e-6)


def test_a_worker_with_other_weights_or_data_ends_the_run():
    asked = replace(TEST, prints=(network().card.fingerprint, "0" * 16))
    with EXECUTORS["local"].open("") as engine, pytest.raises(DataError, match="has another data 'digits'"):
        count_classes(engine, asked, LAYERS)


def test_stop_is_heard_between_blocks():
    seen = []
    with EXECUTORS["local"].open("") as engine, pytest.raises(CancelledError):
        on_engine(engine, ("tknc", "kmnc"), on_progress=lambda done, *_: seen.append(done) or len(seen) < 5)
    assert len(seen) == 5


def test_without_ray_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SettingError, match=r"pip install -r requirements-cluster\.txt"):
        EXECUTORS["ray"].open("")


def test_the_local_engine_takes_no_address():
    with pytest.raises(SettingError, match="takes no address"):
        EXECUTORS["local"].open("10.0.0.1:6379")


def test_an_address_where_no_cluster_answers_is_refused_at_once():
    pytest.importorskip("ray", reason="Ray is not installed: pip install -r requirements-cluster.txt")
    with pytest.raises(SettingError, match=r"No Ray cluster answers at 127\.0\.0\.1:9"):
        EXECUTORS["ray"].open("127.0.0.1:9")
