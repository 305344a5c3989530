"""Entries and contents on disk: by content, within the limits, whole after any crash, damaged ones removable."""

import hashlib
import io
import json
import multiprocessing
import os
import zipfile
from pathlib import Path

import pytest

from idc_core import library
from idc_core.base.files import sweep
from idc_core.errors import CancelledError, DataError, IdcError, SettingError
from idc_core.guarded import seal_text
from idc_core.library import store
from idc_core.library.contents import contents_folder
from idc_core.library.entry import Stamp
from idc_core.store import documents
from tests.library.small_files import digits_onnx

NET = b"not read before it is asked for"


def upload(content=NET, name="net.onnx", **how):
    return library.add_upload(io.BytesIO(content), name, "network", **how)


def kept():
    return sorted(path.name for path in contents_folder().glob("*"))


def owner_config(monkeypatch, folder, text):
    path = folder / "owner.toml"
    path.write_text(f"[limits]\n{text}\n")
    monkeypatch.setenv("IDC_CONFIG", str(path))


def test_the_same_file_is_kept_once_and_goes_with_its_last_entry(home):
    first, second = upload(), upload(name="again.onnx")
    assert kept() == [f"{hashlib.sha256(NET).hexdigest()}.onnx"]
    assert first.path.read_bytes() == NET
    assert (first.name, second.name) == ("net", "again")
    assert library.used() == len(NET)
    library.delete(first.id)
    assert len(kept()) == 1
    library.delete(second.id)
    assert kept() == []
    assert library.ENTRIES.listed() == {}


def test_a_path_is_only_referred_to(home, tmp_path):
    file = tmp_path / "net.onnx"
    file.write_bytes(NET)
    entry = library.add_path(str(file), "network")
    assert entry.path == file
    assert library.used() == 0
    assert library.remedy(entry) == ""
    file.write_bytes(NET + b".")
    assert "has changed since it was read" in library.remedy(entry)
    file.unlink()
    assert "gone or cannot be read" in library.remedy(entry)
    library.delete(entry.id)
    assert library.ENTRIES.listed() == {}


def test_a_folder_has_changed_when_one_of_its_files_has(home, tmp_path):
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "one").write_bytes(b"1")
    before = Stamp.of(folder)
    (folder / "inner" / "two").write_bytes(b"22")
    after = Stamp.of(folder)
    assert (before.size, after.size) == (1, 3)
    assert before.digest != after.digest


def test_entries_are_as_they_were_after_a_restart(home):
    entry = library.rename(upload(), "Mine")
    library.replaced(entry, network_settings=library.NetworkSettings("digits", "fc1", {"mean": [0.5]}))
    documents._read.cache_clear()
    found = library.ENTRIES.find(entry.id)
    assert library.ENTRIES.listed() == {entry.id: found}
    assert (found.label, found.name, found.network_settings.scaling) == ("Mine", "net", {"mean": [0.5]})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.py", "named on the command line only (--setup)"),
        ("a.pt", "may be a pickle"),
        ("a.pkl", "may be a pickle"),
        ("a.bin", "may be a pickle"),
        ("a", "expected"),
        ("a.exe", "expected"),
        ("a.onnx\n", "expected"),
        ("a.o/../x", "expected"),
    ],
)
def test_what_runs_code_or_is_not_known_is_refused_before_anything_is_kept(home, name, said):
    with pytest.raises(DataError, match=said.replace("(", r"\(").replace(")", r"\)")):
        upload(name=name)
    assert not home.exists()


def test_formats_that_need_trust_are_refused(home, tmp_path, monkeypatch):
    from idc_core.models.formats import NETWORK_FORMATS, NetworkFormat

    monkeypatch.setitem(NETWORK_FORMATS, ".pt2", NetworkFormat(".pt2", "torch.export", None, trusted=True))
    (tmp_path / "net.pt2").write_bytes(NET)
    for add in (lambda: upload(name="net.pt2"), lambda: library.add_path(str(tmp_path / "net.pt2"), "network")):
        with pytest.raises(DataError, match="command line only"):
            add()


@pytest.mark.parametrize(
    "path", ["", "relative.onnx", "~nobody-of-this-name/x.onnx", "/no/such/file.onnx", "/dev/zero"]
)
def test_paths_that_cannot_be_added_are_refused_in_a_sentence(home, path):
    with pytest.raises(DataError, match=r"\.$"):
        library.add_path(path, "network")
    assert not home.exists()


def test_an_upload_has_a_limit_and_the_library_a_quota(home, tmp_path, monkeypatch):
    owner_config(monkeypatch, tmp_path, "upload_mib = 1\nlibrary_mib = 2")
    with pytest.raises(DataError, match="larger than 1 MiB"):
        upload(bytes((1 << 20) + 1))
    upload(bytes(1 << 20))
    upload(b"1" * (1 << 19))
    with pytest.raises(DataError, match=r"does not fit: the library has 524,288 bytes left of 2 MiB"):
        upload(b"2" * (1 << 20))
    with pytest.raises(DataError, match="is empty"):
        upload(b"")
    assert len(kept()) == len(library.ENTRIES.listed()) == 2


def test_a_visitor_from_elsewhere_leaves_room_for_others(home, tmp_path, monkeypatch):
    owner_config(monkeypatch, tmp_path, "person_mib = 1")
    upload(bytes(1 << 19), owner="somebody")
    upload(bytes(1 << 19), owner="somebody", name="again.onnx")  # the same content counts once
    upload(b"1" * (1 << 19), owner="somebody")
    with pytest.raises(DataError, match=r"does not fit: you have 0 bytes left of 1 MiB.*person_mib"):
        upload(b"2", owner="somebody")
    upload(b"2", owner="somebody else")
    upload(bytes((1 << 20) + 1))  # at this computer the limit is that of the library


def test_a_stopped_upload_leaves_nothing(home):
    with pytest.raises(CancelledError):
        upload(on_progress=lambda *_: False)
    assert kept() == []
    assert library.ENTRIES.listed() == {}


HOSTILE = "<img src=x onerror=alert(1)>\n\u202egnp.\u200bexe\u2028 **b** " + "x" * 300


def test_names_are_one_line_of_seen_characters(home):
    entry = upload(name=f"{HOSTILE}.onnx", label=HOSTILE)
    assert entry.label == library.plain_name(HOSTILE)
    assert len(entry.label) == 120
    assert entry.name == "img-src-x-onerror-alert-1-gnp-exe-b-xxxx"
    assert not set("\n\u202e\u200b\u2028") & set(entry.label + entry.source)
    with pytest.raises(SettingError, match="A name is needed"):
        library.rename(entry, "\u202e \n")
    assert upload(name="\u4f60.onnx").name == "unnamed"


def test_two_entries_never_have_one_name(home):
    assert [upload(name=name).name for name in ("digits.onnx", "net.onnx", "net.onnx", "lenet5-digits.onnx")] == [
        "digits-2",
        "net",
        "net-2",
        "lenet5-digits-2",
    ]


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff", None, "another"])
def test_a_damaged_entry_is_listed_and_can_be_removed(home, damage):
    entry, other = upload(), upload(b"other")
    path = library.ENTRIES.path(entry.id)
    content = path.read_bytes()
    if damage == "another":
        damage = seal_text(json.dumps({**json.loads(content)["content"], "content": "../../escape"}))
    path.write_bytes(damage if damage is not None else content.replace(b"network", b"netwurk", 1))
    assert library.ENTRIES.listed() == {other.id: other}
    ((id, reason),) = library.ENTRIES.damaged().items()
    assert id == entry.id
    assert reason.endswith("Delete it, and add its network or data again.")
    with pytest.raises(DataError, match="Delete it"):
        library.ENTRIES.find(entry.id)
    # What the damaged entry had is not known: nothing is cleared before it is gone.
    store._clear()
    assert set(kept()) == {entry.content, other.content}
    library.delete(entry.id)
    assert library.ENTRIES.listed() == {other.id: other}
    assert kept() == [other.content]


@pytest.mark.parametrize("id", ["", "../entries/x", "0" * 15, "0" * 16])
def test_ids_from_outside_lead_nowhere(home, id):
    upload()
    for ask in (library.ENTRIES.find, library.delete):
        with pytest.raises(SettingError):
            ask(id)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("step", range(12))
def test_the_library_opens_wherever_it_was_killed(home, tmp_path, step):
    """A process is killed at its n-th change of the disk while it adds, renames and deletes."""
    staying = upload(b"staying")
    child = multiprocessing.get_context("fork").Process(target=_killed_at, args=(step,))
    child.start()
    child.join()
    sweep()
    store._clear()
    found = library.ENTRIES.listed()
    assert found[staying.id] == staying
    assert not library.ENTRIES.damaged()
    assert not [name for name in kept() if name.startswith(".")]
    for one in found.values():
        # Killed between an entry and its content: the entry says so.
        assert one.path.exists() or "upload was interrupted" in library.remedy(one)
        library.delete(one.id)
    assert kept() == []


def _killed_at(step):
    """Change the library, and be killed at the n-th call that changes the disk."""
    left = [step]

    def counting(name):
        call = getattr(Path, name)

        def counted(self, *given, **named):
            if not left[0]:
                os._exit(9)
            left[0] -= 1
            return call(self, *given, **named)

        return counted

    for name in ("replace", "write_bytes", "unlink", "mkdir"):
        setattr(Path, name, counting(name))
    entry = upload(b"going")
    library.rename(entry, "renamed")
    library.delete(entry.id)
    upload(b"last")
    os._exit(0)


def test_two_processes_that_add_and_delete_the_same_do_not_lose_it(home):
    """Each adds one file and deletes its own entry many times; an entry that is there has its content."""
    staying = upload(b"staying")
    context = multiprocessing.get_context("fork")
    failed = context.Value("i", 0)
    workers = [context.Process(target=_busy, args=(number, failed)) for number in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failed.value == 0
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert library.ENTRIES.listed() == {staying.id: staying}
    assert kept() == [staying.content]


def _busy(number, failed):
    for _ in range(40):
        entry = upload(b"shared")
        library.rename(entry, f"of {number}")
        if not library.ENTRIES.find(entry.id).path.exists():
            failed.value += 1
        library.delete(entry.id)
    os._exit(0)


def test_visitors_see_their_own_entries_and_those_that_are_shared(home):
    mine, yours, ours = upload(owner="me"), upload(b"2", owner="you"), upload(b"3")
    assert set(library.ENTRIES.listed("me")) == {mine.id, ours.id}
    assert set(library.ENTRIES.listed("")) == {ours.id}
    assert set(library.ENTRIES.listed()) == {mine.id, yours.id, ours.id}
    with pytest.raises(SettingError):
        library.ENTRIES.find(yours.id, "me")
    yours = library.share(yours)
    assert library.ENTRIES.find(yours.id, "me") == yours
    with pytest.raises(SettingError, match="somebody else's"):
        library.ENTRIES.own(yours.id, "me")
    assert library.ENTRIES.own(yours.id, "you") == library.ENTRIES.own(yours.id, "") == yours
    library.share(yours, shared=False)
    with pytest.raises(SettingError):
        library.ENTRIES.find(yours.id, "me")


def zipped(members, **attributes):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            about = zipfile.ZipInfo(name)
            about.external_attr = attributes.get(name, 0o644 << 16)
            about.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(about, content)
    return file.getvalue()


@pytest.fixture
def folders(monkeypatch):
    """Networks may be folders."""
    from idc_core.models.formats import NETWORK_FORMATS, NetworkFormat

    if "/" not in NETWORK_FORMATS:
        monkeypatch.setitem(NETWORK_FORMATS, "/", NetworkFormat("/", "folder", None))


@pytest.mark.parametrize("top", ["", "vit/"])
def test_a_zipped_folder_is_unpacked(home, folders, top):
    content = zipped({f"{top}config.json": b"{}", f"{top}inner/model.safetensors": b"1234"})
    entry = upload(content, "vit.zip")
    assert entry.path.is_dir()
    assert sorted(str(one.relative_to(entry.path)) for one in entry.path.rglob("*")) == [
        "config.json",
        "inner",
        "inner/model.safetensors",
    ]
    assert library.used() == 6
    assert upload(content, "again.zip").content == entry.content
    for one in library.ENTRIES.listed().values():
        library.delete(one.id)
    assert kept() == []


@pytest.mark.parametrize(
    "content",
    [
        b"PK no zip file",
        zipped({"../out": b"1"}),
        zipped({"/out": b"1"}),
        zipped({"link": b"/etc/passwd"}, link=0o120777 << 16),
        zipped({"bomb": bytes(10_000_000)}),
        zipped({"a": b"1", "a/b": b"2"}),
    ],
    ids=["none", "above", "absolute", "link", "bomb", "file and folder"],
)
def test_a_hostile_zip_file_leaves_nothing(home, folders, content):
    with pytest.raises(DataError):
        upload(content, "net.zip")
    assert kept() == []
    assert library.ENTRIES.listed() == {}
    assert [one for one in home.parent.rglob("*") if one.name in ("out", "link", "bomb")] == []


def test_a_changed_entry_that_was_deleted_meanwhile_stays_deleted(home):
    entry = upload()
    library.delete(entry.id)
    with pytest.raises(SettingError, match="deleted meanwhile"):
        library.replaced(entry, label="back")
    assert library.ENTRIES.listed() == {}


def test_a_library_that_cannot_be_written_says_so(home, monkeypatch):
    home.parent.joinpath("file").write_bytes(b"")
    monkeypatch.setenv("IDC_HOME", str(home.parent / "file"))
    with pytest.raises(IdcError, match="IDC_HOME"):
        upload(digits_onnx())
    monkeypatch.setenv("IDC_HOME", str(home))
