import codecs
import pickle
import zipfile

import numpy as np
import pytest

from idc_core.datasets import load_dataset
from idc_core.datasets.newsgroups import GROUPS
from idc_core.datasets.words import build_vocabulary, encode_texts
from idc_core.errors import DataError
from tests.datasets.dataset_files import NEWS_ZIP, news_members, write_zip

HARD = {
    "1": b"Subject: x\n\nBob wrote:\n> old\n| older\nIn article <1> c writes:\nnew text\n\nBob\n",
    "2": b"Subject: only headers\n",
    "3": b"Subject: x\n\nno footer here",
    "4": "Subject: x\n\nd\xe9j\xe0 vu\n-----\nsignature\n\n\n".encode("latin-1"),
    "5": b"Subject: x\n\n\n\n",
}


def test_texts_are_stripped_exactly_as_scikit_learn_strips_them(places, tmp_path):
    from sklearn.datasets import fetch_20newsgroups
    from sklearn.utils import Bunch

    write_zip(
        places[0] / "20newsgroups" / NEWS_ZIP,
        {**news_members(), **{f"20news-bydate-test/sci.med/{n}": text for n, text in HARD.items()}},
    )
    bunch = Bunch(
        data=[text.decode("latin-1") for text in HARD.values()],
        target=np.zeros(5, int),
        target_names=["sci.med"],
        filenames=np.array(list(HARD)),
    )
    cache = codecs.encode(pickle.dumps({"train": bunch, "test": bunch}), "zlib_codec")
    (tmp_path / "20news-bydate_py3.pkz").write_bytes(cache)
    stripped = fetch_20newsgroups(
        data_home=tmp_path,
        subset="test",
        remove=("headers", "footers", "quotes"),
        shuffle=False,
        download_if_missing=False,
    ).data
    texts = load_dataset("20newsgroups").texts
    assert all(text in texts for text in stripped)
    assert "new text" in texts
    assert not any("Subject" in text or "> old" in text for text in texts)


def test_vocabulary_is_ranked_by_count_then_word_and_comes_from_the_training_split(places):
    members = news_members(1)
    members["20news-bydate-test/sci.med/9"] = b"Subject: x\n\nunheardof word"
    write_zip(places[0] / "20newsgroups" / NEWS_ZIP, members, zipfile.ZIP_DEFLATED)
    train, test = load_dataset("20newsgroups", "train"), load_dataset("20newsgroups", "test")
    assert train.vocabulary == test.vocabulary
    assert not train.is_spelt
    assert "unheardof" not in test.vocabulary
    row = next(ids for ids, text in zip(test.inputs, test.texts, strict=True) if text == "unheardof word")
    assert row[:3].tolist() == [1, 1, 0]
    assert test.class_names == GROUPS


def test_build_vocabulary_and_encode_by_hand():
    vocabulary = build_vocabulary(["The cat, the dog", "don't THE_cat 42"])
    assert vocabulary == ("<padding>", "<unknown>", "the", "cat", "42", "dog", "don't")
    tokens = encode_texts(["Cat! and 42...", "", "dog " * 300], vocabulary)
    assert tokens.shape == (3, 200)
    assert tokens[0, :4].tolist() == [3, 1, 4, 0]
    assert not tokens[1].any()
    assert (tokens[2] == 5).all()


def test_vocabulary_stops_at_ten_thousand_words():
    vocabulary = build_vocabulary([" ".join(f"w{n}" for n in range(12_000)), "w11999"])
    assert len(vocabulary) == 10_002
    assert vocabulary[2] == "w11999"


def test_groups_belong_to_their_texts_and_the_first_items_are_mixed(small):
    data = load_dataset("20newsgroups", "train")
    for text, target in zip(data.texts, data.targets, strict=True):
        assert f"about {GROUPS[target]}" in text
    assert len(set(data.targets[:12].tolist())) > 3


@pytest.mark.parametrize("name", ["20news-bydate-test/alt.atheism/1", "20news-bydate-test/1"])
def test_an_unknown_group_is_refused(places, name):
    write_zip(places[0] / "20newsgroups" / NEWS_ZIP, {**news_members(1), name: b"x"})
    with pytest.raises(DataError, match=f"{name} is in no known group; expected one of comp.graphics"):
        load_dataset("20newsgroups")


def test_a_split_without_messages_is_refused(places):
    members = {name: text for name, text in news_members(1).items() if "-train/" in name}
    write_zip(places[0] / "20newsgroups" / NEWS_ZIP, members)
    with pytest.raises(DataError, match="no messages 20news-bydate-test"):
        load_dataset("20newsgroups")
