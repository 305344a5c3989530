"""Pages on small transformers of a setup file: parts of layers, what a neuron is, heatmaps over patches and tokens."""

import numpy as np
import pytest

from idc_core.models import MODELS, load_model
from idc_core.opening import setup_files
from studio.jobs.explanations import explain, marks_of, read_tokens
from studio.jobs.results import open_view
from studio.shell.pages import PAGES
from studio.state.setup import Setup
from tests.pages.reading import open_page, text

SETUP = """
import numpy as np
import torch
from torch import nn

import idc_core as idc
from idc_core.datasets import Items

WORDS = ("[PAD]", "[UNK]", "[CLS]", "film", "book", "##s", "good", "bad", "very", "play", "##ing")

@idc.dataset("page-patches", class_names=("low", "middle", "high"))
def pictures(split):
    rng, targets = np.random.default_rng(split == "test"), np.arange(60) % 3
    return (rng.uniform(0, 0.3, (60, 1, 8, 8)) + 0.3 * targets[:, None, None, None]).clip(0, 1), targets

@idc.dataset("page-pieces", class_names=("good", "bad"))
def pieces(split):
    rng, targets = np.random.default_rng(split == "test"), np.arange(60) % 2
    ids = rng.integers(3, 6, (60, 9))
    ids[:, 0], ids[:, 3] = 2, 6 + targets
    ids[np.arange(9) >= rng.integers(5, 10, 60)[:, None]] = 0
    texts = tuple(" ".join(WORDS[one] for one in row if one) for row in ids)
    return Items(ids, targets, WORDS, texts, special=(0, 1, 2))

class Tokens(nn.Module):
    def __init__(self, first, classes):
        super().__init__()
        self.first = first
        self.start = nn.Parameter(torch.randn(1, 1, 8))
        block = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
        self.blocks = nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
        self.scores = nn.Linear(8, classes)

class Patches(Tokens):
    def forward(self, x):
        patches = self.first(x).flatten(2).transpose(1, 2)
        return self.scores(self.blocks(torch.cat([self.start.expand(len(x), -1, -1), patches], 1))[:, 0])

class Words(Tokens):
    def forward(self, ids):
        here = ids != 0
        tokens = self.blocks(self.first(ids), src_key_padding_mask=~here)
        return self.scores((tokens * here[..., None]).sum(1) / here.sum(1, keepdim=True))

def random_net(kind, *given):
    torch.manual_seed(0)
    net = kind(*given)
    with torch.no_grad():
        for value in net.parameters():
            value.add_(torch.randn_like(value) * 0.2)
    return net

@idc.network("page-vit", data="page-patches")
def vit():
    return random_net(Patches, nn.Conv2d(1, 8, 2, stride=2), 3)

@idc.network("page-reader", data="page-pieces")
def reader():
    return random_net(Words, nn.Embedding(11, 8, padding_idx=0), 2)
"""


@pytest.fixture(scope="module")
def setup(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "my_setup.py"
    path.write_text(SETUP)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(setup_files.VARIABLE, str(path))
        setup_files.watch([path])
        setup_files.refresh()
        yield path
    setup_files._close_all()


def shown(name, **parameters):
    app = open_page(name, **parameters)
    assert not app.exception
    assert not app.error
    return app


def test_parts_are_offered(setup):
    assert MODELS["page-vit"].layers == (
        "first",
        "blocks.layers.0.self_attn",
        "blocks.layers.0.linear1",
        "blocks.layers.0.linear2",
        "blocks.layers.0",
        "blocks.layers.0@class",
        "blocks.layers.0@heads",
        "blocks.layers.1.self_attn",
        "blocks.layers.1.linear1",
        "blocks.layers.1.linear2",
        "blocks.layers.1@class",
        "blocks.layers.1@heads",
        "blocks",
        "scores",
    )
    reader = MODELS["page-reader"].layers
    assert "blocks.layers.1@heads" in reader
    assert not any("@class" in name or "@last" in name for name in reader)  # all tokens are read


@pytest.mark.parametrize(
    ("model", "layer", "said"),
    [
        ("page-vit", "blocks.layers.0@class", "one feature of the class token"),
        ("page-vit", "blocks.layers.1@heads", "one attention head"),
        ("page-vit", "blocks.layers.0.linear1", "one unit, which every token has"),
        ("page-reader", "blocks.layers.0", "averaged over tokens that are no padding"),
        ("page-reader", "blocks.layers.0@last", "the last token that is no padding"),
    ],
)
def test_the_page_says_what_a_neuron_is(setup, model, layer, said):
    app = shown("neurons", model=model, layer=layer)
    assert f"layer {layer}" in text(app)
    assert said in text(app)


OTHERS = [name for name, page in PAGES.items() if page.setup != "none" and name != "neurons"]


@pytest.mark.parametrize("name", ["overview", "clusters", "coverage", "layers"])
def test_heads_on_other_pages(setup, name):
    shown(name, model="page-vit", layer="blocks.layers.1@heads")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "layer"), [("page-vit", "blocks.layers.1@class"), ("page-reader", "blocks.layers.1.linear1")]
)
@pytest.mark.parametrize("name", OTHERS)
def test_all_pages(setup, name, model, layer):
    shown(name, model=model, layer=layer)
    app = open_page(name, model=model, layer="blocks.layers.1@heads")
    assert not app.exception
    # A search by gradients says why it cannot aim at heads.
    assert all("no module of their own" in error.value for error in app.error)


def captions(app):
    return [image.caption for element in app.get("image") for image in element.proto.imgs]


def test_relevance_of_patches_lies_over_the_picture(setup):
    app = shown("relevance", model="page-vit", at="blocks.layers.0")
    assert app.selectbox(key="at").value == "blocks.layers.0"
    assert not any("@" in caption for caption in captions(app))
    view = open_view(Setup("page-vit", "page-patches", "scores", 3, ()))
    one = explain(view, 0, "epsilon", 0, {}, "")
    assert {"blocks", "blocks.layers.1.linear1", "blocks.layers.0"} <= set(one.over_input)
    values = one.layers["blocks.layers.0"]
    assert values.shape == (17, 8)
    spread = one.seen_at("blocks.layers.0", view.test, 0).maps["input"]
    for row, column in np.ndindex(8, 8):  # patches of two by two pixels behind the class token
        slow = values[1 + (row // 2) * 4 + column // 2].sum() / 4
        np.testing.assert_allclose(spread[row, column], slow, rtol=1e-9)
    assert one.maps["blocks.layers.0"].shape == (4, 4)
    assert one.seen_at("input", view.test, 0).layers["input"] is one.layers["input"]


def test_relevance_of_tokens_lies_over_the_text(setup):
    app = shown("relevance", model="page-reader", at="blocks")
    html = " ".join(str(element.proto.body) for element in app.get("html"))
    assert "<small>[CLS]</small>" in html
    assert "##" not in html
    view = open_view(Setup("page-reader", "page-pieces", "scores", 3, ()))
    words = read_tokens(view.test, 0)
    assert marks_of(view.test) == {"[CLS]"}
    kept = view.test.inputs[0] != 0
    one = explain(view, 0, "epsilon", 0, {}, "")
    seen = one.seen_at("blocks", view.test, 0).layers["input"]
    np.testing.assert_allclose(seen[: len(words)], one.layers["blocks"].sum(1)[kept], rtol=1e-9)
    np.testing.assert_array_equal(one.layers["blocks"][~kept], 0)  # padding that is masked has no relevance


def test_an_address_with_an_unknown_part_opens_the_default_layer(setup):
    app = shown("overview", model="page-vit", layer="blocks.layers.1@nothing")
    assert f"layer {MODELS['page-vit'].default_layer}" in text(app)
    assert load_model("page-vit").card.layers == MODELS["page-vit"].layers
