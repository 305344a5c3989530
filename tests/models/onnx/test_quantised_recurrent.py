"""A quantised LSTM as floats: what onnxruntime returns beside it is its rounding of inputs and states, step by step."""

import numpy as np
import torch
from onnx import helper

from idc_core.models.onnx import load_onnx
from tests.models.onnx.test_control import constant, theirs
from tests.models.onnx.test_quantised import quantised_file

RANDOM = np.random.default_rng(3)
STEPS, INPUTS, STATES = 24, 12, 8


def rounded(x):
    """An array in 256 steps between its extremes, or 0, as onnxruntime rounds it."""
    low, high = min(x.min(), 0), max(x.max(), 0)
    step = (high - low) / 255 or 1
    zero = np.rint(-low / step)
    return (np.clip(np.rint(x / step) + zero, 0, 255) - zero) * step


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, w, r, bias, turned, rounding):
    """One direction over (steps, inputs), one step after the other."""
    given = rounding(x[::-1] if turned else x) @ w
    h = c = np.zeros(STATES)
    states = []
    for one in given:
        i, o, f, new = np.split(one + rounding(h) @ r + bias[: 4 * STATES] + bias[4 * STATES :], 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(new)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    return np.array(states[::-1] if turned else states)


def test_a_quantised_lstm_is_the_one_of_floats_and_the_rest_is_rounding(tmp_path):
    """One number far from the others makes the steps of the inputs coarse, as in embeddings of text."""
    whole = {name: RANDOM.integers(-60, 60, (2, n, 4 * STATES)) for name, n in (("w", INPUTS), ("r", STATES))}
    scales = {"w": np.array([0.03, 0.02], np.float32), "r": np.array([0.02, 0.03], np.float32)}
    bias = RANDOM.normal(size=(2, 8 * STATES)).astype(np.float32)
    names = ["w", "r", "b", "", "", "", "", "w_scale", "w_zero", "r_scale", "r_zero"]
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        helper.make_node(
            "DynamicQuantizeLSTM",
            ["t", *names],
            ["h"],
            domain="com.microsoft",
            hidden_size=STATES,
            direction="bidirectional",
        ),
        helper.make_node("Transpose", ["h"], ["y"], perm=[2, 0, 1, 3]),
    ]
    constants = [
        constant(bias, "b"),
        *(constant(values, name, np.int8) for name, values in whole.items()),
        *(constant(values, f"{name}_scale") for name, values in scales.items()),
        *(constant([0, 0], f"{name}_zero", np.int8) for name in whole),
    ]
    path = quantised_file(tmp_path, nodes, constants, (1, STEPS, INPUTS))
    x = RANDOM.normal(0, 0.2, size=(1, STEPS, INPUTS)).astype(np.float32)
    x[0, 5, 3] = -9
    with torch.no_grad():
        ours = load_onnx(path)(torch.from_numpy(x)).numpy()[0]
    real = {name: whole[name] * scales[name][:, None, None].astype(np.float64) for name in whole}

    def slow(rounding):
        both = [lstm(x[0], real["w"][one], real["r"][one], bias[one], one == 1, rounding) for one in range(2)]
        return np.stack(both, 1)

    found = theirs(path, x)[0]
    assert np.allclose(ours, slow(lambda array: array), atol=1e-5)
    apart = np.abs(found - ours).max()
    assert apart > 0.03
    assert np.abs(found - slow(rounded)).max() < apart / 5  # a number that lies between two steps may go to either
