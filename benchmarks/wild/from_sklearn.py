"""Networks and other models of scikit-learn, exported by skl2onnx; what is no network is to be refused as such."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime  # noqa: F401 - before skl2onnx, which imports it late
import skl2onnx
from sklearn import datasets
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from benchmarks.wild.onnx_cases import runtime
from benchmarks.wild.subjects import Case, Subject

_MADE: dict[str, tuple[BaseEstimator, str]] = {
    "MLPClassifier, digits": (MLPClassifier((32, 16), max_iter=60, random_state=0), "digits"),
    "MLPClassifier tanh, wine": (make_pipeline(StandardScaler(), MLPClassifier((16,), "tanh", random_state=0)), "wine"),
    "MLPClassifier logistic, two classes": (
        make_pipeline(MinMaxScaler(), MLPClassifier((12, 12), "logistic", random_state=0)),
        "breast_cancer",
    ),
    "MLPRegressor, diabetes": (
        make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(20, 10), random_state=0)),
        "diabetes",
    ),
    "LogisticRegression, digits": (make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)), "digits"),
    "LogisticRegression, two classes": (
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)),
        "breast_cancer",
    ),
    "SGDClassifier log loss, wine": (
        make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", random_state=0)),
        "wine",
    ),
    "LinearRegression, diabetes": (LinearRegression(), "diabetes"),
    "Ridge, diabetes": (make_pipeline(MinMaxScaler(), Ridge()), "diabetes"),
    "RandomForestClassifier, wine": (RandomForestClassifier(10, random_state=0), "wine"),
    "SVC, wine": (make_pipeline(StandardScaler(), SVC()), "wine"),
    "KNeighborsClassifier, wine": (KNeighborsClassifier(), "wine"),
}


def subjects() -> Iterator[Subject]:
    """Return one subject for each model."""
    for name, (model, data) in _MADE.items():
        yield Subject("sklearn", name, "scikit-learn", partial(_case, model, data))


def _case(model: BaseEstimator, data: str, folder: Path) -> Case:
    x, y = getattr(datasets, f"load_{data}")(return_X_y=True)
    x = x.astype(np.float32)
    path = folder / "model.onnx"
    path.write_bytes(skl2onnx.to_onnx(model.fit(x, y), x[:1]).SerializeToString())
    some = np.random.default_rng(0).permutation(len(x))[:150]
    return Case(str(path), x[some], runtime(path), regression=data == "diabetes")
