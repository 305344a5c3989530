"""Documents that people keep: files of November 2026 stay readable, and who may see, change and delete them."""

import io
import json
import zipfile

import pytest

from idc_core import library, store
from idc_core.base.files import cache_folder
from idc_core.errors import DataError, SettingError
from idc_core.store import documents, notes
from idc_core.store.documents import Documents
from idc_core.suites import SAVED

RUN = "a" * 32


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))


def put(name, content):
    path = cache_folder() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_marks_of_before_are_read_and_written_alike():
    everybodys = b'{"checksum": "a44f86332d70943cd3ca230ef52dc6ce", "content": {"name": "n\\u00e4me", "pinned": true, "shared": false}}\n'  # noqa: E501
    anns = b'{"checksum": "936b0647d778bddf2cc906047eeb510a", "content": {"name": "own", "pinned": false, "shared": true}}\n'  # noqa: E501
    paths = put(f"marks/{RUN}.json", everybodys), put(f"marks/{RUN}-ab12.json", anns)
    assert store.marks() == {RUN: store.Mark("n\u00e4me", pinned=True, shared=True)}
    assert store.marks("ab12") == {RUN: store.Mark("own", shared=True)}
    for path in paths:
        path.unlink()
    store.mark(RUN, store.Mark("n\u00e4me", pinned=True))
    store.mark(RUN, store.Mark("own", shared=True, owner="ab12"))
    assert [path.read_bytes() for path in paths] == [everybodys, anns]


def test_a_note_of_before_is_read():
    said = {"name": "note-cae2eadba67f94cd", "written": "2026-11-26T05:26:09.492+00:00", "subject": "test 3",
            "setup": "LeNet", "text": "T\u00e4xt\nzwei", "place": {"input": "3"}, "owner": "ab12"}  # fmt: skip
    put("notes/note-cae2eadba67f94cd.json", json.dumps(said, ensure_ascii=False).encode())
    assert notes.kept_notes("ab12") == [notes.Note(**said)]
    assert notes.kept_notes("cd34") == []


def test_an_entry_of_before_is_read():
    put(
        "library/entries/76ebd45506d7981a.json",
        b'{"checksum": "f5fbb09b49ff7d72a6f64d30ab344458", "content": {"id": "76ebd45506d7981a", "kind": "network", '
        b'"name": "some-a", "label": "L\\u00e4bel", "source": "some \\u00e4.onnx", "content": '
        b'"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad.onnx", "stamp": {"size": 3, "digest": ""}, '
        b'"owner": "ab12", "added": "2026-11-26T05:26:09+00:00", "network": null, "data": null, "network_settings": '
        b'{"data": "", "layer": "", "scaling": null, "explain": ""}, "data_settings": {"preparation": {}}, "check": '
        b'null, "shared": true}}\n',
    )
    (entry,) = library.ENTRIES.listed("cd34").values()
    assert (entry.id, entry.label, entry.stamp.size) == ("76ebd45506d7981a", "L\u00e4bel", 3)


def suite_file(label, owner, shared):
    """What a file of tests says of itself, in a zip file."""
    form = {"shape": [2], "class_names": ["a", "b"], "task": "classification", "kind": "numbers"}
    steps = [{"recipe": "s", "label": "x", "settings": {"a": [1, 2]}, "seed": 3, "model": ""}]
    about = {"label": label, "kind": "own", "inputs": 3, "form": form, "provenance": steps}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("about.json", json.dumps(about | ({"owner": owner, "shared": shared} if owner else {})))
    return content.getvalue()


OWNERS = {"everybody's": ("", False), "Ann's": ("ann", False), "shared": ("ann", True)}


@pytest.mark.parametrize(
    ("asker", "sees", "changes"),
    [
        (None, {"everybody's", "Ann's", "shared"}, {"everybody's", "Ann's", "shared"}),
        ("", {"everybody's", "shared"}, {"everybody's", "shared"}),
        ("ann", {"everybody's", "Ann's", "shared"}, {"Ann's", "shared"}),
        ("bob", {"everybody's", "shared"}, set()),
    ],
)
def test_who_sees_and_who_changes(asker, sees, changes):
    names = {label: f"kept-{place:016}" for place, label in enumerate(OWNERS)}
    for label, name in names.items():
        put(f"suites/kept/{name}.npz", suite_file(label, *OWNERS[label]))
    assert {suite.label for suite in SAVED.listed(asker).values()} == sees
    for label, name in names.items():
        if label in sees:
            assert SAVED.find(name, asker).provenance[0].settings == {"a": (1, 2)}
        else:
            with pytest.raises(SettingError, match="There is no saved suite"):
                SAVED.find(name, asker)
        if label in changes:
            SAVED.delete(name, asker)
        else:
            with pytest.raises(SettingError, match=r"There is no saved suite|is somebody else's, who shares it"):
                SAVED.delete(name, asker)
    assert {suite.label for suite in SAVED.listed().values()} == set(OWNERS) - changes


def test_a_file_is_read_again_once_it_has_changed():
    reads = []

    def read(path):
        reads.append(path.stem)
        if path.read_bytes() == b"damaged":
            raise DataError("It is damaged.")
        return notes.Note(path.stem, "", "", "", path.read_text(), {})

    kept = Documents("toys", "[a-z]+", read, unknown="No {id!r}.", what="A toy", remedy="Throw it away.")
    kept.write("one", b"1")
    put("toys/README.json", b"of no interest")
    for _ in range(2):
        assert [toy.text for toy in kept.listed().values()] == ["1"]
    assert reads == ["one"]
    kept.write("one", b"damaged")
    kept.write("another", b"22")
    assert list(kept.listed()) == ["another"]
    assert kept.damaged() == {"one": "It is damaged. Throw it away."}
    assert reads == ["one", "another", "one"]
    with pytest.raises(DataError, match="Throw it away"):
        kept.find("one")
    kept.delete("one")
    kept.delete("one", missing_ok=True)
    for ask in (kept.find, kept.delete, kept.path):
        with pytest.raises(SettingError, match="No 'no/id'"):
            ask("no/id")
    with pytest.raises(SettingError, match="No 'one'"):
        kept.delete("one")
    documents._read.cache_clear()
