"""The check of a network: what it returns, what it asks of the data, and how the command prints it."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core.analysis import network_check
from idc_core.analysis.checking import digests as comparing
from idc_core.analysis.checking.detectors import DETECTORS
from idc_core.analysis.checking.digests import digests
from idc_core.analysis.checking.evidence import _FEWEST, MOST, VALUES, drawn
from idc_core.analysis.checking.layers import check_layers
from idc_core.analysis.network_check import check_network
from idc_core.cli import main
from idc_core.datasets import load_dataset
from idc_core.errors import CancelledError


def test_facts_layers_and_trials_of_a_network():
    found = check_network("lenet4-digits")
    assert (found.network, found.data, found.task, found.parameters) == (
        "lenet4-digits",
        "digits",
        "classification",
        69_362,
    )
    assert (found.input_shape, found.input_type, found.input_range) == ((1, 28, 28), "float32", (0.0, 1.0))
    assert [(one.split, one.measure, one.inputs, one.of) for one in found.quality] == [
        ("train", "accuracy", 500, 1257), ("test", "accuracy", 500, 540),
    ]  # fmt: skip
    assert found.quality[1].value > 0.95
    assert [(one.name, one.shape, one.stopped) for one in found.layers][:2] == [
        ("conv1", (6, 28, 28), ""), ("pool1", (6, 14, 14), ""),
    ]  # fmt: skip
    data, model = load_dataset("digits", "test"), idc.load_model("lenet4-digits")
    positions = [one.position for one in found.trials]
    assert len(positions) == 12
    assert positions == sorted(set(positions))
    with torch.no_grad():
        shares = model(torch.tensor(data.inputs[positions])).softmax(1)
    assert [one.target for one in found.trials] == [str(target) for target in data.targets[positions]]
    assert [one.prediction for one in found.trials] == [str(one) for one in shares.argmax(1).tolist()]
    np.testing.assert_allclose([one.confidence for one in found.trials], shares.max(1).values, rtol=1e-5)
    assert check_network("lenet4-digits") == found


class Branches(nn.Module):
    """Relevance passes behind `left`, but not behind `first` and `right`."""

    def __init__(self):
        super().__init__()
        self.first, self.left, self.right, self.last = (nn.Linear(4, 4) for _ in range(4))
        self.unused = nn.Linear(4, 4)

    def forward(self, inputs):
        """Return scores."""
        seen = self.first(inputs)
        self.unused(seen)
        return self.last(self.left(seen) + torch.cumprod(self.right(seen), 1))


def test_relevance_is_told_layer_by_layer_and_the_operation_named():
    torch.manual_seed(0)
    names = ("first", "left", "right", "unused", "last")
    found = {one.name: one for one in check_layers(Branches(), np.ones((1, 4), np.float32), names, None)}
    assert {one.shape for one in found.values()} == {(4,)}
    assert not found["left"].stopped
    assert not found["last"].stopped
    for name in ("first", "right"):
        assert "Relevance cannot be propagated through cumprod" in found[name].stopped
    assert "do not depend on unused" in found["unused"].stopped


def test_layers_that_relevance_reaches_take_one_pass(monkeypatch):
    passes = []
    real = network_check.check_layers.__globals__["collect"]
    monkeypatch.setitem(
        network_check.check_layers.__globals__, "collect", lambda *given: passes.append(given) or real(*given)
    )
    check_layers(idc.load_model("lenet4-digits"), np.ones((1, 1, 28, 28), np.float32), ("conv1", "fc1", "logits"), None)
    assert len(passes) == 2


class Lazy(np.ndarray):
    """Inputs that notice when more than a part of them is asked for at once."""

    def __getitem__(self, key):
        """Return some inputs as an ordinary array."""
        found = np.asarray(self)[key]
        assert found.shape[0] <= MOST
        return found

    def __array_function__(self, *given, **named):
        """Refuse functions of the whole array."""
        raise AssertionError(given)

    def __array_ufunc__(self, *given, **named):
        """Refuse operations on the whole array."""
        raise AssertionError(given)


@pytest.mark.parametrize("read", [comparing.READ, 1 << 20])
def test_only_parts_of_the_inputs_are_asked_for(monkeypatch, read):
    def lazily(*given, **named):
        data = load_dataset(*given, **named)
        return replace(data, inputs=data.inputs.view(Lazy))

    monkeypatch.setattr(comparing, "READ", read)
    expected = check_network("lenet4-digits")
    monkeypatch.setattr(network_check, "load_dataset", lazily)
    assert check_network("lenet4-digits") == expected


def test_fewer_large_inputs_are_drawn_and_no_more_bytes_read_than_allowed(monkeypatch):
    data = load_dataset("digits", "train")
    assert len(drawn(data)) == len(set(drawn(data).tolist())) == MOST
    large = replace(data, inputs=np.lib.stride_tricks.as_strided(data.inputs, (1257, VALUES // 100), (0, 0)))
    assert len(drawn(large)) == 100
    huge = replace(data, inputs=np.lib.stride_tricks.as_strided(data.inputs, (1257, VALUES), (0, 0)))
    assert len(drawn(huge)) == _FEWEST
    monkeypatch.setattr(comparing, "READ", 300 * data.inputs[:1].nbytes)
    assert digests(data).read == 300
    assert len(digests(data).first) == 300


def test_a_regression_has_errors_and_no_confidence():
    rows = np.random.default_rng(0).normal(0, 1, (40, 3)).astype(np.float32)
    idc.dataset("tried-data")(lambda split: (rows + (split == "test"), rows.sum(1)))

    def build():
        net = nn.Sequential(nn.Linear(3, 1))
        with torch.no_grad():
            net[0].weight[:], net[0].bias[:] = 1, -3
        return net

    idc.network("tried", data="tried-data")(build)
    found = check_network("tried")
    assert found.quality[1].measure == "RMSE"
    assert found.quality[1].value == pytest.approx(0, abs=1e-5)
    assert {one.confidence for one in found.trials} == {None}
    assert "class-order" not in {one.kind for one in found.mistakes}


def test_it_can_be_stopped_while_it_looks_for_mistakes():
    with pytest.raises(CancelledError, match="looking for mistakes"):
        check_network("lenet4-digits", on_progress=lambda done, total, label: "mistakes" not in label)


def test_every_detector_says_what_it_looks_for():
    for name, one in DETECTORS.items():
        assert one.name == name
        assert one.label[0].islower()


def test_the_command_prints_tables_and_writes_json(capsys, tmp_path):
    def build():
        torch.manual_seed(0)
        return Branches()

    idc.dataset("tried-data", class_names=tuple("abcd"))(lambda split: (np.eye(4).repeat(5, 0), np.arange(20) // 5))
    idc.network("tried", data="tried-data", layers=("first", "left", "right", "last"))(build)
    path = tmp_path / "check.json"
    assert main(["check-network", "--model", "tried", "--json", str(path)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^first +4 +no \(1\)$", out, re.MULTILINE)
    assert re.search(r"^left +4 +yes$", out, re.MULTILINE)
    assert re.search(r"^\(1\) Relevance cannot be propagated through cumprod", out, re.MULTILINE)
    assert re.search(r"^TEST +TARGET +PREDICTION +CONFIDENCE$", out, re.MULTILINE)
    assert "- 20 of 20 tests are training inputs, too: test 0 is training input 0" in out
    content = json.loads(path.read_text())
    assert content["layers"][0]["shape"] == [4]
    assert {one["kind"] for one in content["mistakes"]} >= {"leak", "duplicates"}


def test_a_correct_network_is_said_to_have_none(capsys):
    assert main(["check-network", "--model", "lenet4-digits"]) == 0
    assert capsys.readouterr().out.endswith("LIKELY MISTAKES\n- none\n")
