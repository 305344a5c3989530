"""Texts from outside: JSON and CSV that no program writes."""

from dataclasses import dataclass
from typing import Any

import pytest

from idc_core.errors import DataError
from idc_core.guarded import is_sealed, open_sealed_text, read_json, read_text, seal_text
from tests.guarded.hostile import by_message


@dataclass(frozen=True)
class Described:
    name: str
    sides: tuple[int, ...]
    more: dict[str, Any]


def test_json_becomes_an_object_of_its_type():
    found = read_json(b'\xef\xbb\xbf{"name": "a", "sides": [1, 2], "more": {"b": null}}', "The file", Described)
    assert found == Described("a", (1, 2), {"b": None})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read as JSON"),
        (b"[" * 100_000, "cannot be read as JSON"),
        (b'{"name":' * 100_000, "cannot be read as JSON"),
        (b'{"name": "a", "name": "b", "sides": [], "more": {}}', "a key comes twice"),
        (b'{"name": "a", "sides": [NaN], "more": {}}', "NaN is no finite number"),
        (b'{"name": "a", "sides": [], "more": {"x": -Infinity}}', "-Infinity is no finite number"),
        (b'{"name": "a", "sides": [], "more": {"x": 1e999}}', "1e999 is no finite number"),
        (b'{"name": "a", "sides": [' + b"9" * 5000 + b"]}", "cannot be read as JSON"),
        (b'{"name": "a", "sides": [1.5], "more": {}}', r"Expected `int`, got `float` - at `\$\.sides\[0\]`"),
        (b'{"name": "a", "sides": [true], "more": {}}', r"Expected `int`, got `bool`"),
        (b'{"name": null, "sides": [], "more": {}}', r"Expected `str`, got `null` - at `\$\.name`"),
        (b'{"name": "a", "sides": []}', "missing required field `more`"),
        (b'{"name": "a", "sides": [], "more": {}} {}', "cannot be read as JSON"),
        (b'{"name": "\xff"}', "cannot be read as JSON"),
        (b"\x00" * 100, "cannot be read as JSON"),
    ],
    ids=by_message,
)
def test_other_json_is_refused_by_its_place(content, message):
    with pytest.raises(DataError, match=message) as caught:
        read_json(content, "The file", Described)
    assert str(caught.value).startswith("The file")


@pytest.mark.usefixtures("one_mebibyte")
def test_json_is_counted_before_it_is_parsed():
    with pytest.raises(DataError, match="its content would take 1,250,000 bytes of memory"):
        read_json(b"[" + b"[]," * 16_666 + b"]", "The file", list)


def test_a_text_must_be_utf_8():
    assert read_text("\ufeffÄ".encode(), "The file") == "Ä"
    with pytest.raises(DataError, match="The file is no text in UTF-8"):
        read_text(b"\xff\xfe", "The file")


def test_every_damaged_byte_of_a_sealed_text_is_found_out():
    text = '{"a": 1}\n'
    sealed = seal_text(text)
    assert is_sealed(sealed)
    assert open_sealed_text(sealed, "The file") == text.encode()
    for place in range(len(sealed)):
        damaged = bytearray(sealed)
        damaged[place] ^= 1
        with pytest.raises(DataError, match="The file is damaged"):
            open_sealed_text(bytes(damaged), "The file")
    with pytest.raises(DataError, match="The file is damaged"):
        open_sealed_text(text.encode(), "The file")
