"""`python -m idc_core check`: every kind of limit kept and broken, every exit status, and the files it writes."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import idc_core as idc
from idc_core.cli import main
from idc_core.confusion import collect_statistics, countable_layers, find_errors, network_evidence
from idc_core.coverage import CRITERIA
from idc_core.coverage.streamed import measure
from idc_core.gate.limits import LIMITS
from idc_core.opening import setup_files
from idc_core.work import EXECUTORS
from idc_core.work.local import ByBlocks
from tests.library.small_files import digits_onnx

WEIGHTS = Path(__file__).resolve().parents[2] / "assets" / "weights"

SETUP = """
from pathlib import Path
import torch
import idc_core as idc

def spoilt():
    return (Path(__file__).parent / "spoilt").exists()

@idc.dataset("my-digits", class_names=tuple("0123456789"))
def read(split):
    digits = idc.load_dataset("digits", split)
    few = 150 if spoilt() and split == "test" else len(digits)
    return digits.inputs[:few], digits.targets[:few]

@idc.network("mine", "Mine", data="my-digits", layer="conv2")
def build():
    net = idc.load_model("lenet1-digits")
    if spoilt():  # 4 and 9 change places, and a channel dies
        with torch.no_grad():
            for values in (net.logits.weight, net.logits.bias):
                values[[4, 9]] = values[[9, 4]].clone()
            net.conv2.weight[0] = net.conv2.bias[0] = 0
    return net
"""

WHOLE = """
setup = "setup.py"

[[check]]
name = "mine, all tests"
model = "mine"
limit_train = 400

[[check.limit]]
at_least = 0.3
may_fall_by = 0.01

[[check.limit]]
criterion = "nc"
parameters = { threshold = 0.5 }
at_least = 0.5
may_fall_by = 0.01

[[check.limit]]
criterion = "tknp"
layers = ["conv2"]
at_least = 2

[[check.limit]]
kind = "new-cell"
at_most = 0.2

[[check.limit]]
kind = "accuracy"
at_least = 0.9
may_fall_by = 0.005

[[check.limit]]
kind = "robust-accuracy"
attack = "fgsm"
parameters = { epsilon = 0.05 }
inputs = 60
at_least = 0.5

[[check.limit]]
kind = "confused-pairs"

[[check.limit]]
kind = "confused-pairs"
by = "activations"
at_most_new = 1
"""

SMALL = '[[check]]\nmodel = "lenet1-digits"\nlimit_train = 60\nlimit_test = 40\n'
LIMIT = '[[check.limit]]\nkind = "accuracy"\nat_least = 0.1\n'


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    yield
    setup_files._close_all()


@pytest.fixture
def check(capsys, tmp_path):
    """Write a file, run the command on it, and return its status and what it printed."""

    def check(text, *options):
        file = tmp_path / "idc.toml"
        file.write_text(text, encoding="utf-8")
        status = main(["check", str(file), *map(str, options)])
        output = capsys.readouterr()
        return status, output.out, output.err

    return check


def cases(file):
    """The cases of a JUnit file by name, each with what is below it."""
    suites = ET.parse(file).getroot()
    for one in (suites, *suites):
        inside = list(one.iter("testcase"))
        assert int(one.get("tests")) == len(inside)
        assert int(one.get("failures")) == len(list(one.iter("failure")))
        assert int(one.get("errors")) == len(list(one.iter("error")))
        assert float(one.get("time")) >= 0
    return {case.get("name"): list(case) for case in suites.iter("testcase")}


def test_every_limit_is_kept_and_then_broken_by_a_spoilt_network(check, tmp_path):
    (tmp_path / "setup.py").write_text(SETUP)
    status, out, err = check(WHOLE, "--write-baseline")
    assert (status, err) == (0, ""), out
    assert "11 of 11 limits kept" in out
    written = (tmp_path / "idc-baseline.json").read_bytes()
    status, out, err = check(WHOLE, "--junit", tmp_path / "kept.xml")
    assert (status, err) == (0, "")
    kept = cases(tmp_path / "kept.xml")
    assert len(kept) == 11
    assert not any(kept.values())
    agrees_with_the_engine(json.loads(written)["checks"]["mine, all tests"]["values"])
    assert check(WHOLE, "--write-baseline")[0] == 0
    assert (tmp_path / "idc-baseline.json").read_bytes() == written

    (tmp_path / "spoilt").touch()
    stricter = WHOLE.replace("at_least = 2\n", "at_least = 1000\n").replace("at_least = 0.5\n", "at_least = 0.95\n")
    stricter = stricter.replace("at_least = 0.3\n", "at_least = 0.4\n").replace("at_most_new = 1\n", "")
    stricter = stricter.replace("at_most = 0.2\n", "at_most = 0.001\n")
    status, out, err = check(stricter, "--junit", tmp_path / "broken.xml", "--summary", tmp_path / "broken.md")
    assert (status, err) == (1, "")
    broken = cases(tmp_path / "broken.xml")
    assert {name for name, inside in broken.items() if not inside} == set()
    assert {one.tag for inside in broken.values() for one in inside} == {"failure"}
    said = {name: inside[0].get("message") for name, inside in broken.items()}
    assert "below its minimum of 0.9." in said["accuracy at least 0.9"]
    assert "at most 0.005 is allowed." in said["accuracy fallen by at most 0.005"]
    assert said["confused pairs at most 0 new"].endswith(": 4 and 9.")
    assert said["chance of a new cell at most 0.001"].endswith(", above its maximum of 0.001.")
    lines = broken["chance of a new cell at most 0.001"][0].text.splitlines()
    assert [line.split(" ")[0] for line in lines[1:]] == ["Its", "150", "New"]
    assert "95 % interval is 0." in lines[1]
    assert "predicted from the first half" in lines[3]
    (pair,) = [line for line in broken["confused pairs at most 0 new"][0].text.splitlines() if "of 4 and 9:" in line]
    assert pair.startswith("Confused among 23 tests of 4 and 9: 23, and ")
    assert pair.endswith(" at the rate of the other pairs.")
    assert "95 % interval is 0." in broken["accuracy at least 0.9"][0].text
    assert "among as many random pairs" in broken["confused pairs by=activations at most 0 new"][0].text
    assert "cells are covered" in broken["idc at least 0.4"][0].text
    assert "correctly classified tests are misclassified" in next(
        inside[0].text for name, inside in broken.items() if name.startswith("accuracy under fgsm")
    )
    summary = (tmp_path / "broken.md").read_text(encoding="utf-8")
    assert "## IDC Studio: 11 of 11 limits broken" in summary
    assert summary.count("❌ broken") == 11
    assert all(sentence in out for sentence in said.values())
    # A broken minimum does not keep a new baseline from being written.
    assert check(WHOLE, "--write-baseline")[0] == 1
    assert (tmp_path / "idc-baseline.json").read_bytes() != written


def agrees_with_the_engine(values):
    """The values of a baseline are those that the functions of the engine give."""
    model = idc.load_model("lenet1-digits")
    train, test = idc.load_dataset("digits", "train", 400), idc.load_dataset("digits")
    found = idc.analyze(model, train, test, "conv2")
    assert values["idc"] == found.score
    assert values["accuracy"] == found.accuracy
    criterion = idc.IDC(model, "conv2").fit(train)
    assert values["chance of a new cell"] == idc.discovery(criterion.update(test)).chance
    nc, tknp = (CRITERIA["nc"](model, model.card.layers, threshold=0.5), CRITERIA["tknp"](model, ("conv2",)))
    assert [values["nc threshold=0.5"], values["tknp (conv2)"]] == measure([nc, tknp], train, test)
    attacked = idc.attack(model, test.inputs[:60], test.targets[:60], "fgsm", epsilon=0.05)
    robust = (attacked.before == attacked.targets) & (attacked.predictions == attacked.targets)
    assert values["accuracy under fgsm epsilon=0.05 on 60 tests"] == robust.mean()
    statistics = collect_statistics(model, test, countable_layers(model))
    errors = find_errors(network_evidence(statistics, test, test.class_names))
    pairs = errors.suspected
    for label, chosen in (
        ("confused pairs", errors.certainly_confused(pairs)),
        ("confused pairs by=activations", errors.distance[tuple(pairs.T)] < errors.confusion_cutoff),
    ):
        names = {frozenset(errors.class_names[one] for one in pair) for pair in pairs[chosen].tolist()}
        assert {frozenset(pair) for pair in values[label]} == names
    assert names


def test_every_kind_of_limit_was_broken_above():
    assert set(LIMITS) == {"coverage", "new-cell", "accuracy", "robust-accuracy", "confused-pairs"}
    assert all(name == "coverage" or f'kind = "{name}"' in WHOLE for name in LIMITS)


def test_annotations_and_the_summary_of_github(check, tmp_path, monkeypatch):
    broken = SMALL.replace("lenet1-digits", "lenet1-digits").replace("[[check]]", '[[check]]\nname = "a, b: 100 %"')
    broken += "[[check.limit]]\nat_least = 1\n"
    status, out, _ = check(broken, "--github")
    assert status == 1
    (line,) = [line for line in out.splitlines() if line.startswith("::error ")]
    assert line.startswith(f"::error file={tmp_path}/idc.toml,title=a%2C b%3A 100 %25%3A idc broken::idc is 0.")
    assert "%0A" in line
    (tmp_path / "summary.md").write_text("# Other step\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    status, out, _ = check(SMALL + LIMIT)
    assert status == 0
    assert "::error" not in out
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert summary.startswith("# Other step\n## IDC Studio: 1 of 1 limits kept\n")
    status, out, err = check(SMALL)
    assert status == 2
    assert out.startswith("::error ")
    assert err.strip() in out


def test_networks_and_data_from_files(check, tmp_path):
    (tmp_path / "net.onnx").write_bytes(digits_onnx())
    shutil.copy(WEIGHTS / "lenet1-digits.safetensors", tmp_path / "net.safetensors")
    shutil.copy(WEIGHTS / "lenet1-digits.safetensors", tmp_path / "damaged.safetensors")
    text = (
        SMALL.replace("lenet1-digits", "net.onnx").replace("\nlimit", '\ndata = "digits"\nlimit', 1)
        + LIMIT.replace("0.1", "0.0")
        + SMALL.replace("lenet1-digits", "net.safetensors").replace("\n", '\narchitecture = "lenet1-digits"\n', 1)
        + LIMIT
    )
    status, out, err = check(text)
    assert (status, err) == (0, "")
    assert "2 of 2 limits kept" in out

    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    status, out, err = check(text.replace("net.safetensors", "damaged.safetensors"), "--junit", tmp_path / "all.xml")
    assert status == 2
    assert "could not run" in out
    assert "damaged.safetensors" in err
    assert len(err.splitlines()) == 1
    (kept, stopped) = cases(tmp_path / "all.xml").values()
    assert [one.tag for one in stopped] == ["error"]
    assert not kept
    status, _, err = check(text.replace("net.safetensors", "damaged.safetensors"), "--write-baseline")
    assert status == 2
    assert "is not written" in err
    assert not (tmp_path / "idc-baseline.json").exists()


def test_an_engine_finds_the_same_and_is_opened_once(check, tmp_path, monkeypatch):
    opened, local = [], EXECUTORS["local"]
    monkeypatch.setitem(EXECUTORS, "local", replace(local, open=lambda address: opened.append(1) or ByBlocks()))
    (tmp_path / "setup.py").write_text(SETUP)
    (tmp_path / "net.onnx").write_bytes(digits_onnx())
    text = WHOLE + SMALL.replace("lenet1-digits", "net.onnx").replace("\nlimit", '\ndata = "digits"\nlimit', 1)
    text += LIMIT.replace("0.1", "0.0")
    written = []
    for number, engine in enumerate(((), ("--engine", "local"))):
        monkeypatch.setenv("IDC_HOME", str(tmp_path / str(number)))  # where the other one is not kept
        status, out, err = check(text, "--write-baseline", *engine)
        assert (status, err) == (0, ""), out
        written.append((tmp_path / "idc-baseline.json").read_bytes())
    assert written[1] == written[0]
    assert opened == [1]
    assert check(text, "--engine", "local")[0] == 0
    assert opened == [1]  # everything is kept


BASED = LIMIT + "may_fall_by = 0.1\n"


def test_a_baseline_must_be_there_and_fit(check, tmp_path):
    baseline = tmp_path / "idc-baseline.json"
    status, _, err = check(SMALL + BASED)
    assert status == 2
    assert "write it with --write-baseline" in err
    assert check(SMALL + BASED, "--write-baseline")[0] == 0
    good = baseline.read_text()
    for text, said in (
        (SMALL.replace("limit_test = 40", "limit_test = 39") + BASED, "measured with limit_test = 40, now 39"),
        (SMALL.replace("[[check]]", '[[check]]\nname = "new"') + BASED, "no check 'new'"),
        (SMALL + "[[check.limit]]\nmay_fall_by = 0.1\n", "no value for idc"),
    ):
        status, _, err = check(text)
        assert status == 2
        assert said in err
    for damaged, said in (
        (good[:-20], "cannot be read as JSON"),
        (good.replace('"format": 1', '"format": 2'), "has the format 2; expected 1"),
        (good.replace('"values"', '"numbers"'), "values"),
        (good.replace('"accuracy": ', '"accuracy": [["a", "b"]], "x": '), "holds no number for accuracy"),
    ):
        baseline.write_text(damaged)
        status, _, err = check(SMALL + BASED)
        assert status == 2
        assert said in err


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[check]\n", "cannot be read as TOML"),
        ("check = 1\n", "Expected `array`, got `int`"),
        ("", "has no key check"),
        ("check = []\n", "has no checks: expected at least one table [[check]]"),
        (SMALL, "check 1 has no limits: expected at least one table [[check.limit]]"),
        ("[[check]]\nlayer = 'fc1'\n" + LIMIT, "check 1 has no key model"),
        ("chek = 1\n" + SMALL + LIMIT, "unknown key 'chek'; expected check, setup, baseline"),
        (SMALL + "laier = 'fc1'\n" + LIMIT, "check 1 has the unknown key 'laier'; expected model, name, data, layer"),
        (SMALL + LIMIT + "minimum = 1\n", "limit 1 (accuracy) has the unknown key 'minimum'; expected at_least"),
        (SMALL + "[[check.limit]]\nkind = 'new-cell'\n", "(new-cell) has no key at_most, which is needed"),
        (SMALL + "[[check.limit]]\nkind = 'new-cell'\nat_most = 2\n", "at_most must be a number from 0 to 1, not 2"),
        (SMALL + "m = 0\n" + LIMIT, "m must be a whole number from 1 to 100000, not 0"),
        (SMALL + "m = true\n" + LIMIT, "Expected `int | null`, got `bool` - at `$.m`"),
        (SMALL + "m = 99\n" + "[[check.limit]]\nat_least = 0.1\n", "99"),
        (SMALL + "rule = 'lrp'\n" + LIMIT, "'lrp': expected one of z, epsilon"),
        (SMALL + "clusters = [1]\n" + LIMIT, "Expected clusters to be whole numbers from 2 to 256"),
        (SMALL + "clusters = [2, 2]\n" + LIMIT, "each once; got (2, 2)"),
        (SMALL + "epsilon = 0\n" + LIMIT, "epsilon of a relevance rule must be a number of at least 1e-12, not 0"),
        (SMALL + "clustering = 'x'\n" + LIMIT, "expected one of k-means"),
        (SMALL + "priority = 'x'\n" + LIMIT, "expected one of sum"),
        (SMALL + "layer = 'fc9'\n" + LIMIT, "fc9"),
        (SMALL + "data = 'cats'\n" + LIMIT, "There is no dataset 'cats'"),
        (SMALL + "data = './cats'\n" + LIMIT, "give a path from the folder of the file"),
        (SMALL + "trust = true\n" + LIMIT, "trust is for a network that is given by a path"),
        (SMALL + "preparation = { size = [8, 8] }\n" + LIMIT, "preparation is for data that are given by a path"),
        (SMALL + "preparation = { sise = 8 }\n" + LIMIT, "unknown key 'sise'; expected size"),
        (SMALL + "scaling = { mean = 'x' }\n" + LIMIT, "Expected `array`, got `str` - at `$.mean`"),
        (SMALL + "scaling = { deviation = [0] }\n" + LIMIT, "deviation or a factor of 0"),
        (SMALL.replace("lenet1", "lenet9") + LIMIT, "check 1: There is no model 'lenet9-digits'"),
        (SMALL.replace("lenet1-digits", "none.onnx") + LIMIT, "none.onnx"),
        ("setup = 'none.py'\n" + SMALL + LIMIT, "none.py"),
        (SMALL.replace("lenet1-digits", "a\\u0000b") + LIMIT, "characters that can be printed"),
        (SMALL + LIMIT + SMALL + LIMIT, "two checks are called 'lenet1-digits'; give each a name of its own"),
        (SMALL + LIMIT + LIMIT, "two limits are on 'accuracy'; give both bounds in one"),
        (SMALL + LIMIT.replace("accuracy", "acuracy"), "Unknown kind of limit 'acuracy': expected one of coverage"),
        (
            SMALL + LIMIT.replace("accuracy", "faults"),
            "limit 1: The limit 'faults' was taken out: the share that it predicted fell as training inputs",
        ),
        (SMALL + LIMIT.replace("0.1", "nan"), "nan is no finite number"),
        (SMALL + LIMIT.replace("0.1", "40"), "at_least must be a number from 0 to 1.0, not 40"),
        (SMALL + LIMIT.replace("0.1", "'0.1'"), "Expected `float | null`, got `str`"),
        (SMALL + LIMIT + "may_fall_by = -0.1\n", "may_fall_by must be a number from 0 to 1.0, not -0.1"),
        (SMALL + "[[check.limit]]\nkind = 'accuracy'\n", "expected at_least, may_fall_by, or both"),
        (SMALL + "[[check.limit]]\ncriterion = 'kmc'\nat_least = 1\n", "'kmc': expected one of idc, nc"),
        (SMALL + "[[check.limit]]\nparameters = { m = 3 }\nat_least = 1\n", "its parameters are those of the check"),
        (
            SMALL + "[[check.limit]]\ncriterion = 'kmnc'\nparameters = { j = 3 }\nat_least = 1\n",
            "kmnc has no parameter 'j'; its parameters are k",
        ),
        (SMALL + "[[check.limit]]\nlayers = ['conv1']\nat_least = 1\n", "idc looks at the layer of the check"),
        (
            SMALL + "[[check.limit]]\nkind = 'robust-accuracy'\nattack = 'x'\nat_least = 0\n",
            "Unknown attack 'x': expected one of fgsm",
        ),
        (SMALL + "[[check.limit]]\nkind = 'robust-accuracy'\nat_least = 0\n", "has no key attack"),
        (
            SMALL
            + "[[check.limit]]\nkind = 'robust-accuracy'\nattack = 'fgsm'\nparameters.epsilon = 9\nat_least = 0\n",
            "epsilon",
        ),
        (
            SMALL + "[[check.limit]]\nkind = 'confused-pairs'\nby = 'eye'\n",
            "'eye': expected one of labels, activations",
        ),
        (SMALL + "[[check.limit]]\nkind = 'confused-pairs'\nat_most_new = -1\n", "at_most_new must be a whole number"),
        ("a = " + "[" * 5_000 + "\n", "cannot be read as TOML"),
        ("a = " + "9" * 5_000 + "\n", "cannot be read as TOML"),
        ("#" * 70_000, "has 70,000 characters; expected at most 65,536"),
    ],
)
def test_a_wrong_file_is_refused_in_a_sentence(check, text, said):
    status, out, err = check(text)
    assert status == 2
    assert said in err
    assert "Traceback" not in err
    assert err.count("\n") == 1
    assert "kept" not in out


def test_a_missing_file_is_refused(capsys, tmp_path):
    assert main(["check", str(tmp_path / "none.toml")]) == 2
    assert "cannot be read (No such file or directory)" in capsys.readouterr().err
