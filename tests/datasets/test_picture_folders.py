"""Pictures in class folders: exact pixels, splits, zip files, what is decoded and kept, and what is hostile."""

import io
import os
import shutil
import time
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import idc_core as idc
from idc_core.datasets import DATASETS, pictures
from idc_core.datasets.class_folders import class_folders
from idc_core.datasets.preparation import Preparation
from idc_core.datasets.registry import open_data
from idc_core.datasets.row_cache import RowCache
from idc_core.errors import CancelledError, DataError
from tests.guarded.hostile import png

RANDOM = np.random.default_rng(0)


def content(pixels, form="PNG"):
    """The bytes of a picture."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, form)
    return stream.getvalue()


def made(folders, count=4, shape=(6, 8, 3)):
    """Files by name: so many random pictures in each folder."""
    return {
        f"{folder}/{number}.png": content(RANDOM.integers(0, 256, shape).astype(np.uint8))
        for folder in folders
        for number in range(count)
    }


def write(root, files):
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def packed(path, files, top=""):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(top + name, data)
    return path


def loaded(path, split="train", limit=None, **preparation):
    entry = open_data(path, preparation=Preparation(**preparation))
    return idc.load_dataset(entry.name, split, limit)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """An empty cache, and the registry as it was."""
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))
    before = dict(DATASETS)
    yield tmp_path / "home"
    DATASETS.clear()
    DATASETS.update(before)


@pytest.fixture
def decoded(monkeypatch):
    """Names of the pictures that were decoded."""
    names = []
    read = pictures.read_photo
    monkeypatch.setattr(pictures, "read_photo", lambda *args, **given: names.append(args[1]) or read(*args, **given))
    return names


GIVEN = ("train/cat", "train/dog", "test/cat", "test/dog")


def test_pixels_are_exact_and_targets_those_of_the_folders(tmp_path):
    files = made(GIVEN)
    train = loaded(write(tmp_path / "mine", files))
    assert train.inputs.shape == (8, 3, 6, 8)
    assert train.inputs.dtype == np.float32
    assert train.class_names == ("cat", "dog")
    assert sorted(train.targets) == [0] * 4 + [1] * 4
    pixels = {
        np.asarray(Image.open(io.BytesIO(data))).transpose(2, 0, 1).tobytes(): name for name, data in files.items()
    }
    names = [pixels[np.rint(picture * 255).astype(np.uint8).tobytes()] for picture in train.inputs]
    assert [name.split("/")[1] for name in names] == [train.class_names[target] for target in train.targets]
    assert all(name.startswith("train/") for name in names)
    np.testing.assert_array_equal(train.inputs, np.rint(train.inputs * 255).astype(np.float32) / np.float32(255))


def test_a_zip_file_is_as_its_folder(tmp_path):
    files = made(GIVEN) | {"readme.txt": b"x", "test/dog/.hidden.png": b"x", "__MACOSX/cat/1.png": b"x"}
    folder = write(tmp_path / "mine", files)
    for path in (packed(tmp_path / "a.zip", files), packed(tmp_path / "b.zip", files, "mine/")):
        for split in ("train", "test"):
            first, second = loaded(folder, split), loaded(path, split)
            assert first.fingerprint == second.fingerprint
            np.testing.assert_array_equal(first.inputs, second.inputs)
            assert any("1 '.txt'" in note for note in second.notes)
            assert any("2 hidden" in note for note in second.notes)


def test_a_split_is_drawn_by_class_and_is_the_same_for_any_limit(tmp_path):
    path = write(tmp_path / "mine", made(("cat",), 10) | made(("dog",), 20))
    train, test = loaded(path), loaded(path, "test")
    assert (len(train), len(test)) == (24, 6)
    assert test.targets.tolist().count(0) == 2
    assert any("20 % drawn as tests, seed 0" in note for note in test.notes)
    rows = {picture.tobytes() for picture in np.concatenate([train.inputs, test.inputs])}
    assert len(rows) == 30
    np.testing.assert_array_equal(loaded(path, limit=7).inputs, train.inputs[:7])
    assert set(loaded(path, limit=7).targets) == {0, 1}
    other = loaded(path, "test", seed=1)
    assert {one.tobytes() for one in other.inputs} != {one.tobytes() for one in test.inputs}


@pytest.mark.parametrize("name", ["val", "valid", "Validation"])
def test_validation_pictures_are_tests_where_there_are_no_others(name):
    names = ["train/a/1.png", "train/b/1.png", f"{name}/a/2.png"]
    found = class_folders(names, "x", Preparation())
    assert found.names["test"] == (f"{name}/a/2.png",)
    assert "validation" in found.notes[0]
    found = class_folders([*names, "test/b/3.png", "more/a/4.png"], "x", Preparation())
    assert found.names["test"] == ("test/b/3.png",)
    assert found.notes == (
        "split as given; the validation split is left out",
        "1 pictures outside the folders of the splits left out",
    )


def test_deeper_folders_belong_to_their_class_and_a_common_one_to_none():
    found = class_folders(["all/a/x/1.png", "all/a/2.png", "all/b/1.png", "all/b/2.png"], "x", Preparation())
    assert found.class_names == ("a", "b")
    assert len(found.names["train"]) == 3


def test_a_limit_decodes_as_many_and_a_second_opening_none(tmp_path, decoded):
    path = write(tmp_path / "mine", made(("cat", "dog"), 20))
    loaded(path, limit=5)
    assert len(decoded) == 5
    loaded(path, limit=9)
    assert len(decoded) == 9
    loaded(path)
    loaded(path, "test")
    assert len(decoded) == len(set(decoded)) == 40
    loaded(path)
    assert len(decoded) == 40
    (path / "cat" / "3.png").write_bytes(content(np.zeros((6, 8, 3), np.uint8)))
    assert (loaded(path).inputs.max((1, 2, 3)) == 0).sum() + (
        loaded(path, "test").inputs.max((1, 2, 3)) == 0
    ).sum() == 1


def test_classes_and_shape_are_told_without_decoding_all(tmp_path, decoded):
    entry = open_data(write(tmp_path / "mine", made(("cat", "dog"), 20)))
    assert (entry.task, entry.class_names, entry.input_shape) == ("classification", ("cat", "dog"), (3, 6, 8))
    assert len(decoded) == 1


@pytest.mark.parametrize("given", [Path, str])
def test_a_function_may_return_the_path_and_then_decodes_no_more_than_is_asked_for(tmp_path, decoded, given):
    folder = write(tmp_path / "photos", made(["train/cat", "train/dog", "test/cat", "test/dog"], 20))
    idc.dataset("by-path")(lambda split: given(folder))
    entry, told = DATASETS["by-path"], []
    assert (entry.input_shape, entry.class_names, entry.task) == ((3, 6, 8), ("cat", "dog"), "classification")
    assert len(decoded) == 1
    found = idc.load_dataset("by-path", "train", on_progress=lambda *now: told.append(now) or True)
    assert (0, 39, "pictures decoded") in told
    assert len(decoded) == 40
    assert (len(found), len(idc.load_dataset("by-path", "test", 3))) == (40, 3)
    assert found.fingerprint == loaded(folder).fingerprint


def test_a_function_that_returns_another_path_for_each_split_is_refused(tmp_path):
    folder = write(tmp_path / "photos", made(["train/cat", "train/dog", "test/cat", "test/dog"]))
    idc.dataset("two-paths")(lambda split: folder / split)
    assert len(idc.load_dataset("two-paths", "train")) > 0
    with pytest.raises(DataError, match="expected one path for both, of files"):
        idc.load_dataset("two-paths", "test")


def test_stopping_keeps_what_was_decoded(tmp_path, monkeypatch, decoded):
    read = pictures.read_photo
    monkeypatch.setattr(pictures, "read_photo", lambda *args, **given: time.sleep(0.002) or read(*args, **given))
    entry = open_data(write(tmp_path / "mine", made(("cat", "dog"), 80)))
    with pytest.raises(CancelledError):
        idc.load_dataset(entry.name, "train", on_progress=lambda done, total, label: done == 0)
    assert 0 < len(decoded) < 128
    idc.load_dataset(entry.name, "train")
    assert len(decoded) == 128


@pytest.mark.parametrize(
    "damage",
    ["rows cut", "rows changed", "digests changed", "digests cut", "rows a folder", "rows a pipe", "digests a link"],
)
def test_a_damaged_cache_is_decoded_again(tmp_path, home, decoded, damage):
    path = write(tmp_path / "mine", made(("cat", "dog"), 8))
    before = loaded(path)
    (kept,) = (home / "pictures").iterdir()
    file = kept / damage.split()[0]
    data = bytearray(file.read_bytes())
    file.unlink()
    if " a " in damage:
        put = {"folder": file.mkdir, "pipe": partial(os.mkfifo, file), "link": partial(file.symlink_to, path)}
        put[damage.split()[-1]]()
        with pytest.raises(DataError, match="cannot be kept in"):
            loaded(path)
        return
    if damage.endswith("changed"):
        data[len(data) // 2] ^= 1
    file.write_bytes(data if damage.endswith("changed") else data[: len(data) // 2])
    after = loaded(path)
    np.testing.assert_array_equal(after.inputs, before.inputs)
    assert after.fingerprint == before.fingerprint
    assert len(decoded) > len(before)


def test_the_least_recently_used_decoded_pictures_go_first(tmp_path, monkeypatch):
    from idc_core.datasets import row_cache

    monkeypatch.setattr(row_cache, "_MOST", 3 * 8192)
    for number, name in enumerate("abc"):
        cache = RowCache(tmp_path / "pictures" / name, 1, 8192)
        with cache.writing(1) as put:
            put(0, np.full(8192, number, np.uint8))
        cache.used()
    RowCache(tmp_path / "pictures" / "a", 1, 8192).used()
    with RowCache(tmp_path / "pictures" / "d", 2, 8192).writing(2):
        pass
    assert {one.name for one in (tmp_path / "pictures").iterdir()} == {"a", "d"}
    with pytest.raises(DataError, match="4 pictures would take 32,768 bytes on disk"), cache.writing(4):
        pass


def test_sizes_that_differ_are_refused_with_the_sizes_and_read_at_a_given_size(tmp_path):
    path = write(tmp_path / "mine", made(("cat",)) | made(("dog",), 3, (9, 9, 3)))
    with pytest.raises(DataError, match=r"of 2 sizes \(rows x columns\), from 6 x 8 to 9 x 9, most often 6 x 8"):
        loaded(path)
    found = loaded(path, size=(4, 5), fit="crop")
    assert found.inputs.shape[1:] == (3, 4, 5)
    assert found.notes[0] == "brought to 4 x 5, the middle of the longer side, bilinear"


def test_a_size_that_the_survey_did_not_see_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "_SURVEYED", 1)
    path = write(tmp_path / "mine", made(("cat",)) | made(("dog",), 3, (9, 9, 3)))
    with pytest.raises(DataError, match=r"'dog/.\.png' has 9 x 9 pixels \(rows x columns\) and others 6 x 8"):
        loaded(path)


def test_grey_pictures_have_one_channel_unless_asked(tmp_path):
    path = write(tmp_path / "mine", made(("cat", "dog"), shape=(6, 8)))
    assert loaded(path).inputs.shape[1:] == (1, 6, 8)
    assert loaded(path, channels=3).inputs.shape[1:] == (3, 6, 8)
    mixed = write(path, made(("dog",), 1))
    assert loaded(mixed).inputs.shape[1:] == (3, 6, 8)
    assert loaded(mixed, channels=1).inputs.shape[1:] == (1, 6, 8)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "holds no pictures"),
        ({"a/readme.txt": b"x"}, r"holds no pictures .*1 '\.txt'"),
        ({"config.json": b"{}", "model.safetensors": b""}, r"holds a network \(config.json\) and no data"),
        (made(("cat",)), r"one class only \('cat'\)"),
        (made(("train/cat", "train/dog")) | made(("test",)), "the picture 'test/0.png' lies in no class folder"),
        (made(("test/cat", "test/dog")), "has the split test alone"),
        ({"1.png": b"", "2.png": b""}, "the picture '1.png' lies in no class folder"),
        ({"cat/1.png": b"", "dog/1.png": b""}, "the picture 'cat/1.png' is not a whole picture"),
        (
            made(("cat", "dog")) | {"dog/x.jpg": content(np.zeros((9, 9), np.uint8), "JPEG")[:-9]},
            "'dog/x.jpg' .*runcated",
        ),
        (made(("cat", "dog")) | {"dog/x.png": png(31_623, 31_623)}, "'dog/x.png' is not a whole picture .Image size"),
        (made(("cat", "dog\N{RIGHT-TO-LEFT MARK}", "dog\n")), "differ only in signs that cannot be printed"),
    ],
)
@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_what_is_wrong_is_said_with_the_file(tmp_path, files, message, kind):
    (tmp_path / "mine").mkdir()
    path = write(tmp_path / "mine", files) if kind == "folder" else packed(tmp_path / "mine.zip", files)
    with pytest.raises(DataError, match=f"(?s)mine.*{message}"):
        loaded(path, size=(6, 8))


@pytest.mark.parametrize("name", ["../cat/9.png", "/cat/9.png", "cat/../../9.png", "C:/9.png"])
def test_names_in_a_zip_file_that_lead_out_are_refused(tmp_path, name):
    path = packed(tmp_path / "mine.zip", made(("cat", "dog")) | {name: b""})
    with pytest.raises(DataError, match="leads out of its folder"):
        loaded(path)


def test_a_zip_bomb_is_refused_before_it_is_read(tmp_path):
    path = packed(tmp_path / "mine.zip", made(("cat", "dog")) | {"dog/x.bmp": bytes(30_000_000)})
    with pytest.raises(DataError, match="refused as a trap"):
        loaded(path)


def test_a_link_in_a_zip_file_is_a_damaged_picture(tmp_path):
    link = zipfile.ZipInfo("dog/x.png")
    link.external_attr = 0o120777 << 16
    path = packed(tmp_path / "mine.zip", made(("cat", "dog")))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(DataError, match=r"'dog/x\.png' is not a whole picture"):
        loaded(path)


def test_a_link_that_leads_out_of_the_folder_is_refused(tmp_path):
    outside = write(tmp_path / "other", made(("cat",), 1))
    path = write(tmp_path / "mine", made(("cat", "dog")))
    (path / "dog" / "link.png").symlink_to(outside / "cat" / "0.png")
    with pytest.raises(DataError, match=r"'dog/link\.png' is a link that leads out"):
        loaded(path)


def test_strange_names_are_made_harmless(tmp_path):
    path = write(tmp_path / "mine", made(("a\nb", "<b>bold</b>", "evil\N{RIGHT-TO-LEFT OVERRIDE}gnp")))
    names = loaded(path).class_names
    assert names == ("<b>bold<", "a\ufffdb", "evil\ufffdgnp") or "".join(names).isprintable()
    (path / "a\nb" / "x\n.png").write_bytes(b"broken")
    with pytest.raises(DataError) as error:
        loaded(path)
    assert "\n" not in str(error.value)


def test_equal_pictures_are_all_kept(tmp_path):
    one = content(np.zeros((6, 8, 3), np.uint8))
    path = write(tmp_path / "mine", {f"{name}/{number}.png": one for name in ("cat", "dog") for number in range(5)})
    assert len(loaded(path)) + len(loaded(path, "test")) == 10


def test_an_empty_class_folder_is_no_class(tmp_path):
    path = write(tmp_path / "mine", made(("cat", "dog")))
    (path / "fox").mkdir()
    assert loaded(path).class_names == ("cat", "dog")


def test_pictures_that_change_after_they_were_opened_are_said(tmp_path, monkeypatch, home):
    monkeypatch.setattr(pictures, "IN_MEMORY", 0)
    path = write(tmp_path / "mine", made(("cat", "dog")))
    found = loaded(path)
    shutil.rmtree(home / "pictures")
    assert found.inputs[:2].shape == (2, 3, 6, 8)
    shutil.rmtree(home / "pictures")
    for file in path.rglob("*.png"):
        file.write_bytes(content(np.zeros((6, 8, 3), np.uint8)))
    with pytest.raises(DataError, match="changed after it was opened"):
        found.inputs[:2]


def clear_files():
    """Pictures of which every second has an alpha channel, and one 16 bits."""
    pixels = np.random.default_rng(1).integers(0, 256, (5, 6, 8, 4)).astype(np.uint8)
    files = {f"{kind}/{at}.png": content(pixels[at, ..., : 3 + at % 2]) for kind in ("cat", "dog") for at in range(5)}
    return pixels, files | {"dog/9.png": content(np.full((6, 8), 515, np.uint16))}


@pytest.mark.parametrize(
    ("given", "said"), [({}, "colours kept as they are, alpha left out"), ({"alpha": "white"}, "put on white")]
)
def test_what_is_not_kept_of_pictures_is_a_choice_and_told(tmp_path, given, said):
    pixels, files = clear_files()
    colours, shares = pixels[..., :3].astype(float), pixels[..., 3:] / 255
    colours[1::2] = np.where(given, colours * shares + 255 * (1 - shares), colours)[1::2]
    for path in (write(tmp_path / "mine", files), packed(tmp_path / "mine.zip", files)):
        found = loaded(path, test_share=0.1, **given)
        read = (np.asarray(found.inputs) * 255).transpose(0, 2, 3, 1)
        for one in read:
            apart = min(np.abs(one - other).max() for other in (*colours, np.full((6, 8, 3), 2)))
            assert apart < 1.01
        assert f"4 of 11 pictures have an alpha channel or a transparent colour: {said}" in found.notes
        assert "1 of 11 pictures have more than 8 bits a channel: the upper 8 are kept" in found.notes
    assert Preparation.from_json(Preparation(**given).to_json(), "x") == Preparation(**given)


def test_nothing_is_said_of_pictures_of_which_all_is_kept(tmp_path):
    notes = loaded(write(tmp_path / "mine", made(("cat", "dog")))).notes
    assert not any("alpha" in note or "bits" in note for note in notes)


@pytest.mark.rare
def test_a_hundred_thousand_empty_files_are_one_sentence(tmp_path):
    path = packed(tmp_path / "mine.zip", {f"{'ab'[number % 2]}/{number}.png": b"" for number in range(100_000)})
    for _ in range(2):
        with pytest.raises(DataError, match=r"the picture 'a/0\.png' is not a whole picture"):
            loaded(path, size=(6, 8), channels=3)


def test_files_that_are_no_pictures_are_told_from_pictures_by_their_endings():
    assert [pictures.is_picture(name) for name in ("a.PNG", "a.jpeg", "a.tif", "a.txt", "png")] == [True] * 3 + [
        False
    ] * 2


@pytest.mark.parametrize(
    ("folders", "classes"),
    [
        (("bus", "car", "train"), ("bus", "car", "train")),
        (("bus", "test", "val"), ("bus", "test", "val")),
        (("boat", "train"), ("boat", "train")),
        (("train/bus", "train/train", "test/bus", "test/train"), ("bus", "train")),
        (("train/train/cat", "train/train/dog", "test/test/cat", "test/test/dog"), ("cat", "dog")),
        (("images", "labels", "text"), ("images", "labels", "text")),
        (("a, b", "c"), ("a, b", "c")),
    ],
)
def test_classes_may_be_called_as_splits_are(tmp_path, folders, classes):
    path = write(tmp_path / "mine", made(folders))
    assert loaded(path).class_names == classes


@pytest.mark.parametrize("form", ["{}/1.png", "train/{}/1.png", "{}/train/1.png"])
def test_pictures_and_their_masks_are_no_classes(tmp_path, form):
    mask = content(np.zeros((4, 4), np.uint8))
    path = write(tmp_path / "mine", {form.format(name): mask for name in ("images", "masks")})
    with pytest.raises(DataError, match="which are pictures and what is marked in them, and no classes"):
        loaded(path)
