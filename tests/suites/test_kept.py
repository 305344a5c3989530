import io
import os
import tracemalloc
import zipfile

import numpy as np
import pytest

from idc_core.errors import CancelledError, DataError, SettingError
from idc_core.suites import (
    SAVED,
    change_saved,
    compare_suites,
    custom_suite,
    make_suite,
    open_saved,
    original,
    pack_suite,
    perturbed,
    save_suite,
    saved_suites,
    select_tests,
)
from idc_core.suites.suite import ProvenanceStep
from tests.suites.test_own import packed


@pytest.fixture
def noisy(digits):
    return perturbed(select_tests(original(digits), np.arange(20, 50)), "noise", deviation=0.3, seed=4)


def test_a_kept_suite_comes_back_as_it_was(noisy, digits):
    path = save_suite("Thirty noisy tests", noisy)
    again = open_saved(path.stem)
    np.testing.assert_array_equal(again.take(np.arange(30)), noisy.take(np.arange(30)))
    np.testing.assert_array_equal(again.targets, noisy.targets)
    np.testing.assert_array_equal(again.origin, digits.ids[20:50])
    assert (again.partner == -1).all()
    assert (again.name, again.label, again.task) == ("noise", "Thirty noisy tests", "classification")
    assert again.class_names == digits.class_names
    assert [vars(step) for step in again.provenance] == [
        {**vars(step), "settings": dict(step.settings)} for step in noisy.provenance
    ]
    listed = saved_suites()
    assert list(listed) == [path.stem]
    assert (listed[path.stem].label, listed[path.stem].inputs) == ("Thirty noisy tests", 30)


def test_a_suite_from_before_blends_told_both_tests_is_opened(noisy):
    path = save_suite("Thirty noisy tests", noisy)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist() if name != "partner.npy"}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    assert (open_saved(path.stem).partner == -1).all()


def test_a_kept_suite_is_renamed_and_nothing_else_changes(noisy):
    path = save_suite("Thirty noisy tests", noisy)
    before = open_saved(path.stem)
    change_saved(path.stem, label="  Noise ")
    again = open_saved(path.stem)
    assert (list(saved_suites()), again.label, again.name) == ([path.stem], "Noise", "noise")
    assert (again.fingerprint, again.provenance) == (before.fingerprint, before.provenance)
    np.testing.assert_array_equal(again.origin, before.origin)
    with pytest.raises(SettingError, match="needs a name"):
        change_saved(path.stem, label=" ")


def test_arrays_are_kept_with_how_they_came_to_be(digits):
    step = ProvenanceStep(
        "search", "found by a search", {"networks": ("lenet1", "lenet5"), "steps": np.int64(7)}, seed=3
    )
    path = save_suite("Finds", digits.inputs[:4], digits.targets[:4], [step], like=digits)
    again = open_saved(path.stem)
    np.testing.assert_array_equal(again.take([3, 0]), digits.inputs[[3, 0]])
    assert again.provenance[0].settings == {"networks": ("lenet1", "lenet5"), "steps": 7}
    assert (again.name, again.provenance[0].seed) == ("own", 3)
    assert (again.origin == -1).all()
    uploaded = custom_suite(packed(inputs=digits.inputs[:4], targets=digits.targets[:4]), digits)
    assert path.stem == f"kept-{uploaded.parts[0].fingerprint}"
    assert again.fingerprint == uploaded.fingerprint


def test_the_same_tests_are_kept_once_under_the_later_label(digits):
    first = save_suite("One", digits.inputs[:4], digits.targets[:4], like=digits)
    second = save_suite("Two", select_tests(original(digits), range(4)))
    assert first == second
    assert [one.label for one in saved_suites().values()] == ["Two"]
    assert open_saved(first.stem).name == "own"
    assert save_suite("Three", digits.inputs[:4], digits.targets[:4][::-1], like=digits) != first


def test_only_what_fits_is_listed(noisy, digits):
    save_suite("b", noisy)
    save_suite("a", select_tests(original(digits), [3]))
    assert [one.label for one in saved_suites(digits).values()] == ["a", "b"]
    other = type(digits)(**{**vars(digits), "class_names": tuple("abcdefghij")})
    assert saved_suites(other) == {}


def test_anyone_can_read_the_file(noisy):
    with np.load(save_suite("Mine", noisy), allow_pickle=False) as file:
        np.testing.assert_array_equal(file["inputs"], noisy.take(np.arange(30)))
        np.testing.assert_array_equal(file["targets"], noisy.targets)


def test_kept_suites_are_compared(lenet, digits, learnt, noisy):
    again = open_saved(save_suite("Mine", noisy).stem)
    found, expected = (compare_suites(lenet, [original(digits), one], learnt) for one in (again, noisy))
    assert [row["covered"] for row in found.rows()] == [row["covered"] for row in expected.rows()]


def test_removing(noisy):
    name = save_suite("Mine", noisy).stem
    SAVED.delete(name)
    assert saved_suites() == {}
    for gone in (name, "../kept-0123456789abcdef", "own", ""):
        with pytest.raises(SettingError, match="no saved suite"):
            open_saved(gone)
        with pytest.raises(SettingError, match="no saved suite"):
            SAVED.delete(gone)


def test_other_files_in_the_folder_are_left_out(noisy):
    path = save_suite("Mine", noisy)
    (SAVED.folder / "kept-0123456789abcdef.npz").write_bytes(b"no suite")
    with zipfile.ZipFile(SAVED.folder / "kept-fedcba9876543210.npz", "w") as archive:
        archive.writestr("about.json", "[]")
    assert list(saved_suites()) == [path.stem]
    with pytest.raises(DataError, match=r"cut off or not a zip file .* Delete it and save its tests again"):
        open_saved("kept-0123456789abcdef")


def test_damage_is_found_out(noisy):
    path = save_suite("Mine", noisy)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        open_saved(path.stem)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ([" "], {}, SettingError, "needs a name"),
        (["x"], {"like": None}, SettingError, "pass targets and like"),
        (["x"], {"provenance": [ProvenanceStep("x", "x", {"a": object()})]}, SettingError, "written as JSON"),
        (
            ["x"],
            {"provenance": [ProvenanceStep("x", "x", {"a": float("nan")})]},
            SettingError,
            "cannot be written as JSON",
        ),
        (["x"], {"targets": np.full(3, 11)}, DataError, "not 11 to 11"),
    ],
)
def test_what_cannot_be_kept_is_refused(arguments, options, error, message, digits):
    options = {"targets": digits.targets[:3], "like": digits, **options}
    with pytest.raises(error, match=message):
        save_suite(*arguments, digits.inputs[:3], **options)
    assert not list(SAVED.folder.glob("*"))


def test_what_is_too_large_to_be_read_again_is_refused(digits, one_mebibyte):
    many = np.resize(digits.inputs, (400, *digits.inputs.shape[1:]))
    with pytest.raises(DataError, match="holds 1,254,400 bytes, and at most 1,048,576 can be read again"):
        save_suite("Mine", many, np.zeros(400, int), like=digits)
    assert not list(SAVED.folder.glob("*"))


def test_saved_tests_have_a_quota_for_all_and_one_per_person(digits, tmp_path, monkeypatch):
    path = tmp_path / "owner.toml"
    path.write_text("[limits]\nsuites_mib = 2\nperson_mib = 1\n", encoding="utf-8")
    monkeypatch.setenv("IDC_CONFIG", str(path))
    draw = np.random.default_rng(0)

    def save(label, owner=""):
        noise = draw.random((250, *digits.inputs.shape[1:])).astype(np.float32)  # nothing makes it smaller
        return save_suite(label, noise, np.zeros(250, int), like=digits, owner=owner)

    mine = save("Mine", "somebody")
    with pytest.raises(DataError, match=r"'More' takes [\d,]+ bytes, and saved test sets have [\d,]+ left.*person_mib"):
        save("More", "somebody")
    change_saved(mine.stem, "somebody", label="Ours")  # takes the place of itself
    save("Theirs", "somebody else")
    with pytest.raises(DataError, match="or raise suites_mib"):
        save("Everybody's")
    assert sorted(suite.label for suite in SAVED.listed().values()) == ["Ours", "Theirs"]
    SAVED.delete(mine.stem)
    save("Everybody's")


def test_stopping_leaves_nothing_behind(digits):
    with pytest.raises(CancelledError):
        save_suite("Mine", make_suite("noise", digits), on_progress=lambda done, total, label: False)
    assert not list(SAVED.folder.glob("*"))


@pytest.mark.rare
def test_keeping_makes_one_block_at_a_time(digits):
    many = type(digits)(
        **{
            **vars(digits),
            "inputs": digits.inputs[np.arange(5000) % len(digits)],
            "targets": digits.targets[np.arange(5000) % len(digits)],
            "ids": np.arange(5000),
        }
    )
    suite = make_suite("noise", many)
    tracemalloc.start()
    save_suite("Many", suite)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < many.inputs.nbytes  # 10,000 inputs are written, twice as many


def test_uploads_as_streams_are_kept(digits):
    file = io.BytesIO(packed(inputs=digits.inputs[:3], targets=digits.targets[:3]))
    assert open_saved(save_suite("Upload", custom_suite(file, digits)).stem).provenance[0].label == "3 own tests"


def test_what_is_taken_away_can_be_brought_back(noisy, digits):
    again = custom_suite(pack_suite("Mine", noisy), digits)
    np.testing.assert_array_equal(again.take([0, 29]), noisy.take([0, 29]))
    assert f"kept-{again.parts[0].fingerprint}" == save_suite("Mine", noisy).stem


def test_one_bad_file_does_not_hide_the_good_ones(noisy):
    name = save_suite("Mine", noisy).stem
    folder = SAVED.folder
    (folder / "kept-0000000000000001.npz").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "kept-0000000000000002.npz")
    (folder / "kept-0000000000000003.npz").mkdir()
    (folder / "kept-0000000000000004.npz").symlink_to("/dev/zero")
    assert list(saved_suites()) == [name]
    damaged = SAVED.damaged()
    assert [reason.split(".npz ")[1][:14] for reason in damaged.values()] == [
        "cannot be read",
        "is a pipe; exp",
        "is a folder; e",
        "is a device; e",
    ]
    for one in damaged:
        with pytest.raises(DataError, match="Delete it and save its tests again"):
            open_saved(one)
    SAVED.delete("kept-0000000000000001")
    SAVED.delete("kept-0000000000000002")
    with pytest.raises(DataError, match="cannot be deleted"):
        SAVED.delete("kept-0000000000000003")
    assert list(SAVED.damaged()) == ["kept-0000000000000003", "kept-0000000000000004"]


def test_other_pixels_under_an_old_address_are_found_out(noisy):
    path = save_suite("Mine", noisy)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    pixels = bytearray(members["inputs.npy"])
    pixels[-4:] = np.float32(0.5).tobytes()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**members, "inputs.npy": bytes(pixels)}.items():
            archive.writestr(name, content)
    with pytest.raises(DataError, match="not those that were saved"):
        open_saved(path.stem)
