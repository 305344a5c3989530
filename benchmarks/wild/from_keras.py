"""Networks of Keras with fresh weights, exported as ONNX by Keras itself (backend torch).

Its layer normalisation is in none: Keras 3.15 does not export it with this backend.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.wild.onnx_cases import inputs, runtime
from benchmarks.wild.subjects import Case, Subject


def _dense(keras: Any) -> Any:
    layers = keras.layers
    return keras.Sequential(
        [layers.Input((12,)), *(layers.Dense(24, "relu") for _ in range(2)), layers.Dense(5, "softmax")]
    )


def _pictures(keras: Any) -> Any:
    layers = keras.layers
    blocks = [
        (layers.Conv2D(8, 3, activation="relu"), layers.BatchNormalization(), layers.MaxPooling2D()) for _ in "ab"
    ]
    ends = [layers.GlobalAveragePooling2D(), layers.Dropout(0.3), layers.Dense(4)]
    return keras.Sequential([layers.Input((32, 32, 3)), *(layer for block in blocks for layer in block), *ends])


def _residual(keras: Any) -> Any:
    layers = keras.layers
    given = layers.Input((32, 32, 3))
    x = layers.Conv2D(8, 3, padding="same")(given)
    for _ in range(2):
        inner = layers.Conv2D(8, 3, padding="same", activation="swish")(layers.BatchNormalization()(x))
        x = layers.Add()([x, layers.Conv2D(8, 1)(inner)])
    return keras.Model(given, layers.Dense(6, "softmax")(layers.Flatten()(layers.AveragePooling2D(4)(x))))


def _recurrent(kind: str, keras: Any) -> Any:
    layers = keras.layers
    cell = getattr(layers, kind)
    return keras.Sequential(
        [layers.Input((10, 6)), cell(16, return_sequences=True), cell(12), layers.Dense(3, "softmax")]
    )


def _tokens(keras: Any) -> Any:
    layers = keras.layers
    hidden = [layers.Embedding(100, 16), layers.Conv1D(16, 3, activation="relu"), layers.GlobalMaxPooling1D()]
    return keras.Sequential(
        [layers.Input((20,), dtype="int64"), *hidden, layers.Dense(8, "gelu"), layers.Dense(1, "sigmoid")]
    )


def _attention(keras: Any) -> Any:
    layers = keras.layers
    given = layers.Input((10, 16))
    x = given + layers.MultiHeadAttention(2, 8)(given, given)
    return keras.Model(given, layers.Dense(4)(layers.GlobalAveragePooling1D()(layers.Dense(32, "relu")(x))))


_MADE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "dense": (_dense, ""),
    "convolutions": (_pictures, "pictures"),
    "residual, swish, batch norm": (_residual, "pictures"),
    "LSTM": (partial(_recurrent, "LSTM"), ""),
    "GRU": (partial(_recurrent, "GRU"), ""),
    "embedding, convolutions, gelu": (_tokens, "tokens"),
    "attention": (_attention, ""),
}
"""By name: what builds it, and the kind of its inputs."""


def subjects() -> Iterator[Subject]:
    """Return one subject for each network."""
    for name, (build, kind) in _MADE.items():
        yield Subject("keras", name, "keras", partial(_case, build, kind))


def _case(build: Callable[[Any], Any], kind: str, folder: Path) -> Case:
    os.environ["KERAS_BACKEND"] = "torch"
    import keras

    keras.utils.set_random_seed(0)
    model, path = build(keras), folder / "net.onnx"
    made = inputs(tuple(model.input_shape[1:]), kind)
    model(made[:1])  # one that was never called is not exported
    model.export(str(path), format="onnx", verbose=False)
    return Case(str(path), made, runtime(path))
