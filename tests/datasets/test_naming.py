"""Inputs by name in data of a person's own: the main one is kept, the others are recognised, checked and computed."""

import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core.datasets import Items
from idc_core.datasets.naming import WAYS, Naming, Other, apart
from idc_core.errors import DataError, ModelError
from idc_core.models.named_inputs import put_naming
from idc_core.opening.live import enter_live

RNG = np.random.default_rng(0)
IDS = RNG.integers(2, 9, (40, 6))
IDS[RNG.integers(2, 7, 40)[:, None] <= np.arange(6)] = 0
MASK = (IDS != 0).astype(np.int64)
TARGETS = np.arange(40) % 3


@pytest.mark.parametrize(
    ("value", "way"),
    [
        (MASK, "mask"),
        (MASK.astype(bool), "mask"),
        (MASK.astype(np.float32), "mask"),
        (MASK.sum(1), "length"),
        (np.zeros((40, 6), np.int32), "zeros"),
        (np.tile(np.arange(6), (40, 1)), "same"),
        (np.full((40, 2, 2), 0.5), "same"),
        (np.full(40, 3), "same"),
    ],
)
def test_what_follows_from_the_main_input_is_recognised_and_computed_again(value, way):
    main, naming = apart({"ids": IDS, "other": value}, 0, "here")
    assert main is IDS
    assert naming == Naming("ids", (naming.others[0],))
    assert (naming.others[0].name, naming.others[0].way) == ("other", way)
    seen = []

    class Net(nn.Module):
        def forward(self, ids, other):
            seen.append(other)
            return ids

    net = Net()
    put_naming(net, naming)
    for rows in (slice(None), slice(3, 5)):
        net(torch.tensor(IDS[rows]))
        assert seen[-1].numpy().dtype == value.dtype
        np.testing.assert_array_equal(seen[-1], value[rows])
    given = torch.ones(2, 6)
    net(torch.tensor(IDS[:2]), other=given)
    assert seen[-1] is given


@pytest.mark.parametrize("padding", [0, 1, 7])
def test_the_id_of_padding_is_seen_from_the_mask(padding):
    ids = np.where(MASK == 0, padding, 9 + IDS)
    _, naming = apart({"ids": ids, "mask": MASK}, 0, "here")
    assert naming.others == (Other("mask", "mask", "int64", padding),)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ids": IDS, "mask": 1 - MASK}, r"^here has the input 'mask', which does not follow from 'ids'"),
        ({"ids": IDS, "mask": np.where(np.arange(40)[:, None] == 39, 1, MASK)}, "does not follow"),
        ({"ids": IDS, "table": RNG.normal(size=(40, 3))}, "Let the network itself take one array"),
        ({"ids": IDS, "names": np.array(["a"] * 40)}, "does not follow"),
        ({"ids": IDS, "mask": MASK[:7]}, r"'ids' of shape \(40, 6\) and 'mask' of shape \(7, 6\)"),
        ({}, "no inputs"),
    ],
)
def test_what_does_not_follow_is_refused(given, said):
    with pytest.raises(DataError, match=said):
        apart(given, 0, "here")


class Reader(nn.Module):
    """Reads tokens and their mask, as networks of transformers are called."""

    def __init__(self):
        super().__init__()
        self.words, self.hidden, self.scores = nn.Embedding(20, 8), nn.Linear(8, 5), nn.Linear(5, 3)

    def forward(self, input_ids=None, attention_mask=None, lengths=None):
        x = self.words(input_ids) * attention_mask[..., None]
        return {"logits": self.scores(torch.relu(self.hidden(x.sum(1) / lengths[:, None])))}


def named(ids):
    return {"input_ids": ids, "attention_mask": (ids != 0).astype(np.float32), "lengths": (ids != 0).sum(1)}


def test_a_network_on_such_data_goes_through_the_engine():
    torch.manual_seed(0)
    model = Reader()
    entry = enter_live(model, (named(IDS), TARGETS), (named(IDS[:20]), TARGETS[:20]))
    network, tests = idc.load_model(entry.name), idc.load_dataset(entry.dataset)
    assert network.card.recipe["remarks"] == (
        "Inputs beside 'input_ids': attention_mask is 1 where the main input is not 0, the id of padding; lengths is "
        "the number of tokens, at least 1, that are not 0, the id of padding.",
    )
    assert tests.naming.main == "input_ids"
    np.testing.assert_array_equal(tests.inputs, IDS[:20])
    found = idc.relevance(network, tests, ["input", "hidden"], "z")
    tensors = {name: torch.tensor(value) for name, value in named(IDS[:20]).items()}
    expected = idc.relevance(model, tensors, ["input", "hidden"], "z")
    for layer in expected:
        np.testing.assert_allclose(found[layer], expected[layer], rtol=1e-6, atol=1e-7)
    train = idc.load_dataset(entry.dataset, "train")
    assert idc.analyze(network, train, tests, layer="hidden", m=2).covered > 0
    again = enter_live(model, train, tests, name="again")
    assert idc.load_dataset(again.dataset).naming == tests.naming


def test_readers_may_give_names_to_items_with_words_and_name_the_padding():
    ids = np.where(IDS == 0, 1, IDS)

    @idc.dataset("named-words")
    def read(split):
        given = {"input_ids": ids, "attention_mask": MASK}
        return Items(given, TARGETS, tuple("abcdefghij"))

    found = idc.load_dataset("named-words")
    assert found.padding == 1
    assert found.vocabulary[2] == "c"
    plain = idc.dataset("plain-words")(lambda split: Items(ids, TARGETS, tuple("abcdefghij"), special=(1, 1)))
    assert plain
    assert idc.load_dataset("plain-words").fingerprint != found.fingerprint


def test_splits_that_differ_are_refused():
    @idc.dataset("two-ways")
    def read(split):
        other = MASK if split == "train" else np.zeros_like(MASK)
        return {"input_ids": IDS, "attention_mask": other}, TARGETS

    with pytest.raises(DataError, match="attention_mask is 0, but it was read before that attention_mask is 1 where"):
        idc.load_dataset("two-ways", "train")


def test_names_that_the_network_does_not_take_are_told():
    data = {"tokens": IDS, "mask": MASK}, TARGETS
    with pytest.raises(ModelError, match="unexpected keyword argument 'tokens'"):
        enter_live(Reader(), data, data)
    assert set(WAYS) == {"mask", "length", "zeros"}


class Segmenting(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.last = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 3, 1)

    def forward(self, x):
        return {"out": self.last(torch.relu(self.conv(x)))}


def test_what_is_explained_is_part_of_the_network_and_of_its_fingerprint():
    pictures = RNG.uniform(size=(12, 1, 6, 6)), TARGETS[:12]
    torch.manual_seed(0)
    model = Segmenting()
    with pytest.raises(ModelError, match=r"shape \(3, 3, 6, 6\); expected .*explain='mean-pixels'"):
        enter_live(model, pictures, pictures)
    prints = set()
    for explain in ("mean-pixels", lambda output: output["out"][:, :, 2, 2]):
        entry = enter_live(model, pictures, pictures, name="seg", explain=explain)
        network, tests = idc.load_model("seg"), idc.load_dataset(entry.dataset)
        prints.add(network.card.fingerprint)
        with torch.no_grad():
            whole = model(torch.tensor(tests.inputs))
            expected = whole["out"].mean((2, 3)) if explain == "mean-pixels" else explain(whole)
            torch.testing.assert_close(network(torch.tensor(tests.inputs)), expected)
        assert entry.layers == ("conv", "last")
        assert network.remarks[0].startswith("Explained and analysed: ")
        train = idc.load_dataset(entry.dataset, "train")
        assert idc.analyze(network, train, tests, layer="conv", m=2).covered > 0
    assert len(prints) == 2
