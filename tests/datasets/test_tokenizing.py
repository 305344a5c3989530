"""Texts to token ids: as transformers does it, readable, and hostile tokenizers refused in a sentence."""

import json
import os

import numpy as np
import pytest
import transformers
from tokenizers import pre_tokenizers

from idc_core.datasets import pretrained
from idc_core.datasets.own import DataFile
from idc_core.datasets.preparation import Preparation
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


MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = {
    word: number for number, word in enumerate([*MARKS, "the", "a", "The", "cat", "##s", "dog", "runs", ".", "é", "e"])
}
SIGNS = {sign: number for number, sign in enumerate([*"adeghnorstuTC. ", *(f"{sign}</w>" for sign in "adeghnorstu.")])}
ENDS = ("<|startoftext|>", "<|endoftext|>", "<s>", "</s>")
GROWN = [("t", "h"), ("th", "e</w>"), ("c", "a"), ("ca", "t</w>"), ("d", "o"), ("do", "g</w>")]
BYTES = dict.fromkeys(["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(pre_tokenizers.ByteLevel.alphabet())])
PIECES = [
    (piece, -float(at))
    for at, piece in enumerate(["<pad>", "</s>", "<unk>", *MARKS, "▁", "▁the", "▁cat", *"acdeghnorst."])
]


def _grown(signs, *special):
    """Return a vocabulary of signs and what grows of them."""
    words = [*special, *signs, *("c", "c</w>"), *("".join(pair) for pair in GROWN)]
    return {word: number for number, word in enumerate(dict.fromkeys(words))}


def _by_bytes(kind):
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ġ", "c")]
    words = {word: number for number, word in enumerate([*BYTES, *("".join(pair) for pair in merges)])}
    return lambda **given: kind(vocab=words, merges=merges, **given)


CLASSES = {
    **{
        kind.__name__: lambda kind=kind, **given: kind(vocab=dict(WORDS), **given)
        for kind in (
            *(transformers.BertTokenizer, transformers.DistilBertTokenizer, transformers.ElectraTokenizer),
            *(transformers.MPNetTokenizer, transformers.LxmertTokenizer, transformers.ConvBertTokenizer),
        )
    },
    **{
        kind.__name__: _by_bytes(kind)
        for kind in (
            *(transformers.RobertaTokenizer, transformers.GPT2Tokenizer, transformers.BartTokenizer),
            *(transformers.DebertaTokenizer, transformers.Qwen2Tokenizer, transformers.GPTNeoXTokenizer),
        )
    },
    **{
        kind.__name__: lambda kind=kind, **given: kind(
            vocab=_grown(SIGNS, "<unk>", "<pad>", *ENDS), merges=GROWN, **given
        )
        for kind in (transformers.OpenAIGPTTokenizer, transformers.CLIPTokenizer, transformers.HerbertTokenizer)
    },
    **{
        kind.__name__: lambda kind=kind, **given: kind(vocab=list(PIECES), **given)
        for kind in (
            *(transformers.AlbertTokenizer, transformers.T5Tokenizer, transformers.XLMRobertaTokenizer),
            *(transformers.XLNetTokenizer, transformers.DebertaV2Tokenizer, transformers.CamembertTokenizer),
        )
    },
    "LlamaTokenizer": lambda **given: transformers.LlamaTokenizer(
        vocab=_grown(["▁", *"adeghnorstuTC."], "<unk>", "<s>", "</s>"), merges=[("t", "h")], **given
    ),
    "ByT5Tokenizer": transformers.ByT5Tokenizer,
}
SAID = {
    "as it is": {},
    "cut at the beginning": {"truncation_side": "left"},
    "padded at the beginning": {"padding_side": "left"},
    "small letters": {"do_lower_case": True},
    "letters as they are": {"do_lower_case": False},
    "a space in front": {"add_prefix_space": True},
    "more tokens": {},
    "other marks": {"add_bos_token": False, "add_eos_token": True},
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("name", CLASSES)
def test_every_setting_of_every_class_is_followed(name, said, tmp_path):
    made = CLASSES[name](**SAID[said])
    if said == "more tokens":
        made.add_tokens(["<url>", transformers.AddedToken("runs", lstrip=True)])
    made.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    theirs.pad_token = theirs.pad_token or theirs.eos_token or theirs.unk_token
    (tmp_path / "config.json").write_text(json.dumps({"pad_token_id": theirs.pad_token_id}))
    texts = ["The cat runs", "the dogs <url> cat, é  runs the cat and the dog. " * 2, "", "a [SEP] </s>"]
    expected = theirs(texts, padding="max_length", truncation=True, max_length=9)["input_ids"]
    np.testing.assert_array_equal(tokenize(texts, tmp_path, 9).ids, expected)


def test_a_vocabulary_is_read_as_the_class_says(tmp_path):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "fox", "##es", "a", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    with pytest.raises(DataError, match="does not say its class"):
        tokenize(["The foxes."], tmp_path, 7)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    found = tokenize(["The foxes.", "zebra"], tmp_path, 7)
    np.testing.assert_array_equal(found.ids, [[2, 4, 5, 6, 8, 3, 0], [2, 1, 3, 0, 0, 0, 0]])
    assert found.vocabulary[: len(words)] == tuple(words)
    assert found.special[:2] == (0, 1)
    (tmp_path / "added_tokens.json").write_text('{"<url>": 9}')
    np.testing.assert_array_equal(tokenize(["the <url>"], tmp_path, 4).ids, [[2, 4, 9, 3]])
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false, "tokenizer_class": "BertTokenizer"}')
    np.testing.assert_array_equal(tokenize(["The a"], tmp_path, 4).ids, [[2, 1, 7, 3]])


def test_pairs_are_merged_as_the_class_says(tmp_path):
    words = _grown(SIGNS, "<unk>", "<s>", "</s>", "<pad>")
    (tmp_path / "vocab.json").write_text(json.dumps(words))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n" + "\n".join(" ".join(pair) for pair in GROWN) + "\n")
    (tmp_path / "config.json").write_text('{"model_type": "openai-gpt", "pad_token_id": 3}')
    ids = tokenize(["the cat"], tmp_path, 3).ids
    np.testing.assert_array_equal(ids, [[words["the</w>"], words["cat</w>"], 3]])


WITHOUT = {
    "a class of no package": ({"tokenizer_class": "NoneSuchTokenizer"}, "of the class 'NoneSuchTokenizer'"),
    "something else of transformers": ({"tokenizer_class": "AutoModel"}, "of the class 'AutoModel'"),
    "a package that is not there": (
        {"tokenizer_class": "BertJapaneseTokenizer", "word_tokenizer_type": "mecab"},
        "cannot be used.*fugashi",
    ),
    "code": ({"tokenizer_class": None, "auto_map": {"AutoTokenizer": ["evil.Tokenizer", None]}}, "cannot be used"),
    "a file elsewhere": ({"gguf_file": "../x.gguf"}, "'gguf_file', which is for another program"),
    "options of a program": ({"mecab_kwargs": {"mecab_option": "-r x"}}, "'mecab_kwargs', which is for another"),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_what_is_not_followed_is_refused_by_name(bert, name):
    settings, said = WITHOUT[name]
    (bert / "vocab.txt").write_text("\n".join(WORDS))
    (bert / "tokenizer.json").unlink()
    (bert / "evil.py").write_text(f"open({str(bert / 'ran')!r}, 'w')")
    (bert / "config.json").write_text('{"model_type": "nonesuch"}')
    (bert / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", **settings}))
    with pytest.raises(DataError, match=said):
        tokenize(["the cat"], bert, 8)
    assert not (bert / "ran").exists()


def test_a_vocabulary_of_another_class_is_not_there(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "GPT2Tokenizer"}')
    with pytest.raises(DataError, match=r"neither tokenizer\.json nor the merges\.txt, vocab\.json of GPT2Tokenizer"):
        tokenize(["the cat"], tmp_path, 8)


def test_data_know_the_padding_of_their_tokenizer(tmp_path):
    folder = folder_of("roberta", tmp_path / "net")
    (tmp_path / "texts.csv").write_text("text,label\n" + "".join(f"the fox {at},{at % 2}\n" for at in range(10)))
    items = DataFile(tmp_path / "texts.csv", Preparation(tokenizer=folder, length=12))("train", None, None)
    assert items.special[:2] == (1, 3)


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
        pretrained.explained("The tokenizer", panic)


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
