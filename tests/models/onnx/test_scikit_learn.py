"""Networks and linear models that scikit-learn made, from ONNX: the same scores, before any softmax."""

import numpy as np
import onnx
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import idc_core as idc
from idc_core.models.onnx.class_names import names_in
from tests.lrp.networks import total


def learn(model, inputs, targets, path, **options):
    """Train a network of scikit-learn and write it as ONNX."""
    from skl2onnx import to_onnx

    model.fit(inputs, targets)
    path.write_bytes(to_onnx(model, inputs[:1].astype(np.float32), **options).SerializeToString())
    return model


@pytest.mark.parametrize("options", [{}, {"options": {"zipmap": False}}])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_gives_its_scores_before_the_softmax(tmp_path, options):
    inputs, targets = load_digits(return_X_y=True)
    inputs, path = (inputs / 16).astype(np.float32), tmp_path / "mlp.onnx"
    names = np.array([f"digit {target}" for target in targets])
    model = learn(MLPClassifier((16, 12), max_iter=8, random_state=0), inputs, names, path, **options)
    network = idc.load_model(path)
    with torch.no_grad():
        found = torch.softmax(network(torch.from_numpy(inputs)), 1)
    np.testing.assert_allclose(found, model.predict_proba(inputs), atol=1e-4)
    assert network.remarks[-1] == "The softmax at its end is left out: scores before it are analysed."
    assert network.card.layers == ("MatMul", "MatMul1", "MatMul2")
    assert network.card.default_layer == "MatMul1"


@pytest.mark.filterwarnings("ignore")
def test_a_binary_classifier_of_scikit_learn_gives_two_scores(tmp_path):
    inputs, targets = load_breast_cancer(return_X_y=True)
    inputs, path = inputs.astype(np.float32), tmp_path / "cancer.onnx"
    network = MLPClassifier((8,), max_iter=40, random_state=0)
    model = learn(make_pipeline(StandardScaler(), network), inputs, targets, path)
    idc.dataset("cancer", class_names=("malignant", "benign"))(lambda split: (inputs, targets))
    network = idc.load_model(path, data="cancer")
    with torch.no_grad():
        found = torch.softmax(network(torch.from_numpy(inputs)), 1)
    np.testing.assert_allclose(found, model.predict_proba(inputs), atol=1e-4)
    assert "The sigmoid at its end is left out: the score before it is analysed." in network.remarks
    assert network.remarks[-1].startswith("It gives one score x: -x/2 and x/2 are analysed")
    layer = network.card.default_layer
    shares = total(idc.relevance(network, inputs[:8], [layer], bias="redistribute")[layer])
    with torch.no_grad():
        np.testing.assert_allclose(shares, network(torch.from_numpy(inputs[:8])).max(1).values, rtol=1e-3)


@pytest.mark.parametrize(("classes", "end"), [(2, "sigmoid"), (3, "softmax")])
def test_a_logistic_regression_of_scikit_learn_is_one_dense_layer(tmp_path, classes, end):
    inputs, targets = load_wine(return_X_y=True)
    kept, path = targets < classes, tmp_path / "wine.onnx"
    inputs, targets = (inputs[kept] / inputs.max(0)).astype(np.float32), targets[kept]
    model = learn(LogisticRegression(), inputs, targets, path)
    idc.dataset("wine")(lambda split: (inputs, targets))
    network = idc.load_model(path, data="wine")
    with torch.no_grad():
        found = torch.softmax(network(torch.from_numpy(inputs)), 1)
    np.testing.assert_allclose(found, model.predict_proba(inputs), atol=1e-4)
    assert network.card.layers == ("LinearClassifier",)
    assert f"The {end} at its end is left out: scores before it are analysed." in network.remarks


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("zipmap", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_names_are_those_of_the_whole_classifier(tmp_path, classes, zipmap):
    inputs, targets = load_wine(return_X_y=True)
    kept, path, names = targets < classes, tmp_path / "wine.onnx", ("barolo", "grignolino", "barbera")[:classes]
    inputs, labels = inputs[kept] / inputs.max(0), np.array([names[target] for target in targets[kept]])
    for model, told in ((LogisticRegression(), True), (OneVsRestClassifier(LogisticRegression()), zipmap)):
        made = learn(model, inputs, labels, path, options={"zipmap": zipmap})
        expected = tuple(made.classes_) if told else ()
        assert names_in(onnx.load(path)) == expected


@pytest.mark.filterwarnings("ignore")
def test_one_versus_the_rest_and_quantities_of_scikit_learn(tmp_path):
    inputs, targets = load_wine(return_X_y=True)
    inputs, path = (inputs / inputs.max(0)).astype(np.float32), tmp_path / "wine.onnx"
    given = torch.from_numpy(inputs)
    model = learn(OneVsRestClassifier(LogisticRegression()), inputs, targets, path)
    np.testing.assert_allclose(idc.load_model(path)(given).detach(), model.predict_proba(inputs), atol=1e-4)
    model = learn(LinearRegression(), inputs, targets.astype(np.float32), path)
    np.testing.assert_allclose(idc.load_model(path)(given).detach()[:, 0], model.predict(inputs), atol=1e-4)
