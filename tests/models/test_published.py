"""Published Keras weights: turned into PyTorch's layout without changing what the network computes."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from idc_core.datasets import load_dataset
from idc_core.errors import ModelError
from idc_core.models import load_model

NAME = "deepimportance-lenet4"
# Correct answers on the 10,000 MNIST test images, from the table that comes with the weights.
CORRECT = {
    "deepimportance-lenet1": 9808,
    "deepimportance-lenet4": 9856,
    "deepimportance-lenet5": 9879,
    "deepxplore-model1": 9788,
    "deepxplore-model2": 9852,
    "deepxplore-model3": 9881,
}
needs_data = pytest.mark.skipif(not os.environ.get("IDC_DATA"), reason="IDC_DATA is not set")


@pytest.fixture(scope="module")
def mnist():
    return load_dataset("mnist", "test")


@pytest.mark.sampled(3)
@needs_data
@pytest.mark.parametrize("name", CORRECT)
def test_accuracy_is_exactly_the_published_tables(name, mnist):
    network = load_model(name)
    with torch.inference_mode():
        predicted = network(torch.from_numpy(mnist.inputs.copy())).argmax(1).numpy()
    assert int((predicted == mnist.targets).sum()) == CORRECT[name]
    assert network.card.metrics["test_accuracy"] == CORRECT[name] / 10_000


def layer(name, kind, output, **more):
    return {"name": name, "type": kind, "output_shape": output, **more}


@pytest.fixture
def keras(tmp_path):
    """Random weights in Keras's layout under the layer list of DeepImportance's LeNet-4."""
    random = np.random.default_rng(0)
    shapes = {"a": (5, 5, 1, 6), "c": (5, 5, 6, 16), "f": (256, 84), "s": (84, 10)}
    arrays = {}
    for name, shape in shapes.items():
        arrays[f"{name}/kernel"] = random.normal(0, 0.3, shape).astype(np.float32)
        arrays[f"{name}/bias"] = random.normal(0, 0.3, shape[-1]).astype(np.float32)
    params = {name: {"kernel": list(shape), "bias": [shape[-1]]} for name, shape in shapes.items()}
    layers = [
        layer("a", "conv2d", [24, 24, 6], padding="valid", params=params["a"]),
        layer("b", "max_pool2d", [12, 12, 6]),
        layer("c", "conv2d", [8, 8, 16], padding="valid", params=params["c"]),
        layer("d", "max_pool2d", [4, 4, 16]),
        layer("e", "flatten", [256]),
        layer("f", "dense", [84], params=params["f"]),
        layer("s", "dense", [10], params=params["s"]),
    ]
    save(tmp_path / "net.npz", arrays, layers)
    return tmp_path / "net.npz", arrays, layers


def save(path, arrays, layers):
    np.savez(path, **arrays)
    path.with_suffix(".json").write_text(json.dumps({"layers": layers}), encoding="utf-8")


def keras_forward(arrays, image):
    """LeNet-4 in Keras's own terms, channels last, in float64: the slow reference."""
    values = image.astype(np.float64)
    for name in ("a", "c"):
        kernel = arrays[f"{name}/kernel"].astype(np.float64)
        side = values.shape[0] - 4
        out = np.empty((side, side, kernel.shape[3]))
        for row in range(side):
            for column in range(side):
                out[row, column] = np.tensordot(values[row : row + 5, column : column + 5], kernel, 3)
        out = np.maximum(out + arrays[f"{name}/bias"], 0)
        values = out.reshape(side // 2, 2, side // 2, 2, -1).max((1, 3))
    hidden = np.maximum(values.reshape(-1) @ arrays["f/kernel"].astype(np.float64) + arrays["f/bias"], 0)
    return hidden @ arrays["s/kernel"].astype(np.float64) + arrays["s/bias"]


def test_scores_equal_a_channels_last_computation(keras):
    path, arrays, _ = keras
    images = np.random.default_rng(1).random((3, 28, 28, 1)).astype(np.float32)
    network = load_model(NAME, weights=path)
    with torch.inference_mode():
        scores = network(torch.from_numpy(images.transpose(0, 3, 1, 2).copy())).numpy()
    expected = np.stack([keras_forward(arrays, image) for image in images])
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-3)


def test_without_idc_data_the_message_says_what_to_set(monkeypatch):
    monkeypatch.delenv("IDC_DATA", raising=False)
    with pytest.raises(ModelError, match=r"set IDC_DATA to a folder that holds weights/\S+lenet4\.npz"):
        load_model(NAME)


def test_absent_files_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("IDC_DATA", str(tmp_path))
    with pytest.raises(ModelError, match=r"deepimportance-lenet4\.json cannot be read"):
        load_model(NAME)


@pytest.mark.parametrize("size", [0, 10, 5_000])
def test_truncated_weights_are_refused(keras, size):
    path, _, _ = keras
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ModelError, match=r"net\.npz is cut off or not an npz file"):
        load_model(NAME, weights=path)


def test_pickled_arrays_are_refused(keras):
    path, arrays, layers = keras
    save(path, {**arrays, "a/bias": np.array([{}], dtype=object)}, layers)
    with pytest.raises(ModelError, match="a/bias holds Python objects"):
        load_model(NAME, weights=path)


def test_wrong_shape_is_refused(keras):
    path, arrays, layers = keras
    save(path, {**arrays, "f/kernel": np.zeros((255, 84), np.float32)}, layers)
    with pytest.raises(ModelError, match=r"'f/kernel' must have the shape \(256, 84\), not \(255, 84\)"):
        load_model(NAME, weights=path)


def test_missing_array_is_refused(keras):
    path, arrays, layers = keras
    del arrays["s/bias"]
    save(path, arrays, layers)
    with pytest.raises(ModelError, match="lacks 's/bias'"):
        load_model(NAME, weights=path)


def test_other_layers_than_the_networks_are_refused(keras):
    path, arrays, layers = keras
    save(path, arrays, layers[:-1])
    with pytest.raises(ModelError, match="expected 6 layers with a module, found 5"):
        load_model(NAME, weights=path)
    layers[1]["type"] = "average_pool2d"
    save(path, arrays, layers)
    with pytest.raises(ModelError, match="'b' is a average_pool2d, but the network has a MaxPool2d"):
        load_model(NAME, weights=path)


def test_other_padding_is_refused(keras):
    path, arrays, layers = keras
    layers[0]["padding"] = "same"
    save(path, arrays, layers)
    with pytest.raises(ModelError, match="'a' must have padding 'valid', not 'same'"):
        load_model(NAME, weights=path)


def test_garbled_layer_list_is_refused(keras):
    path, arrays, layers = keras
    del layers[2]["output_shape"]
    save(path, arrays, layers)
    with pytest.raises(ModelError, match=r"missing required field `output_shape` - at `\$.layers\[2\]`"):
        load_model(NAME, weights=path)


def test_big_endian_weights_are_the_same_network(keras):
    path, arrays, layers = keras
    plain = load_model(NAME, weights=path).card.fingerprint
    save(path, {name: array.astype(">f4") for name, array in arrays.items()}, layers)
    assert load_model(NAME, weights=path).card.fingerprint == plain


def test_other_values_than_float32_are_refused_before_they_are_read(keras):
    path, arrays, layers = keras
    save(path, {**arrays, "s/bias": np.zeros(10)}, layers)
    with pytest.raises(ModelError, match="'s/bias' must be float32, not float64"):
        load_model(NAME, weights=path)


def test_a_single_array_instead_of_several_is_refused(keras):
    path, arrays, _ = keras
    with path.open("wb") as stream:
        np.save(stream, arrays["s/bias"])
    with pytest.raises(ModelError, match=r"net\.npz is cut off or not an npz file"):
        load_model(NAME, weights=path)


@pytest.mark.parametrize(
    ("number", "shape", "message"),
    [
        (3, [4, 4, 17], r"maps of the shape \(4, 4, 17\) are not the 256 inputs of fc1"),
        (3, [-4, -4, 16], r"maps of the shape \(-4, -4, 16\)"),
        (2, [16, 8, 8], r"'c' must have 16 maps, not the shape \(16, 8, 8\)"),
        (2, [8, 8, "16"], r"Expected `int`, got `str` - at `\$\.layers\[2\]\.output_shape"),
        (2, None, "Expected `array`, got `null`"),
    ],
)
def test_maps_that_do_not_fit_are_refused(keras, number, shape, message):
    path, arrays, layers = keras
    layers[number]["output_shape"] = shape
    save(path, arrays, layers)
    with pytest.raises(ModelError, match=message):
        load_model(NAME, weights=path)


@needs_data
def test_weights_of_another_network_are_refused(tmp_path):
    folder = Path(os.environ["IDC_DATA"]) / "weights"
    for ending in (".npz", ".json"):
        shutil.copyfile(folder / f"deepxplore-model2{ending}", tmp_path / f"other{ending}")
    with pytest.raises(ModelError, match="must have padding 'valid', not 'same'"):
        load_model(NAME, weights=tmp_path / "other.npz")
