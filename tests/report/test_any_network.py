"""Reports of every kind of network and data, with names that mean harm: escaped, bounded, and all there."""

import json
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core.analysis.filtering import Conditions
from idc_core.datasets import DATASETS, Items
from idc_core.models import MODELS
from idc_core.opening.live import enter_live
from idc_core.report.writing import make_files
from idc_core.store.notes import Note
from tests.report.reading import SCHEMA, Page, gathered

HARM = "<script>alert(1)</script>"
NAMES = (HARM, '"><img src=http://a.b/c.png onerror=alert(2)>', "{{ 7 * 7 }}", "x" * 5_000, "a\0b\u202ec\ud800", "\n\n")
WORDS = ("", "?", *NAMES, "good", "bad")


def net(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, outputs))


class Words(nn.Module):
    """Reads token ids with an LSTM."""

    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.last = (
            nn.Embedding(len(WORDS), 6),
            nn.LSTM(6, 8, batch_first=True),
            nn.Linear(8, 2),
        )

    def forward(self, ids):
        return self.last(self.lstm(self.embedding(ids))[0][:, -1])


def floats(*shape):
    return np.random.default_rng(0).normal(size=shape)


def texts():
    ids = np.random.default_rng(0).integers(2, len(WORDS), (60, 400))
    return Items(ids, np.arange(60) % 2, WORDS, tuple(" ".join(WORDS[one] for one in row) for row in ids))


KINDS = {
    "table": lambda: (net(6, 6), (floats(60, 6), np.arange(60) % 6), NAMES),
    "regression": lambda: (net(5, 1), (floats(60, 5), floats(60)), ()),
    "wide table": lambda: (net(3_000, 2), (floats(40, 3_000), np.arange(40) % 2), NAMES[:2]),
    "many classes": lambda: (
        net(4, 3_000),
        (floats(300, 4), np.arange(300) * 10),
        [f"{HARM}{i}" for i in range(3_000)],
    ),
    "pictures": lambda: (
        nn.Sequential(nn.Conv2d(3, 4, 9, 8), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 38 * 38, 2)),
        (floats(12, 3, 310, 310).clip(0, 1), np.arange(12) % 2),
        NAMES[:2],
    ),
    "series": lambda: (
        nn.Sequential(nn.Conv1d(2, 4, 5), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 28, 2)),
        (floats(40, 2, 32), np.arange(40) % 2),
        NAMES[:2],
    ),
    "texts through an LSTM": lambda: (Words(), texts(), NAMES[:2]),
}


@pytest.fixture(params=KINDS)
def material(request):
    torch.manual_seed(0)
    before = [dict(registry) for registry in (MODELS, DATASETS)]
    model, data, names = KINDS[request.param]()
    entry = enter_live(model, data, data, name="harmful", class_names=names)
    loaded = idc.load_model("harmful")
    train, test = (idc.load_dataset(entry.dataset, split) for split in ("train", "test"))
    yield gathered(loaded, train, test, entry.layers[0], 3)
    for registry, kept in zip((MODELS, DATASETS), before, strict=True):
        registry.clear()
        registry.update(kept)


@pytest.mark.sampled(3)
def test_nothing_of_it_is_markup_and_all_of_it_is_bounded(material):
    notes = [Note("note-1", "2026-11-23T10:00:00+00:00", HARM * 99, HARM, HARM + "\n" + "y" * 1_900, {})] * 30
    files = make_files(material, date=HARM, command=f"run {HARM}", notes=notes)
    read = Page(files.page)
    assert read.outside == []
    assert read.scripts == 1
    assert not any("onerror" in attributes or tag in ("iframe", "object", "a") for tag, attributes in read.tags)
    said = "\n".join(read.texts)
    assert HARM in said
    assert "{{ 7 * 7 }}" in said or "{{ 7 * 7 }}" not in material.test.class_names
    assert "\0" not in said
    assert max(map(len, read.texts)) < 500
    assert len(read.texts) < 1_500
    assert len(files.page) < 4_000_000
    document = json.loads(files.json)
    jsonschema.validate(document, SCHEMA)
    assert len(files.json) < 1_500_000
    shown = [one for cell in document["uncovered"]["listed"] for one in cell["closest"]]
    assert all(bool(one["picture"]) != bool(one["text"]) for one in shown)
    assert all(len(one["picture"]) < 60_000 and len(one["true"]) <= 40 for one in shown)


@pytest.mark.parametrize("material", ["regression"], indirect=True)
def test_the_error_of_a_regression_is_that_of_the_tests_looked_at(material):
    cell = tuple(material.analysis.assignments[0].tolist())
    some = replace(material, conditions=Conditions(cell=cell))
    rows = (material.analysis.assignments == cell).all(1)
    away = material.analysis.confidence.astype(np.float64)[rows] - material.test.targets[rows]
    assert 0 < rows.sum() < len(rows)
    assert some.overview.rmse == pytest.approx(np.sqrt((away**2).mean()))
    assert material.overview.rmse == material.analysis.rmse != some.overview.rmse


@pytest.mark.sampled(3)
def test_what_is_not_defined_is_said(material):
    document = json.loads(make_files(material, date="2026-11-23").json)
    classes = len(material.test.class_names)
    assert (document["coverage"]["accuracy"] is None) == (classes == 0)
    assert (document["coverage"]["rmse"] is None) == (classes > 0)
    missing = document["class_errors"]["missing"]
    if classes == 0:
        assert "there are no classes" in missing
    elif classes > 1_000:
        assert "3,000 classes are not compared" in missing
    else:
        assert missing == ""
    for one in document["criteria"]:
        assert (one["score"] is None) == bool(one["missing"])
