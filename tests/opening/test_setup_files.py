"""Setup files: a person's own networks and data, from a file outside the project."""

import os
import re

import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core.cli import main
from idc_core.datasets import DATASETS, Items
from idc_core.datasets.formats import DATA_FORMATS, DataFormat
from idc_core.datasets.own_arrays import checked_inputs, checked_targets
from idc_core.errors import DataError, ModelError, SetupError
from idc_core.figures.input_images import pictures, still
from idc_core.lrp.rules import RULES
from idc_core.lrp.scores import scores_of
from idc_core.models import MODELS
from idc_core.models.network_file import NetworkFile, open_network
from idc_core.opening import setup_files
from idc_core.perturbation.inputs import as_pictures

DATA = """
import numpy as np
import torch
from torch import nn
import idc_core as idc

@idc.dataset("own-data")
def read(split):
    rng = np.random.default_rng(split == "test")
    targets = np.arange(60) % 3
    pictures = rng.uniform(0, 0.2, (60, 1, 8, 8))
    for picture, target in zip(pictures, targets):
        picture[:, 2 * target:2 * target + 2] += 0.7
    return pictures, targets
"""
NETWORK = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, seen):
        return seen + torch.relu(self.conv(seen))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, padding=1)
        self.block = Block()
        self.pool = nn.MaxPool2d(2)
        self.drop = nn.Dropout()
        self.hidden = nn.Linear(64, 8)
        self.last = nn.Linear(8, 3)

    def forward(self, pictures):
        seen = self.pool(self.block(torch.relu(self.first(pictures))))
        return {"loss": torch.zeros(()), "logits": self.last(torch.relu(self.hidden(self.drop(seen.flatten(1)))))}

@idc.network("own-net", data="own-data")
def build():
    torch.manual_seed(0)
    return Net().double()
"""


@pytest.fixture(autouse=True)
def closed():
    """Leave the registries as they were."""
    before = dict(MODELS), dict(DATASETS)
    yield
    setup_files._close_all()
    for registry, kept in zip((MODELS, DATASETS), before, strict=True):
        for name in set(registry) - set(kept):
            del registry[name]
    assert (list(MODELS), list(DATASETS)) == tuple(map(list, before))


@pytest.fixture
def write(tmp_path):
    """Write a setup file; each time it is later than before."""
    times = iter(range(1, 100))

    def writing(text, name="my_setup.py"):
        path = tmp_path / name
        path.write_text(text)
        os.utime(path, (next(times),) * 2)
        return path

    return writing


def test_layers_shapes_and_classes_are_found(write):
    opened = idc.open_setup(write(DATA + NETWORK))
    assert (opened.models, opened.datasets) == (("own-net",), ("own-data",))
    entry, data = MODELS["own-net"], DATASETS["own-data"]
    assert (data.input_shape, data.class_names, data.task) == ((1, 8, 8), ("0", "1", "2"), "classification")
    assert entry.layers == ("first", "block.conv", "block", "pool", "hidden", "last")
    assert (entry.default_layer, entry.task) == ("hidden", "classification")


def test_the_whole_method_runs_and_the_network_is_ready(write):
    idc.open_setup(write(DATA + NETWORK))
    model = idc.load_model("own-net")
    assert not any(module.training for module in model.modules())
    assert {value.dtype for value in model.parameters()} == {torch.float32}
    assert model.remarks == ("Weights were converted from float64 to float32.",)
    train, test = (idc.load_dataset("own-data", split) for split in ("train", "test"))
    found = idc.analyze(model, train, test, "block", 3)
    assert 0 < found.covered <= found.total
    with torch.no_grad():
        scores = model(torch.from_numpy(test.inputs.copy()))
    np.testing.assert_array_equal(found.predictions, scores.argmax(1))


def test_the_fingerprint_changes_with_the_code_and_not_without(write):
    path = write(DATA + NETWORK)
    idc.open_setup(path)
    first = idc.load_model("own-net").card.fingerprint
    assert idc.load_model("own-net").card.fingerprint == first
    idc.open_setup(write(DATA + NETWORK.replace("torch.relu(self.first", "torch.tanh(self.first")))
    assert idc.load_model("own-net").card.fingerprint != first


def test_weights_trained_anew_are_read_again_without_saving_the_setup_file(write, tmp_path):
    def train(factor, when):
        np.savez(tmp_path / "trained.npz", weight=np.full((3, 64), factor, np.float32))
        os.utime(tmp_path / "trained.npz", (when, when))

    path = write(
        DATA
        + """
@idc.network("from-weights", layer="1", data="own-data")
def build():
    from pathlib import Path
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 3, bias=False))
    weight = np.load(Path(__file__).parent / "trained.npz", allow_pickle=False)["weight"]
    net.load_state_dict({"1.weight": torch.tensor(weight)})
    return net
"""
    )
    setup_files.watch([path])
    setup_files.refresh()
    assert "trained.npz" in setup_files.problems()[0]
    for when, factor in enumerate((0.25, 0.5), start=1):
        train(factor, when)
        assert setup_files.changed()
        assert [one.models for one in setup_files.refresh()] == [("from-weights",)]
        assert not setup_files.changed()
        assert MODELS["from-weights"].build()[1].weight.unique().item() == factor
    (tmp_path / "notes.txt").write_text("no weights")
    assert not setup_files.changed()


def test_a_file_that_changes_is_read_again_and_a_mistake_leaves_what_was_good(write):
    path = write(DATA + NETWORK)
    setup_files.watch([path])
    assert [one.models for one in setup_files.refresh()] == [("own-net",)]
    assert not setup_files.changed()
    before = MODELS["own-net"]
    write(DATA + NETWORK + "\nx = 1 / 0\n")
    assert setup_files.changed()
    assert setup_files.refresh() == []
    line = len((DATA + NETWORK).splitlines()) + 2
    assert setup_files.problems() == [
        f"{path}, line {line}: the setup file failed: ZeroDivisionError: division by zero."
    ]
    assert MODELS["own-net"] is before
    assert not setup_files.changed()
    write(DATA + NETWORK.replace("self.last = nn.Linear(8, 3)", "self.last = nn.Linear(8, 2)"))
    setup_files.refresh()
    assert "returns 2 scores per input, but 'own-data' has 3 classes (0, 1, 2)" in setup_files.problems()[0]
    assert MODELS["own-net"] is before
    write(DATA + NETWORK.replace("own-net", "other-net"))
    setup_files.refresh()
    assert not setup_files.problems()
    assert "own-net" not in MODELS
    assert MODELS["other-net"].edition > before.edition


def test_a_module_beside_it_that_changes_is_read_again(write):
    helper = write("SIZE = 4\n", "own_helper_module.py")
    path = write(DATA.replace("import numpy as np", "import numpy as np\nfrom own_helper_module import SIZE").replace(
        "(60, 1, 8, 8)", "(60, 1, 2 * SIZE, 2 * SIZE)"))  # fmt: skip
    setup_files.watch([path])
    setup_files.refresh()
    assert DATASETS["own-data"].input_shape == (1, 8, 8)
    helper.write_text("SIZE = 16\n")
    assert setup_files.changed()
    setup_files.refresh()
    assert DATASETS["own-data"].input_shape == (1, 32, 32)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "registers no network, no data set and no relevance rule"),
        ("import idc_core as idc\nx = (", r"line 2: the setup file failed: SyntaxError: '\(' was never closed"),
        (DATA.replace("own-data", "digits"), "there is a data set 'digits' already"),
        (DATA + NETWORK.replace("own-data", "none-such"), r"line \d+: the network 'own-net' takes .* one of digits"),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_is_refused_by_line(write, text, said):
    path = write(text)
    with pytest.raises(SetupError, match=f"{re.escape(str(path))}.*{said}"):
        idc.open_setup(path)
    assert "own-data" not in DATASETS


def test_the_command_line_takes_it_on_both_sides_of_the_command(write, capsys):
    path = str(write(DATA + NETWORK))
    assert main(["--setup", path, "list", "models"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == [
        "own-net", "own-data", "first", "block.conv", "block", "pool", "[hidden]", "last",
    ]  # fmt: skip
    assert main(["analyze", "--model", "own-net", "--m", "3", "--setup", path]) == 0
    assert "own-net, layer hidden, m = 3" in capsys.readouterr().out
    write("import idc_core\n1 / 0")
    assert main(["list", "--setup", path]) == 2
    assert f"{path}, line 2" in capsys.readouterr().err


def test_check_network_names_layers_and_likely_mistakes(write, capsys):
    text = (DATA + NETWORK).replace("default_rng(split == 'test')", "").replace('split == "test"', "0")
    assert main(["check-network", "--setup", str(write(text))]) == 0
    out = capsys.readouterr().out
    assert re.search(r"block +4 x 8 x 8 +yes", out)
    assert "60 of 60 tests are training inputs" in out
    assert "note      Weights were converted from float64 to float32." in out


def test_code_is_never_run_by_its_name_and_formats_are_entries(write, monkeypatch, tmp_path):
    path = str(write("raise SystemExit(1)"))
    with pytest.raises(ModelError, match=r"only `idc_core.open_setup` and --setup"):
        idc.load_model(path)
    with pytest.raises(DataError, match=r"only `idc_core.open_setup` and --setup"):
        idc.load_dataset(path)
    with pytest.raises(ModelError, match=r"net\.toy is no network that can be read; expected .*\.onnx"):
        open_network(NetworkFile("net.toy"), "digits")
    format = DataFormat("/", "toy", lambda path, preparation, split, limit, report: (GREYS, [0, 1, 0, 1]))
    monkeypatch.setitem(DATA_FORMATS, "/", format)
    assert len(idc.load_dataset(str(tmp_path), "train", 3)) == 3


class Pairs(torch.utils.data.Dataset):
    """A torch Dataset with names of classes."""

    classes = ("dark", "bright")

    def __len__(self):
        return 4

    def __getitem__(self, place):
        return torch.full((1, 3, 3), place / 4), place % 2


GREYS = np.arange(4, dtype=np.float32)[:, None, None, None] * np.ones((1, 1, 3, 3), np.float32) / 4
FORMS = {
    "torch data set": Pairs(),
    "arrays": (GREYS.astype(float), [0, 1, 0, 1]),
    "items": Items(GREYS, np.arange(4) % 2),
    "tensors": torch.utils.data.TensorDataset(torch.from_numpy(GREYS), torch.arange(4) % 2),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_data_is_the_same(form):
    idc.dataset("forms")(lambda split: FORMS[form])
    found = idc.load_dataset("forms", "test")
    np.testing.assert_allclose(found.inputs[:, 0, 0, 0], [0, 0.25, 0.5, 0.75])
    np.testing.assert_array_equal(found.targets, [0, 1, 0, 1])
    assert (found.inputs.dtype, found.targets.dtype, len(found.class_names)) == (np.float32, np.int64, 2)


def test_a_reader_with_a_limit_is_asked_for_no_more():
    asked = []

    @idc.dataset("limited", class_names=("a", "b"))
    def read(split, limit):
        asked.append(limit)
        return np.zeros((limit or 9, 2)), ["a", "b", "a", "b", "a", "b", "a", "b", "a"][:limit]

    assert len(idc.load_dataset("limited", "test", 3)) == 3
    assert DATASETS["limited"].input_shape == (2,)
    assert asked == [3, 1]
    assert len(idc.load_dataset("limited", "test")) == 9


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (np.zeros((2, 9, 9, 3)), "channels last"),
        (np.array([[0.0], [np.nan]]), "not finite, first in input 1"),
        (np.zeros(3), "one row per input"),
        (np.array([["a"]]), "expected numbers"),
        (np.array([[-1]]), "token ids from -1"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(inputs, said):
    with pytest.raises(DataError, match=said):
        checked_inputs(inputs, "here")


def test_inputs_are_scaled_and_typed():
    pictures = checked_inputs(np.full((1, 1, 2, 2), 51, np.uint8), "here")
    np.testing.assert_allclose(pictures, 0.2)
    assert checked_inputs(np.array([[1, 2]], np.int16), "here").dtype == np.int64
    assert checked_inputs(np.array([[1.5, -7.0]]), "here").dtype == np.float32


@pytest.mark.parametrize("shape", [(9, 1, 4, 4), (9, 3, 5, 4, 4)])
def test_values_of_maps_and_videos_are_a_persons_own(shape):
    decibels = np.random.default_rng(0).normal(-40, 20, shape).astype(np.float32)
    np.testing.assert_array_equal(checked_inputs(decibels, "here"), decibels)
    assert checked_inputs(np.full((1, 1, 2, 2), 1 + 1e-7), "here").max() == 1

    @idc.dataset("decibels", class_names=("a", "b"))
    def read(split):
        return decibels, np.arange(9) % 2

    data = idc.load_dataset("decibels", "test")
    np.testing.assert_array_equal(data.inputs, decibels)
    with pytest.raises(DataError, match=r"can be (changed|perturbed)"):
        as_pictures(data)
    first = pictures(still(data.inputs), 1)
    low, high = still(decibels).min(), still(decibels).max()
    shown = ((still(decibels).transpose(0, 2, 3, 1) - low) / (high - low) * 255).round()
    assert abs(first - shown).max() <= 1


@pytest.mark.parametrize(
    ("targets", "task", "names", "said"),
    [
        (np.eye(3), None, (), "argmax"),
        (np.array([[1, 1], [0, 1]]), None, (), "targets of several labels"),
        (np.array(["a", "c"]), None, ("a", "b"), "the target 'c'"),
        (np.array([0, 2]), None, ("a", "b"), "expected 0 to 1, the classes a, b"),
        (np.array([0.5]), "classification", (), "whole numbers"),
        (np.array([np.inf]), None, (), "not finite"),
    ],
)
def test_targets_that_do_not_fit_are_refused(targets, task, names, said):
    with pytest.raises(DataError, match=said):
        checked_targets(targets, "here", task, names)


def test_targets_tell_the_task():
    assert checked_targets(np.array([[1], [0]]), "here", None, ()).tolist() == [1, 0]
    assert checked_targets(np.array([True, False]), "here", None, ()).dtype == np.int64
    assert checked_targets(np.array([1.0, 2.0]), "here", None, ()).dtype == np.float32
    assert checked_targets(np.array([1, 2]), "here", "regression", ()).dtype == np.float32


def test_scores_are_found_in_what_networks_return():
    scores, other = torch.ones(2, 3), torch.zeros(2)
    for output in (scores, {"loss": other, "logits": scores}, (scores, other), {"mine": scores}):
        assert scores_of(output) is scores
    assert scores_of("none") == "none"


@pytest.mark.parametrize(
    ("network", "said"),
    [
        (lambda: nn.Linear, "is the class Linear"),
        (lambda: open("no-such-file"), "building the network 'bad' failed: FileNotFoundError"),  # noqa: SIM115, PTH123
        (lambda: nn.Linear(5, 2), "fails on inputs of shape \\(3, 2\\) and type float32"),
        (lambda: nn.Sequential(nn.Linear(2, 3), nn.ReLU()), "returns 3 scores per input, but 'two' has 2 classes"),
        (lambda: nn.Unflatten(1, (1, 2)), "expected scores of shape \\(n, classes\\)"),
    ],
)
def test_a_network_that_does_not_fit_is_refused_by_line(network, said):
    idc.dataset("two", class_names=("no", "yes"))(lambda split: (np.zeros((4, 2)), [0, 1, 0, 1]))
    idc.network("bad", data="two")(network)
    with pytest.raises(ModelError, match=f"test_setup_files.py, line \\d+: .*{said}"):
        idc.load_model("bad")


def test_a_layer_that_is_not_there_is_refused_with_those_that_are():
    idc.dataset("two", class_names=("no", "yes"))(lambda split: (np.zeros((4, 2)), [0, 1, 0, 1]))
    idc.network("bad", data="two", layer="fc7")(lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)))
    with pytest.raises(ModelError, match="no layer 'fc7'; layers with neurons are 0, 2"):
        idc.load_model("bad")


def test_a_file_with_nothing_but_a_composite_is_opened_and_read_again(write):
    text = 'import idc_core as idc\nidc.composite("composite-alone", {"linear": "z"}, help="HELP")\n'
    path = write(text)
    try:
        assert (idc.open_setup(path).models, RULES["composite-alone"].help) == ((), "HELP")
        idc.open_setup(write(text.replace("HELP", "Other.")))
        assert RULES["composite-alone"].help == "Other."
    finally:
        del RULES["composite-alone"]


LAST = """
import numpy as np, torch, idc_core as idc
from torch import nn

class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.matrix = nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        return x @ self.matrix, x.norm(dim=-1)

class Net(nn.Module):
    def __init__(self, last):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(8, 8), nn.Linear(8, 8), last

    def forward(self, x):
        h = torch.relu(self.second(torch.relu(self.first(x[:, 0, 0]))))[:, None]
        given = (h, h, h) if isinstance(self.last, nn.MultiheadAttention) else (h,)
        return self.last(*given)[0][:, 0, :3]

@idc.network("last-lstm", data="own-data")
def lstm():
    return Net(nn.LSTM(8, 3, batch_first=True))

@idc.network("last-gru", data="own-data")
def gru():
    return Net(nn.GRU(8, 3, batch_first=True))

@idc.network("last-attention", data="own-data")
def attention():
    return Net(nn.MultiheadAttention(8, 2, batch_first=True))

@idc.network("last-gate", data="own-data")
def gate():
    return Net(Gate())
"""


def test_a_last_layer_may_return_several_things(write):
    idc.open_setup(write(DATA + LAST))
    assert {name: MODELS[name].default_layer for name in MODELS if name.startswith("last-")} == {
        "last-lstm": "second",
        "last-gru": "second",
        "last-attention": "second",
        "last-gate": "second",
    }
