"""The real `fetch_openml` against a stand-in for the server: it hands over what `openml.py` expects."""

import gzip
import hashlib
import io
import json

import numpy as np
import pytest

from idc_core.datasets import load_dataset, mnist
from idc_core.datasets.openml import openml_source
from idc_core.errors import DataError

PIXELS = np.random.default_rng(5).integers(0, 256, (30, 784))
LABELS = [*range(10)] * 3
URL = "https://www.openml.org/data/v1/download/1/mnist_784.arff"


def table(quote=""):
    lines = ["@RELATION mnist_784", *(f"@ATTRIBUTE pixel{n} real" for n in range(1, 785))]
    classes = [f"{quote}{label}{quote}" for label in LABELS]
    lines += [f"@ATTRIBUTE class {{{','.join(classes[:10])}}}", "@DATA"]
    lines += [",".join(map(str, [*row, label])) for row, label in zip(PIXELS, classes, strict=True)]
    return "\n".join(lines).encode() + b"\n"


def server(content, md5):
    """The answers of the server by the end of the address."""
    base = {"is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": "0"}
    features = [
        {**base, "index": str(n), "name": f"pixel{n + 1}", "data_type": "numeric", "is_target": "false"}
        for n in range(784)
    ]
    nominal = {"nominal_value": list("0123456789"), "data_type": "nominal", "is_target": "true"}
    features.append({**base, **nominal, "index": "784", "name": "class"})
    description = {"id": "1", "name": "mnist_784", "version": "1", "format": "ARFF", "status": "active"}
    description.update(url=URL, md5_checksum=md5, description="digits", file_id="1")
    answers = {
        "data/list/data_name/mnist_784/limit/2/data_version/1": {
            "data": {"dataset": [{"did": 1, "name": "mnist_784", "version": 1, "status": "active"}]}
        },
        "json/data/1": {"data_set_description": description},
        "data/features/1": {"data_features": {"feature": features}},
        "data/qualities/1": {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "30"}]}},
    }
    return {**{end: json.dumps(answer).encode() for end, answer in answers.items()}, "mnist_784.arff": content}


class Answer(io.BytesIO):
    def info(self):
        return {"Content-Encoding": "gzip"}


@pytest.fixture
def openml_server(places, monkeypatch):
    def install(content, md5):
        answers = server(content, md5)

        def urlopen(request):
            end = next(end for end in answers if request.full_url.endswith(end))
            return Answer(gzip.compress(answers[end]))

        monkeypatch.setattr("sklearn.datasets._openml.urlopen", urlopen)
        counts = {"train": (2,) * 10, "test": (1,) * 10}
        monkeypatch.setattr(mnist, "_SOURCE", openml_source("mnist_784", (28, 28), counts, 15))
        return places[1]

    return install


@pytest.mark.parametrize("quote", ["", "'"])
def test_images_and_labels_arrive_in_order(openml_server, quote):
    openml_server(table(quote), hashlib.md5(table(quote)).hexdigest())
    data = load_dataset("mnist", "train")
    np.testing.assert_array_equal(data.inputs.reshape(20, -1), (PIXELS[:20] / 255.0).astype(np.float32))
    assert data.targets.tolist() == LABELS[:20]


@pytest.mark.filterwarnings("ignore:Invalid cache")
def test_a_wrong_checksum_is_refused_and_leaves_nothing(openml_server):
    home = openml_server(table().replace(b"255", b"254"), hashlib.md5(table()).hexdigest())
    with pytest.raises(DataError, match="md5 checksum"):
        load_dataset("mnist", "train")
    assert list(home.iterdir()) == []
