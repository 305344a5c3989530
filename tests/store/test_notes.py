"""Notes: written, read, listed and deleted; nothing but plain text comes back."""

import json

import pytest

from idc_core.errors import DataError, SettingError
from idc_core.store import notes

PLACE = {"layer": "fc1", "input": "3"}


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    return tmp_path


def write(text="A 5 that looks like a 9", **others):
    given = {"subject": "test 3", "setup": "LeNet-5 \u00b7 digits", "place": PLACE, **others}
    return notes.write_note(text, **given)


def test_a_note_is_read_as_it_was_written():
    one = write("First line\r\nsecond <b>line</b>, = 1 + 1")
    assert one.text == "First line\nsecond <b>line</b>, = 1 + 1"
    assert notes.kept_notes() == [one]
    assert (one.subject, one.setup, one.place) == ("test 3", "LeNet-5 \u00b7 digits", PLACE)


def test_the_latest_is_first_and_a_deleted_one_is_gone():
    first, second = write("one"), write("two")
    texts = [note.text for note in notes.kept_notes()]
    assert sorted(texts) == ["one", "two"]
    assert notes.kept_notes() == sorted((first, second), key=lambda note: (note.written, note.name), reverse=True)
    notes.delete_note(first.name)
    notes.delete_note(first.name)
    assert notes.kept_notes() == [second]


def test_what_cannot_be_printed_becomes_blank():
    one = write("a\0b\x1bc\u202ed\ud800e", subject="test\n3")
    assert (one.text, one.subject) == ("a b c d e", "test 3")
    assert notes.kept_notes() == [one]


@pytest.mark.parametrize(
    ("text", "why"), [("", "needs a text"), (" \n", "needs a text"), ("x" * 2_001, "at most 2,000")]
)
def test_empty_and_long_notes_are_refused(text, why):
    with pytest.raises(SettingError, match=why):
        write(text)
    assert notes.kept_notes() == []


def test_there_is_a_limit(monkeypatch):
    monkeypatch.setattr(notes, "_MOST", 2)
    write()
    write()
    with pytest.raises(SettingError, match="which is the limit for one person: delete some"):
        write()
    monkeypatch.setattr(notes, "_MOST_OF_ALL", 3)
    write(owner="somebody else")
    with pytest.raises(SettingError, match="which is the limit for all: delete some"):
        write(owner="a third")


@pytest.mark.parametrize("name", ["../note-0123456789abcdef", "note-0", "/etc/passwd"])
def test_only_notes_are_deleted(name, home):
    with pytest.raises(SettingError, match="name of a note"):
        notes.delete_note(name)


def changed(**parts):
    """What a note's file holds, with some parts changed."""
    return lambda text: json.dumps(json.loads(text) | parts)


@pytest.mark.parametrize(
    "change",
    [
        changed(text="a\u202eb"),
        changed(text="x" * 2_001),
        changed(text=""),
        changed(subject="two\nlines"),
        changed(place={"a\nb": "c"}),
        changed(name="note-0123456789abcdef"),
        changed(written="yesterday"),
        changed(written="2026-01-01T00:00:00"),
        changed(text=5),
        lambda text: text[:-3],
        lambda text: "[]",
    ],
)
def test_a_file_that_was_changed_is_left_out_and_named(change):
    one = write()
    path = notes.NOTES.path(one.name)
    path.write_text(change(path.read_text()))
    assert notes.kept_notes() == []
    ((name, reason),) = notes.NOTES.damaged().items()
    assert name == one.name
    assert str(path) in reason
    notes.delete_note(name)
    assert notes.NOTES.damaged() == {}


def test_other_files_are_left_alone(home):
    write()
    (home / "notes" / "readme.json").write_text("{}")
    assert len(notes.kept_notes()) == 1
    assert notes.NOTES.damaged() == {}


def test_a_folder_that_cannot_be_written_is_a_sentence(home):
    (home / "notes").write_text("in the way")
    with pytest.raises(DataError, match="cannot be kept"):
        write()


def test_export_names_no_owner():
    one = write(owner="somebody")
    (row,) = json.loads(notes.notes_json([one]))
    assert row == {"name": one.name, "written": one.written, "subject": one.subject, "setup": one.setup,
                   "text": one.text, "place": PLACE, "names": False}  # fmt: skip


def test_a_name_is_one_for_each_thing_and_person_and_an_empty_one_forgets_it():
    place = {"model": "lenet5-digits", "layer": "fc2"}
    notes.write_name("stroke", "neuron 3", "LeNet-5", place | {"neuron": "3"})
    notes.write_name(" loop\nbelow ", "neuron 3", "LeNet-5", place | {"neuron": "3"})
    notes.write_name("edge", "neuron 3", "LeNet-5", place | {"layer": "fc1", "neuron": "3"})
    notes.write_name("cluster", "cluster 1 of neuron 4", "LeNet-5", place | {"neuron": "4", "cluster": "1"})
    notes.write_note("A note is no name", "neuron 5", "LeNet-5", place | {"neuron": "5"})
    assert notes.names_of("neuron", place) == {"3": "loop below"}
    assert notes.names_of("cluster", place | {"neuron": "4"}) == {"1": "cluster"}
    notes.write_name("x" * 99, "neuron 3", "LeNet-5", place | {"neuron": "3"}, owner="me", asker="me")
    assert notes.names_of("neuron", place, "me") == {"3": "x" * notes.LONGEST_NAME}
    notes.write_name("", "neuron 3", "LeNet-5", place | {"neuron": "3"}, owner="me", asker="me")
    assert notes.names_of("neuron", place, "me") == {"3": "loop below"}
