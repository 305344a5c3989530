"""Rules that ask where an operation is, tables of rules, and the rules for first layers against their equations."""

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import idc_core
from idc_core import RelevanceSettings, relevance
from idc_core.attribution.methods import METHODS
from idc_core.cli import main
from idc_core.errors import SettingError
from idc_core.gate.settings import Settings
from idc_core.lrp.layer_rules import LAYER_RULES, epsilon_rule, layer_rule
from idc_core.lrp.rules import RULES, composite, relevance_rule
from tests.lrp.networks import IMAGES, ROWS, Written, numbers, settle, total
from tests.lrp.test_equation import unrolled

LOW, HIGH = -2.5, 3.0


def shares(name, x, w, connected):
    """Return s_ij straight from the equations of Montavon et al. 2017 and Lapuschkin et al. 2019."""
    found = np.zeros_like(w)
    for i, j in itertools.product(*map(range, w.shape)):
        if name == "flat":
            found[i, j] = connected[i, j]
        elif name == "w2":
            found[i, j] = w[i, j] ** 2
        else:
            found[i, j] = x[i] * w[i, j] - LOW * max(w[i, j], 0) - HIGH * min(w[i, j], 0)
    return found / found.sum(0)


@pytest.mark.parametrize("bias", ["absorb", "redistribute"])
@pytest.mark.parametrize("name", ["flat", "w2", "box"])
def test_first_layers_follow_their_equations(name, bias):
    conv = nn.Conv2d(2, 4, 3, stride=(2, 1), padding=1, groups=2)
    net = settle(nn.Sequential(conv, nn.ReLU(), nn.Flatten(), nn.Linear(4 * 3 * 5, 3)))
    inputs = numbers(2, 2, 5, 5).clamp(LOW, HIGH)
    rule = ("box", LOW, HIGH) if name == "box" else name
    found = relevance(net, inputs, ["input", "0"], {"first": rule, "linear": ("epsilon", 0.01)}, bias=bias)
    weights, connected, _, _ = unrolled(conv, (2, 5, 5))
    for n, x in enumerate(inputs.numpy()):
        expected = shares(name, x.reshape(-1), weights, connected) @ found["0"][n].reshape(-1)
        np.testing.assert_allclose(found["input"][n].reshape(-1), expected, rtol=1e-9, atol=1e-12)


def two_branches():
    def forward(net, x):
        x = torch.tanh(net.scale(x))
        hidden = F.relu(net.one(x).flatten(1)) + F.relu(net.two(net.inner(x)).flatten(1))
        return net.out(torch.sigmoid(net.middle(hidden)))

    return settle(
        Written(
            forward,
            scale=nn.GroupNorm(1, 2),
            one=nn.Conv2d(2, 2, 3),
            inner=nn.Sequential(nn.Conv2d(2, 3, 1), nn.ReLU()),
            two=nn.Conv2d(3, 2, 3),
            middle=nn.Linear(50, 6),
            out=nn.Linear(6, 3),
        )
    )


@pytest.mark.parametrize("layers", [["input"], ["one", "middle"], ["input", "inner", "out"]])
def test_a_rule_is_asked_where_an_operation_is(layers):
    asked = set()

    @relevance_rule("asking", label="", help="", citation="")
    def _(place, bias):
        asked.add((str(place), place.module, place.first, place.last))
        return epsilon_rule(1e-6, bias)

    try:
        found = relevance(two_branches(), IMAGES, layers, "asking")
    finally:
        del RULES["asking"]
    plain = relevance(two_branches(), IMAGES, layers)
    for layer in layers:
        np.testing.assert_array_equal(found[layer], plain[layer])
    whole = {
        ("normalisation", "scale", False, False),
        ("convolution", "one", True, False),
        ("convolution", "inner.0", True, False),
        ("convolution", "two", False, False),
        ("sum", "", False, False),
        ("dense", "middle", False, False),
        ("dense", "out", False, True),
    }
    assert asked <= whole
    assert ("dense", "out", False, True) in asked
    if layers == ["input"]:
        assert asked == whole


def test_tables():
    net = two_branches()
    table = {"inner": "flat", "one": ("gamma", 0.5), "conv": "z-plus", "last": "w2", "linear": ("epsilon", 0.1)}
    found = relevance(net, IMAGES, ["input", "inner"], table)
    text = "inner: flat, one: gamma 0.5, conv: z-plus, last: w2, linear: epsilon 0.1"
    for layer, values in relevance(net, IMAGES, ["input", "inner"], text).items():
        np.testing.assert_array_equal(values, found[layer])
    settings = RelevanceSettings(table, bias="redistribute")
    assert settings == RelevanceSettings(settings.rule, bias="redistribute")
    assert hash(settings) == hash(RelevanceSettings(table, bias="redistribute"))
    assert settings.as_dict() == {"rule": settings.rule, "bias": "redistribute"}
    with torch.no_grad():
        start = net(IMAGES).amax(1)
    np.testing.assert_allclose(total(relevance(net, IMAGES, ["input"], settings)["input"]), start, rtol=1e-9)


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ({"conv": ("gamma", 0.25), "other": ("epsilon", 1e-6), "norm": "pass"}, "composite"),
        ({"conv": "z-plus", "linear": "epsilon", "norm": "pass", "other": "z"}, "epsilon-plus"),
        ({"first": "flat", "conv": "z-plus", "linear": "epsilon", "norm": "pass", "other": "z"}, "epsilon-plus-flat"),
        ({"conv": "alpha-beta", "norm": "pass", "other": "z", "linear": "epsilon"}, "epsilon-alpha2-beta1"),
        (
            {"first": ("box", 0, 1), "conv": "gamma", "linear": "epsilon", "norm": "pass", "other": "z"},
            "epsilon-gamma-box",
        ),
        ({"conv": "z-plus", "linear": "z-plus", "norm": "pass", "other": "z"}, "excitation-backprop"),
    ],
)
def test_named_composites_are_tables(table, name):
    net = settle(
        nn.Sequential(
            nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(3, 3, 2), nn.ReLU(),
            nn.BatchNorm2d(3), nn.Tanh(), nn.Flatten(), nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 3),
        )
    )  # fmt: skip
    found, expected = (relevance(net, IMAGES, ["input"], rule, bias="redistribute")["input"] for rule in (table, name))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    assert np.abs(found).max() > 1e-9
    assert name in METHODS


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "is empty"),
        ({"conv": "gama"}, "Unknown rule for a layer 'gama'"),
        ({"conv": ("gamma", -1)}, "gamma of the rule 'gamma' must be a number of at least 0"),
        ({"conv": ("flat", 1)}, "'flat' for 'conv' has 1 values; it takes no values"),
        ({"conv": 3}, "must be a name, or a name and numbers, not 3"),
        ({"conv": "flat", "convolution": "z"}, "names 'convolution' twice"),
        ({"conv": ("box", 1, 0)}, "low < high"),
        ("conv: gamma x", "values that are no numbers"),
        ("conv gamma: ", "must be a name|Unknown rule"),
    ],
)
def test_wrong_tables_are_refused(table, said):
    with pytest.raises(SettingError, match=said):
        RelevanceSettings(table)


def test_a_module_that_is_not_there_is_refused():
    with pytest.raises(SettingError, match="'tow', which is neither a kind of operation nor a module"):
        relevance(two_branches(), IMAGES, ["input"], {"tow": "flat"})
    with pytest.raises(SettingError, match="'pass' is for operations whose result has the shape of their one input"):
        relevance(two_branches(), IMAGES, ["input"], {"middle": "pass"})


def test_a_rule_for_a_layer_and_a_composite_of_ones_own(capsys):
    @layer_rule("half", label="Half", help="Half of it.", citation="")
    def _(bias):
        return lambda affine, inputs, z, given: tuple(
            part / 2 for part in epsilon_rule(0.0, bias)(affine, inputs, z, given)
        )

    try:
        for _ in range(2):  # a setup file is read again when it changes
            composite("mine", {"linear": "half"}, help="Of a person.")
        net = settle(nn.Sequential(nn.Linear(6, 3, bias=False)))
        found = relevance(net, ROWS, ["input"], "mine")["input"]
        np.testing.assert_allclose(found, relevance(net, ROWS, ["input"], "z")["input"] / 2, rtol=1e-12)
        assert "mine" in METHODS
        assert main(["list", "rules"]) == 0
        assert "mine" in (listed := capsys.readouterr().out)
        assert "Of a person." in listed
        assert main(["list", "layer-rules"]) == 0
        assert "half" in capsys.readouterr().out
    finally:
        del LAYER_RULES["half"]
        RULES.pop("mine", None)
    with pytest.raises(SettingError, match="already"):
        composite("epsilon", {"linear": "z"})


def test_a_table_wherever_a_rule_is_named():
    table = {"fc1": "flat", "conv": ["gamma", 0.25]}
    settings = Settings(model="lenet5-digits", rule=table)
    assert settings.idc.relevance == RelevanceSettings("fc1: flat, conv: gamma 0.25")
    model = idc_core.load_model("lenet5-digits")
    assert idc_core.IDC(model, "fc2", 3, table).settings.rule == "fc1: flat, conv: gamma 0.25"
    few = ["analyze", "--limit-train", "60", "--limit-test", "20"]
    assert main([*few, "--rule", "fc1: flat, conv: gamma 0.25"]) == 0
    assert main([*few, "--rule", "fc1: nothing"]) == 2
