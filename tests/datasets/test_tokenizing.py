"""Texts to token ids: as transformers does it, readable, and hostile tokenizers refused in a sentence."""

import json
import os

import numpy as np
import pytest
import transformers

from idc_core.datasets import tokenizing
from idc_core.datasets.tokenizing import padding_of, tokenize
from idc_core.errors import DataError
from tests.models.huggingface.folders import TEXTS, TOKENIZERS


def folder_of(kind, folder, **settings):
    marks, tokenizer = TOKENIZERS[kind]()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **marks, **settings).save_pretrained(folder)
    return folder


def content_of(folder):
    return json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))


def write(folder, content):
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def bert(tmp_path):
    return folder_of("bert", tmp_path)


@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2", "llama"])
@pytest.mark.parametrize("length", [3, 40])
def test_equal_to_transformers(kind, length, tmp_path):
    folder = folder_of(kind, tmp_path)
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    theirs.pad_token = theirs.pad_token or theirs.eos_token
    expected = theirs(list(TEXTS), padding="max_length", truncation=True, max_length=length)["input_ids"]
    found = tokenize(TEXTS, folder, length)
    np.testing.assert_array_equal(found.ids, expected)
    assert found.special[0] == theirs.pad_token_id == padding_of(folder)
    assert len(set(found.vocabulary)) == len(found.vocabulary) == len(theirs)


def test_words_are_readable(tmp_path):
    for kind, begin, inner in (("bert", "the", "##o"), ("gpt2", " the", "o"), ("llama", " the", "o")):
        folder = folder_of(kind, tmp_path / kind)
        vocabulary = tokenize(["the"], folder, 4).vocabulary
        assert begin in vocabulary
        assert inner in vocabulary
        assert not [word for word in vocabulary if "Ġ" in word]


def test_vocabularies_without_a_tokenizer_file(tmp_path):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "fox", "##es", "a", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    found = tokenize(["The foxes.", "zebra"], tmp_path, 7)
    np.testing.assert_array_equal(found.ids, [[2, 4, 5, 6, 8, 3, 0], [2, 1, 3, 0, 0, 0, 0]])
    assert found.vocabulary == tuple(words)
    assert found.special == (0, 1, 2, 3)
    other = folder_of("roberta", tmp_path / "roberta")
    expected = tokenize(TEXTS, other, 20).ids
    model = content_of(other)["model"]
    (other / "tokenizer.json").unlink()
    (other / "vocab.json").write_text(json.dumps(model["vocab"]))
    (other / "merges.txt").write_text("#version: 0.2\n" + "\n".join(" ".join(pair) for pair in model["merges"]))
    np.testing.assert_array_equal(tokenize(TEXTS, other, 20).ids, expected)


def test_the_network_says_what_padding_is(bert):
    (bert / "config.json").write_text('{"pad_token_id": 7}')
    assert tokenize(["a"], bert, 9).ids[0, -1] == 7


def test_texts_of_any_kind(bert):
    odd = ["", "\0", "\ud800", "\u202e", "x" * 100_000, " " * 100_000, "\U0010ffff"]
    assert tokenize(odd, bert, 8).ids.shape == (7, 8)


HOSTILE = {
    "nothing": b"",
    "no object": b"[]",
    "cut off": b'{"version": "1.0", "model": {',
    "deep": b'{"a":' * 50_000 + b"}" * 50_000,
    "nul": b'{"version": "1.0\0"}',
    "not text": b"\xff\xfe\x00",
    "no model": b'{"version": "1.0"}',
    "other version": b'{"version": "99", "model": {"type": "BPE", "vocab": {}, "merges": []}}',
    "other types": b'{"version": "1.0", "model": {"type": "BPE", "vocab": [1], "merges": {"a": 1}}}',
    "empty pieces": b'{"version": "1.0", "model": {"type": "Unigram", "vocab": [], "unk_id": 5}}',
    "pieces outside": b'{"version": "1.0", "model": {"type": "Unigram", "vocab": [["a", -1.0]], "unk_id": 5}}',
    "ids outside": b'{"version":"1.0","model":{"type":"WordLevel","vocab":{"a":4000000000},"unk_token":"a"}}',
    "no unknown word": b'{"version":"1.0","model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"b"}}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_damaged_tokenizers(tmp_path, name):
    (tmp_path / "tokenizer.json").write_bytes(HOSTILE[name])
    with pytest.raises(DataError, match="tokenizer"):
        tokenize(["some text of words"], tmp_path, 8)


PATTERNS = ("(a+)+$", "(\\s*)*x", "((a|b)*c?)+$", "(?:x{2,})*y", "([^z]+ ?)+!", "(?>(a+)+)b", "a" * 3_000)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_that_never_end(bert, pattern):
    content = content_of(bert)
    content["pre_tokenizer"] = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    write(bert, content)
    with pytest.raises(DataError, match="pattern"):
        tokenize(["a" * 50_000 + "!"], bert, 8)


def test_patterns_in_use_are_read(bert):
    llama = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
        r"\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    content = content_of(bert)
    for pattern in (llama, " {2,}", r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"):
        split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        write(bert, content | {"pre_tokenizer": split})
        assert tokenize(TEXTS, bert, 8).ids.shape == (len(TEXTS), 8)


def test_marks_with_ids_far_out(bert):
    content = content_of(bert)
    content["added_tokens"][0]["id"] = 10**9
    write(bert, content)
    with pytest.raises(DataError, match="1,000,000,000"):
        tokenize(["a"], bert, 4)


def test_panics_are_sentences():
    class PanicException(BaseException):
        pass

    def panic(*given):
        raise PanicException("index out of range")

    with pytest.raises(DataError, match="index out of range"):
        tokenizing._explained("The tokenizer", panic)


def test_links_and_absent_files(bert, tmp_path):
    away = tmp_path / "away"
    away.mkdir()
    with pytest.raises(DataError, match=r"has no tokenizer\.json"):
        tokenize(["a"], away, 4)
    (away / "tokenizer.json").symlink_to(bert / "tokenizer.json")
    with pytest.raises(DataError, match="leads out of its folder"):
        tokenize(["a"], away, 4)
    (away / "tokenizer.json").unlink()
    os.mkfifo(away / "tokenizer.json")
    with pytest.raises(DataError, match="a pipe"):
        tokenize(["a"], away, 4)
