"""A pass that was stopped or killed goes on where it was, with the numbers of a pass in one go."""

import multiprocessing
import os
import signal

import numpy as np
import pytest
import torch
from torch import nn

from idc_core import store
from idc_core.errors import CancelledError
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing import batching, rows
from idc_core.tracing.trace import collect

FORK = multiprocessing.get_context("fork")
RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(200, 1, 6, 6)).astype(np.float32)
INPUTS[:, 0, 0, 0] = np.arange(200)
"""Each input says its number in its first pixel."""

LAYERS = ["conv", "out"]


class Counting(nn.Module):
    """Notes the numbers of the inputs that it reads."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.out = nn.Conv2d(1, 4, 3), nn.Linear(64, 3)
        self.seen = []

    def forward(self, x):
        self.seen += x[:, 0, 0, 0].int().tolist()
        return self.out(torch.relu(self.conv(x)).flatten(1))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    monkeypatch.setattr(batching, "_must_run_alone", lambda *_: False)  # which runs some inputs beside one another
    return tmp_path


@pytest.fixture
def pieces():
    return store.Unfinished(store.place("trace", ("net", "data")), "pass")


@pytest.fixture
def at_once(monkeypatch):
    """Have a piece kept after each batch."""
    monkeypatch.setattr(rows, "_PIECE", 0)


def run(model, inputs, pieces=None, batch_size=None, stop=None):
    def on_progress(done, total, label):
        return stop is None or done < stop

    settings = RelevanceSettings()
    return collect(model, inputs, LAYERS, settings, batch_size=batch_size, unfinished=pieces, on_progress=on_progress)


def assert_equal(found, expected):
    assert found.shapes == expected.shapes
    assert np.array_equal(found.scores, expected.scores)
    for layer in LAYERS:
        assert np.array_equal(found.activations[layer], expected.activations[layer])
        assert np.array_equal(found.relevance[layer], expected.relevance[layer])


def kept_files(home):
    return sorted((home / "unfinished").glob("*.safetensors"))


@pytest.mark.parametrize(("inputs", "batch_size"), [(INPUTS, 8), (INPUTS[:90], None)])
def test_a_stopped_pass_goes_on_and_gives_the_same(pieces, monkeypatch, inputs, batch_size):
    monkeypatch.setattr(batching, "inputs_at_once", lambda *_: 7)  # of few inputs the first is then a batch of its own
    expected = run(Counting(), inputs, batch_size=batch_size)
    first, second, third = Counting(), Counting(), Counting()
    with pytest.raises(CancelledError):
        run(first, inputs, pieces, batch_size, stop=40)
    with pytest.raises(CancelledError):
        run(second, inputs, pieces, batch_size, stop=60)
    assert_equal(run(third, inputs, pieces, batch_size), expected)
    # The first input of each start is tried before it is run in its batch.
    seen = [number for model in (first, second, third) for number in sorted(set(model.seen))]
    assert seen == list(range(len(inputs)))
    assert all(len(model.seen) <= len(set(model.seen)) + 1 for model in (first, second, third))


def test_a_killed_pass_loses_one_piece_at_most(pieces, monkeypatch):
    monkeypatch.setattr(rows, "_PIECE", 1_000)  # bytes of two batches

    def killed():
        torch.set_num_threads(1)  # the threads of this process are not there after a fork, and would be waited for

        def on_progress(done, total, label):
            if done >= 100:
                os.kill(os.getpid(), signal.SIGKILL)

        settings = RelevanceSettings()
        collect(Counting(), INPUTS, LAYERS, settings, batch_size=8, unfinished=pieces, on_progress=on_progress)

    child = FORK.Process(target=killed)
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    model = Counting()
    assert_equal(run(model, INPUTS, pieces, 8), run(Counting(), INPUTS, batch_size=8))
    assert min(model.seen) == 96


def test_a_damaged_piece_is_made_again(home, pieces, at_once):
    with pytest.raises(CancelledError):
        run(Counting(), INPUTS, pieces, 8, stop=80)
    content = bytearray(pieces._path(40).read_bytes())
    content[-1] ^= 1
    pieces._path(40).write_bytes(content)
    model = Counting()
    assert_equal(run(model, INPUTS, pieces, 8), run(Counting(), INPUTS, batch_size=8))
    assert min(model.seen) == 40


def test_a_pass_goes_on_where_nothing_can_be_kept(home, pieces, at_once, caplog):
    (home / "unfinished").write_text("a file where the folder would be")
    assert_equal(run(Counting(), INPUTS, pieces, 8), run(Counting(), INPUTS, batch_size=8))
    assert caplog.text.count("cannot be kept") == 1


def test_pieces_go_when_the_result_is_kept_or_made_anew(home, pieces, at_once):
    def make():
        run(Counting(), INPUTS[:16], pieces, 8)
        assert len(kept_files(home)) == 2
        return "result"

    assert store.kept("trace", ("net", "data"), make) == "result"
    assert kept_files(home) == []
    with pytest.raises(CancelledError):
        run(Counting(), INPUTS, pieces, 8, stop=40)
    model = Counting()
    store.kept("trace", ("net", "data"), lambda: run(model, INPUTS, pieces, 8), fresh=True)
    assert min(model.seen) == 0


def test_a_clean_up_removes_pieces_of_finished_results_alone(home, pieces, at_once):
    other = store.Unfinished(store.place("trace", ("net", "other data")), "pass")
    store.kept("trace", ("net", "data"), lambda: "result")
    for one in (pieces, other):
        run(Counting(), INPUTS[:8], one, 8)
    store.clean()
    assert kept_files(home) == [other._path(0)]


def test_pieces_have_the_limit_of_kept_results(home, pieces, at_once):
    (home / "config.toml").write_text("[limits]\nstore_mib = 1\n")
    other = store.Unfinished(store.place("trace", ("net", "other data")), "pass")
    other.keep(0, np.zeros(1 << 17))
    for start in (0, 1):
        pieces.keep(start, np.zeros(1 << 17))
    assert kept_files(home) == [pieces._path(0), pieces._path(1)]
