"""What is promised of any network holds for those of docs/examples: their own sizes, random weights, no training."""

import ast
import copy
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from skl2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier
from tokenizers import BertWordPieceTokenizer
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

import idc_core as idc
from idc_core import CRITERIA, IDC, relevance
from idc_core.base.ranges import M
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import Criterion
from idc_core.datasets import DATASETS
from idc_core.datasets.tokenizing import tokenize
from idc_core.errors import DataError, ModelError, SettingError
from idc_core.lrp.rules import RULES
from idc_core.models import MODELS
from idc_core.models.huggingface.reading import load_folder
from idc_core.models.onnx import load_onnx
from tests.lrp.networks import total
from tests.models.huggingface.folders import TEXTS

pytestmark = [pytest.mark.slow, pytest.mark.sampled(3)]

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
TRAINING, WRONG = 30, 5
"""How many inputs are learned from, and the number of the input that is made unsound."""
BIASES = ("absorb", "redistribute")


@dataclass(frozen=True)
class Case:
    """A network in evaluation mode, inputs, and what is known of it."""

    network: nn.Module
    inputs: torch.Tensor
    through: tuple[str, ...]
    """Layers through which all relevance passes, so that each sums to the start score."""
    layer: str
    """The layer that the example analyses."""
    exact: float = 1e-9
    """By how much sums may be off, as a share of the sum of the absolute relevance."""
    equal: float = 1e-9
    """By how much the size of a batch may change relevance, as a share of the largest."""
    folded: nn.Module | None = None
    """The same network with its batch normalisation folded by hand."""

    @property
    def train(self) -> torch.Tensor:
        return self.inputs[:TRAINING]

    @property
    def tests(self) -> torch.Tensor:
        return self.inputs[TRAINING:]


def stirred(network: nn.Module) -> nn.Module:
    """Move weights and statistics away from their fresh values, by which scores hardly differ between inputs."""
    generator = torch.Generator().manual_seed(0)
    for name, tensor in [*network.named_parameters(), *network.named_buffers()]:
        if tensor.is_floating_point():
            noise = torch.randn(tensor.shape, generator=generator)
            tensor.data.copy_(noise.abs() + 0.5 if name.endswith("running_var") else tensor + 0.05 * noise)
    return network.eval()


def varied(network: nn.Module, inputs: torch.Tensor) -> nn.Module:
    """Let predictions differ between inputs: fresh weights give nearly the same scores for all."""
    last = [module for module in network.modules() if isinstance(module, nn.Linear)][-1]
    last.bias.data -= scores_of(network, inputs).mean(0)
    return network


def pictures(count: int = 42) -> torch.Tensor:
    return torch.rand(count, 3, 32, 32, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def module_of(file: str) -> Any:
    """Run a setup file of the examples; what it enters into the registries is taken out again."""
    before = [(registry, set(registry)) for registry in (DATASETS, MODELS)]
    found = importlib.util.spec_from_file_location(Path(file).stem, EXAMPLES / file)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    for registry, names in before:
        for name in set(registry) - names:
            del registry[name]
    return module


def config_of(file: str, **names: Any) -> Any:
    """Return what the line ``config = ...`` of an example gives."""
    lines = ast.parse((EXAMPLES / file).read_text(encoding="utf-8")).body
    [value] = [one.value for one in lines if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "config"]
    known = {name: getattr(transformers, name) for name in ("BertConfig", "ViTConfig")}
    return eval(compile(ast.Expression(value), file, "eval"), known | names)


def resnet(folder: Path) -> Case:
    network = varied(stirred(module_of("resnet.py").ResNet()).double(), pictures())
    folded = copy.deepcopy(network)
    for block in (folded.layer1, folded.layer2, folded.layer3):
        for number in (1, 2):
            conv, norm = f"conv{number}", f"bn{number}"
            setattr(block, conv, fuse_conv_bn_eval(getattr(block, conv), getattr(block, norm)))
            setattr(block, norm, nn.Identity())
    through = ("input", "stem", "layer1", "layer2", "layer3", "pool", "scores")
    return Case(network, pictures(), through, "layer3", folded=folded)


def wine(folder: Path) -> Case:
    features = torch.rand(42, 13, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    network = varied(stirred(module_of("wine.py").Net()).double(), features)
    folded, norm = copy.deepcopy(network), network.scale
    with torch.no_grad():
        scale = 1 / torch.sqrt(norm.running_var + norm.eps)
        folded.hidden1.bias -= network.hidden1.weight @ (scale * norm.running_mean)
        folded.hidden1.weight *= scale
    folded.scale = nn.Identity()
    return Case(network, features, ("input", "scale", "hidden1", "hidden2", "scores"), "hidden2", folded=folded)


def vit(folder: Path) -> Case:
    names = [f"class {number}" for number in range(10)]
    config = config_of("vit.py", train=SimpleNamespace(class_names=names))
    stirred(transformers.ViTForImageClassification(config)).save_pretrained(folder)
    transformers.ViTImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)
    blocks = tuple(f"vit.layers.{number}" for number in range(config.num_hidden_layers))
    through = ("input", "vit.embeddings", *blocks, "vit.layernorm", "classifier")
    # Its attention runs the softmax in single precision whatever its weights are, and relevance passes it so.
    network = varied(load_folder(folder).double(), pictures())
    return Case(network, pictures(), through, blocks[-1], exact=1e-7, equal=1e-5)


def bert(folder: Path) -> Case:
    config = config_of("bert.py", names=[f"class {number}" for number in range(20)])
    stirred(transformers.BertForSequenceClassification(config)).save_pretrained(folder)
    words = BertWordPieceTokenizer()
    words.train_from_iterator(TEXTS, vocab_size=6000, show_progress=False)
    transformers.BertTokenizerFast(tokenizer_object=words._tokenizer, model_max_length=96).save_pretrained(folder)
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(" ".join(TEXTS).split(), 3 + number % 9)) for number in range(42)]
    ids = torch.as_tensor(tokenize(texts, folder, 16).ids)
    blocks = tuple(f"bert.encoder.layer.{number}" for number in range(config.num_hidden_layers))
    through = ("input", "bert.embeddings", *blocks, "bert.pooler", "classifier")
    return Case(varied(load_folder(folder).double(), ids), ids, through, blocks[-1])


def digits_onnx(folder: Path) -> Case:
    pixels, targets = load_digits(return_X_y=True)
    pixels = (pixels / 16).astype(np.float32)
    net = MLPClassifier((48, 24), random_state=0).partial_fit(pixels, targets, classes=np.arange(10))
    (folder / "digits.onnx").write_bytes(to_onnx(net, pixels[:1], options={"zipmap": False}).SerializeToString())
    network = load_onnx(folder / "digits.onnx", scores=True)
    # Its graph begins with a conversion to single precision.
    through = ("input", "MatMul", "MatMul1", "MatMul2")
    return Case(network, torch.tensor(pixels[:42]), through, "MatMul1", exact=1e-5, equal=1e-4)


BUILDERS = {"resnet": resnet, "wine": wine, "vit": vit, "bert": bert, "digits_onnx": digits_onnx}
OTHERS = {"photos", "letters", "things", "things_onnx", "things_vit", "cells"}
"""Examples that make data alone, and those of the walks, which the tests of the documents follow."""


@pytest.fixture(scope="module", params=BUILDERS)
def case(request, tmp_path_factory):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return BUILDERS[request.param](tmp_path_factory.mktemp(request.param))


def scores_of(network: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        found = network(inputs)
    return getattr(found, "logits", found)


def idc_of(case: Case, **settings: Any) -> IDC:
    return IDC(case.network, case.layer, rule="epsilon", **settings).fit(case.train)


def criteria_of(case: Case) -> list[Criterion]:
    """Return every criterion, learned from the training inputs."""
    options = {"lsc": {"variance": 1e-12}}  # means over positions of random maps hardly vary
    return [kind(case.network, case.layer, **options.get(name, {})).fit(case.train) for name, kind in CRITERIA.items()]


def state(criterion: Criterion) -> dict[str, Any]:
    return {name: value.tolist() for name, value in criterion._state().items()}


def test_every_example_is_here():
    assert {file.stem for file in EXAMPLES.glob("*.py")} == BUILDERS.keys() | OTHERS


@pytest.mark.parametrize("rule", RULES)
def test_every_layer_sums_to_the_start_score(case, rule):
    start = scores_of(case.network, case.tests).amax(1)
    found = relevance(case.network, case.tests, case.through, rule, bias="redistribute")
    for layer, values in found.items():
        whole = np.abs(values).reshape(len(values), -1).sum(1)
        assert np.isfinite(values).all(), layer
        assert (np.abs(total(values) - start).numpy() <= case.exact * np.maximum(whole, start.abs().numpy())).all(), (
            layer
        )


@pytest.mark.parametrize("rule", RULES)
def test_batch_normalisation_is_as_if_folded(case, rule):
    if case.folded is None:
        assert not any(isinstance(one, nn.modules.batchnorm._BatchNorm) for one in case.network.modules())
        return
    torch.testing.assert_close(scores_of(case.folded, case.tests), scores_of(case.network, case.tests))
    for bias in BIASES:
        found, expected = (
            relevance(network, case.tests, case.through, rule, bias=bias) for network in (case.network, case.folded)
        )
        for layer, values in expected.items():
            scale = np.abs(values).max()
            assert scale > 1e-9, layer
            np.testing.assert_allclose(found[layer], values, rtol=0, atol=1e-9 * scale, err_msg=f"{bias} {layer}")


@pytest.mark.parametrize("bias", BIASES)
def test_a_second_call_and_other_batches_give_the_same(case, bias):
    found, again, *others = (
        relevance(case.network, case.tests, case.through, bias=bias, batch_size=size) for size in (None, None, 1, 7)
    )
    for layer, values in found.items():
        np.testing.assert_array_equal(again[layer], values)
        for other in others:
            np.testing.assert_allclose(other[layer], values, rtol=0, atol=case.equal * np.abs(values).max())


def test_idc_of_a_second_call_and_of_other_batches_is_the_same(case):
    found, again, *others = (idc_of(case, batch_size=size).update(case.tests) for size in (None, None, 1, 7))
    assert 0 < found.covered < found.total
    assert state(again) == state(found)
    for other in others:
        assert other.important.tolist() == found.important.tolist()
        assert other.counts.codes.tolist() == found.counts.codes.tolist()
        np.testing.assert_allclose(
            other.importance, found.importance, rtol=0, atol=case.equal * abs(found.importance).max()
        )


@pytest.mark.parametrize("cuts", [(1,), (3, 8), (7,)])
def test_profiles_of_several_calls_are_those_of_one(case, cuts):
    parts = [case.tests[first:last] for first, last in zip((0, *cuts), (*cuts, None), strict=True)]
    for criterion in (idc_of(case), CRITERIA["tknp"](case.network, case.layer).fit(case.train)):
        whole, joined = criterion.profile(case.tests), Profiles.joined([criterion.profile(part) for part in parts])
        np.testing.assert_array_equal(joined.targets, whole.targets)
        np.testing.assert_array_equal(joined.starts, whole.starts)
        np.testing.assert_array_equal(joined.names, whole.names)
        assert joined.covered() == criterion.update(case.tests).covered


def unsound(case: Case, value: float) -> tuple[nn.Module, torch.Tensor]:
    """Return network and training inputs of which one gives no numbers; of words it is the weights of one of them."""
    network, inputs = copy.deepcopy(case.network), case.train.clone()
    if inputs.is_floating_point():
        inputs[WRONG].view(-1)[-1] = value
    else:
        inputs[:, 1], inputs[WRONG, 1] = 7, 8
        inputs[:, 2:] = inputs[:, 2:].masked_fill(inputs[:, 2:] == 8, 7)
        network.get_input_embeddings().weight.data[8] = value
    return network, inputs


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_an_input_that_gives_no_numbers_is_named_with_the_layer(case, value):
    network, inputs = unsound(case, value)
    told = rf"Input {WRONG} gives activations of layer '{case.layer}' that are not finite"
    with pytest.raises(DataError, match=told):
        IDC(network, case.layer).fit(inputs)
    sound = torch.cat([inputs[:WRONG], inputs[WRONG + 1 :]])
    criteria = [IDC(network, case.layer).fit(sound)]
    criteria += [CRITERIA[name](network, case.layer).fit(sound) for name in ("tknp", "kmnc", "nlc")]
    for criterion in criteria:
        before = state(criterion)
        for use in (criterion.update, criterion.profile):
            with pytest.raises(DataError, match=told):
                use(inputs)
        assert state(criterion) == before


def test_criteria_are_saved_and_go_on(case, tmp_path):
    for criterion in criteria_of(case):
        criterion.update(case.tests[:6]).save(tmp_path / "saved")
        loaded = idc.load_criterion(tmp_path / "saved", case.network)
        assert loaded.score == criterion.score
        assert state(loaded) == state(criterion)
        assert state(loaded.update(case.tests[6:])) == state(criterion.update(case.tests[6:]))


def test_a_criterion_of_another_network_is_refused(case, tmp_path):
    idc_of(case).save(tmp_path / "saved")
    other = copy.deepcopy(case.network)
    next(other.parameters()).data.view(-1)[0] += 1
    with pytest.raises(ModelError, match="network"):
        idc.load_criterion(tmp_path / "saved", other)


def test_a_copy_counts_for_itself(case):
    for criterion in criteria_of(case):
        criterion.update(case.tests[:6])
        before, other = state(criterion), copy.copy(criterion)
        assert state(other) == before
        other.update(4 * case.tests[6:] if case.tests.is_floating_point() else case.tests[6:])
        assert state(criterion) == before
        assert state(criterion.update(case.tests[6:])) == state(criterion)


def test_a_small_layer_has_a_smaller_default_m(case):
    last = case.through[-1]
    neurons = scores_of(case.network, case.tests).shape[1]
    assert IDC(case.network, last).fit(case.train).m == min(M.default, neurons)
    with pytest.raises(SettingError, match=f"from 1 to {neurons}, the layer's neurons, not {neurons + 1}"):
        IDC(case.network, last, m=neurons + 1).fit(case.train)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_fgsm_keeps_its_bound(case, dtype):
    network, inputs = copy.deepcopy(case.network), case.tests.numpy()
    if case.tests.dim() != 4:
        with pytest.raises(DataError, match="Only pictures can be perturbed"):
            idc.attack(network, inputs, np.zeros(len(inputs), int), "fgsm")
        return
    network, inputs = network.to(dtype), inputs.astype(np.float32)
    targets = scores_of(network, case.tests.to(dtype)).argmax(1).numpy()
    found = idc.attack(network, inputs, targets, "fgsm", epsilon=0.01)
    assert 0 < np.abs(found.inputs - inputs).max() <= 0.01 + 1e-6
    assert (found.linf <= 0.01 + 1e-6).all()


def test_a_network_in_training_mode_is_run_as_in_evaluation(case):
    expected = relevance(case.network, case.tests, case.through)
    fitted = idc_of(case)
    for module in case.network.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.5
    network = copy.deepcopy(case.network).train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    found = relevance(network, case.tests, case.through)
    for layer, values in expected.items():
        np.testing.assert_array_equal(found[layer], values)
    assert state(IDC(network, case.layer, rule="epsilon").fit(case.train)) == state(fitted)
    assert all(module.training for module in network.modules())
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
