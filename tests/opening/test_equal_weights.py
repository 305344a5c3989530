"""Networks of equal weights, and rules of one name, that compute something else: none is given the other's number."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core import store
from idc_core.base.own_digest import code_digest
from idc_core.coverage.idc_settings import IdcSettings
from idc_core.errors import ModelError
from idc_core.lrp.rules import RULES, composite
from idc_core.models.weights import fingerprint
from idc_core.opening import setup_files
from idc_core.opening.live import enter_live
from idc_core.runs import PlannedAnalysis
from tests.opening.equal_weights import PAIRS, SIDE, Acts

DATA = np.random.default_rng(0).normal(size=(60, SIDE)).astype(np.float32), np.arange(60) % 3


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    """A home of its own, and data for all."""
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))
    idc.dataset("d")(lambda split: DATA)


def opened(make, name="one"):
    """Return a network as a setup file would give it."""
    idc.network(name, data="d")(make)
    return idc.load_model(name)


def analysed(model, rule="epsilon"):
    """Return the analysis of a network that is kept, else made."""
    train, test = (idc.load_dataset("d", split) for split in ("train", "test"))
    plan = PlannedAnalysis(model.card, train, test, model.card.default_layer, 3, IdcSettings.of(rule))
    return plan.planned(plan.sources(lambda: model)).kept()


@pytest.mark.parametrize("pair", PAIRS)
def test_each_is_known_by_more_than_its_weights(pair):
    first, second = PAIRS[pair]
    assert all(map(torch.equal, first().state_dict().values(), second().state_dict().values()))
    assert fingerprint(first()) == fingerprint(first()) != fingerprint(second())
    prints = [opened(make).card.fingerprint for make in (first, second, first)]
    assert prints[0] == prints[2] != prints[1]


def test_what_it_does_is_told_by_the_pass_that_finds_its_layers():
    sizes = []

    class Sized(Acts):
        def forward(self, x):
            sizes.append(len(x))
            return super().forward(x)

    opened(Sized)
    assert sizes == [3, 2]  # and by one that tells whether the last layer comes from the one before


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS)
def test_none_is_given_the_numbers_of_the_other(pair, tmp_path, monkeypatch):
    alone = []
    for number, make in enumerate(PAIRS[pair]):
        monkeypatch.setenv("IDC_HOME", str(tmp_path / f"alone {number}"))
        alone.append(analysed(opened(make)))
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "together"))
    for make, expected in zip(PAIRS[pair], alone, strict=True):
        for model in (opened(make), idc.load_model(enter_live(make(), DATA, DATA, name="live").name)):
            found = analysed(model)
            np.testing.assert_array_equal(found.test_activations, expected.test_activations)
            assert (found.score, found.accuracy) == (expected.score, expected.accuracy)


@pytest.mark.parametrize("pair", ["activation", "temperature", "tensor", "hook", "configuration in depth"])
def test_a_criterion_is_read_by_its_own_network_alone(pair, tmp_path):
    first, second = PAIRS[pair]
    net = first()
    made = idc.IDC(net, "hidden", 3).fit(DATA[0]).update(DATA[0])
    made.save(tmp_path / "criterion")
    assert idc.load_criterion(tmp_path / "criterion", first()).score == made.score
    with pytest.raises(ModelError, match="belongs to another network"):
        idc.load_criterion(tmp_path / "criterion", second())


class Counting(Acts):
    """Notes its passes, and what was seen last."""

    passes, seen = 0, None

    def forward(self, x):
        self.passes += 1
        self.seen = torch.relu(self.hidden(x))
        return self.scores(self.seen)


def test_what_passes_leave_in_a_network_is_none_of_what_it_computes_with():
    net = Counting()
    before = fingerprint(net)
    net(torch.tensor(DATA[0]))
    assert fingerprint(net) == before == fingerprint(Counting())


@pytest.mark.slow
def test_the_fingerprint_is_the_same_in_every_process_and_for_every_number_of_threads(tmp_path):
    code = (
        "import numpy as np, idc_core as idc; from tests.opening.equal_weights import PAIRS, SIDE\n"
        "idc.dataset('d')(lambda split: (np.linspace(-1, 1, 10 * SIDE).reshape(10, SIDE), np.arange(10) % 3))\n"
        "for name in ('callable object', 'configuration in depth', 'forward of the object', 'padding'):\n"
        "    idc.network('one', data='d')(PAIRS[name][0]); print(idc.load_model('one').card.fingerprint)\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": str(number), "OMP_NUM_THREADS": str(number)},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for number in (1, 2)
    ]
    assert said[0] == said[1]
    assert len(set(said[0].split())) == 4


def test_a_network_of_the_project_is_known_by_its_weights_alone():
    card = idc.load_model("lenet1-digits").card
    assert card.fingerprint == fingerprint(idc.load_model("lenet1-digits"))
    assert not hasattr(idc.load_model("lenet1-digits"), "idc_code")


def test_a_composite_of_another_table_under_its_name_is_another_rule():
    model = opened(Acts)
    plain, kept = store.place("analysis", ("a key",)), []
    for table in ({"linear": "epsilon"}, {"linear": "w2"}, {"linear": "epsilon"}):
        composite("mine", table)
        kept.append(analysed(model, "mine").importance)
        assert store.place("analysis", ("a key",)) == plain
    RULES.pop("mine")
    assert not np.array_equal(kept[0], kept[1])
    np.testing.assert_array_equal(kept[0], kept[2])


SETUP = """
import numpy as np, torch, idc_core as idc
from {module} import Net
@idc.dataset("data-{name}")
def read(split):
    return np.random.default_rng(0).normal(size=(40, 4)), np.arange(40) % 3
@idc.network("net-{name}", data="data-{name}")
def build():
    torch.manual_seed(0)
    return Net()
"""
NET = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.scores = nn.Linear(4, 8), nn.Linear(8, 3)
    def forward(self, x):
        {first}
        return self.scores({act}(self.hidden(x)))
"""
FORMS = {
    "a module": ("model.py", "model", "", "torch.{}"),
    "a package": ("pkg/net.py", "pkg.net", "", "torch.{}"),
    "a package of another": ("pkg/__init__.py", "pkg", "", "torch.{}"),
    "beside its folder": ("../{}-src/pkg/net.py", "pkg.net", "", "torch.{}"),
    "imported as it runs": ("model.py", "model", "from acts import act", "act"),
}


@pytest.fixture
def closed():
    """No setup file is open at the end."""
    yield
    setup_files._close_all()


@pytest.mark.parametrize("form", FORMS)
def test_each_setup_file_has_modules_of_its_own(form, tmp_path, closed):
    file, module, first, act = FORMS[form]
    for name, function in (("a", "relu"), ("b", "tanh")):
        path = tmp_path / name / file.format(name)
        path.parent.mkdir(parents=True)
        (tmp_path / name).mkdir(exist_ok=True)
        path.write_text(NET.format(first=first, act=act.format(function)))
        (tmp_path / name / "acts.py").write_text(f"import torch\nact = torch.{function}\n")
        source = f"import sys; sys.path.insert(0, {str(path.parents[1])!r})\n" if "src" in file else ""
        (tmp_path / name / "setup.py").write_text(source + SETUP.format(name=name, module=module))
    for name in "ab":
        idc.open_setup(tmp_path / name / "setup.py")
    torch.manual_seed(0)
    hidden, scores = nn.Linear(4, 8), nn.Linear(8, 3)
    inputs = torch.linspace(-1, 1, 12).reshape(3, 4)
    for name, function in (("a", torch.relu), ("b", torch.tanh), ("a", torch.relu)):
        torch.testing.assert_close(idc.load_model(f"net-{name}")(inputs), scores(function(hidden(inputs))))


def test_a_setup_file_is_read_beside_torch_classes(tmp_path):
    torch.classes.__path__  # noqa: B018 (from then on it has one, which is no list of folders)
    file = tmp_path / "setup.py"
    file.write_text("import idc_core as idc\nidc.composite('beside', {'linear': 'z'}, help='Of a test.')\n")
    setup_files.open_setup(file)
    RULES.pop("beside")


@pytest.mark.parametrize(
    ("code", "other"),
    [
        ("import deep.far", "deep/far.py"),
        ("from deep import far", "deep/far.py"),
        ("from deep.far import one", "deep/far.py"),
        ("def late():\n    import deep.far", "deep/far.py"),
        ("import deep", "deep/near.py"),
        ("text = 'config.json'", "config.json"),
    ],
)
def test_the_digest_of_a_file_follows_what_it_imports_and_names(code, other, tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "__init__.py").write_text("from . import near")
    for name in ("deep/near.py", "deep/far.py", "config.json"):
        (tmp_path / name).write_text("one = 1")
    (tmp_path / "setup.py").write_text(code)
    setup = SimpleNamespace(path=tmp_path / "setup.py")
    before = code_digest(setup)
    (tmp_path / "unrelated.py").write_text("two = 2")
    assert code_digest(setup) == before
    (tmp_path / other).write_text("one = 2")
    assert code_digest(setup) != before
