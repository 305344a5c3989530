"""Criteria on disk: what goes on from there, and files that are refused. What all keep is among the laws."""

import copy
import io
import json
import zipfile
from contextlib import suppress

import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core import CRITERIA, IDC, load_criterion
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import criterion
from idc_core.coverage.streamed import TargetCriterion
from idc_core.errors import DataError, IdcError, ModelError, SettingError
from idc_core.guarded import seal_zip
from tests.coverage.one_pass import NAMES, NETWORK, OPTIONS, TESTS, TRAIN, make, seeing
from tests.coverage.test_calls import ALL, MORE, fitted, seen
from tests.lrp.networks import numbers, settle


@pytest.fixture
def file(tmp_path):
    return tmp_path / "criterion"


def rewritten(file, settings=None, **arrays):
    """Change a saved criterion as somebody may who knows the format; None leaves an array out."""
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    about = json.loads(parts.pop("criterion.json"))
    about["settings"] |= settings or {}
    held = {name.removesuffix(".npy"): np.load(io.BytesIO(content)) for name, content in parts.items()}
    held = {name: array for name, array in (held | arrays).items() if array is not None}
    content = io.BytesIO()
    np.savez(content, **held)
    with zipfile.ZipFile(content, "a") as archive:
        archive.writestr("criterion.json", json.dumps(about))
    file.write_bytes(seal_zip(content.getvalue()))


class TestIDC:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"rule": "alpha-beta", "alpha": 3.0, "bias": "redistribute", "drop_zeros": True, "priority": "absolute"},
            {"clustering": "gaussian-mixture", "clusters": (2, 3)},
            {"original": True},
            {"m": None, "clusters": 2, "batch_size": 7},
        ],
    )
    def test_it_goes_on(self, file, options):
        with torch.no_grad():
            truth = NETWORK(TRAIN).argmax(1).numpy()
        made = IDC(NETWORK, "fc", **{"m": 4, **options}).fit(TRAIN, truth).update(TESTS)
        made.save(file)
        loaded = idc.load_criterion(str(file), NETWORK)
        assert (loaded.score, loaded.covered, loaded.total) == (made.score, made.covered, made.total)
        assert loaded.important.tolist() == made.important.tolist()
        np.testing.assert_array_equal(loaded.importance, made.importance)
        for one, other in zip(loaded.clusters, made.clusters, strict=True):
            for name, value in vars(one).items():
                np.testing.assert_array_equal(value, getattr(other, name))
        np.testing.assert_array_equal(loaded.profile(MORE).targets, made.profile(MORE).targets)
        assert loaded._settings() == made._settings()
        assert seen(loaded) == seen(made)
        assert seen(loaded.update(MORE)) == seen(copy.copy(made).update(MORE))
        assert seen(made.merge(load_criterion(file, NETWORK))) == (
            seen(load_criterion(file, NETWORK))[0],
            [2 * count for count in seen(load_criterion(file, NETWORK))[1]],
        )

    def test_clusters_of_a_sketch_keep_their_bounds(self, file, monkeypatch, tmp_path):
        (tmp_path / "config.toml").write_text("[limits]\nsketch_from = 20\n", encoding="utf-8")
        monkeypatch.setenv("IDC_CONFIG", str(tmp_path / "config.toml"))
        made = fitted("idc").update(TESTS)
        assert all(one.sketch is not None for one in made.clusters)
        made.save(file)
        for one, other in zip(load_criterion(file, NETWORK).clusters, made.clusters, strict=True):
            for name, value in vars(one.sketch).items():
                np.testing.assert_array_equal(value, getattr(other.sketch, name))

    def test_cells_past_64_bits(self, file):
        network = settle(nn.Sequential(nn.Linear(6, 70), nn.ReLU(), nn.Linear(70, 3)))
        made = IDC(network, "0", m=70, clusters=2).fit(numbers(120, 6, seed=5)).update(numbers(60, 6, seed=6))
        made.save(file)
        loaded = load_criterion(file, network)
        assert loaded.total == 2**70
        assert seen(loaded) == seen(made)


class TestFile:
    @pytest.mark.parametrize("name", ALL)
    def test_it_holds_no_network_and_no_pickle(self, name, file):
        fitted(name).update(TESTS).save(file)
        content = file.read_bytes()
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            about = json.loads(archive.read("criterion.json"))
        assert about["criterion"] == name
        assert len(about["network"]) == 16
        weights = NETWORK.fc.weight.detach().numpy().tobytes()
        assert weights[:64] not in content
        with np.load(file, allow_pickle=False) as arrays:
            for array in set(names) - {"criterion.json"}:
                assert arrays[array.removesuffix(".npy")].dtype.kind in "fiuU"

    @pytest.mark.parametrize("name", [name for name in NAMES if make(name, **OPTIONS[name]).learns])
    def test_what_has_learned_nothing_is_not_saved(self, name, file):
        with pytest.raises(SettingError, match="call fit"):
            make(name, **OPTIONS[name]).save(file)
        with pytest.raises(SettingError, match="call fit"):
            IDC(NETWORK, "fc").save(file)
        assert not file.exists()

    @pytest.mark.parametrize("name", ["nc", "tknc", "tknp", "cc", "nlc"])
    def test_what_learns_nothing_can_be_saved_before_any_test(self, name, file):
        make(name, **OPTIONS[name]).save(file)
        assert load_criterion(file, NETWORK).update(TESTS).score == seeing(name).update(TESTS).score

    def test_nlc_with_a_prior_and_cc_that_was_merged(self, file):
        prior = make("nlc", prior=True, divide="pairs").fit(TRAIN).update(TESTS)
        prior.save(file)
        loaded = load_criterion(file, NETWORK)
        assert loaded.score == prior.score
        assert loaded.update(MORE).score == prior.update(MORE).score
        merged = fitted("cc").update(TESTS[:30]).merge(fitted("cc").update(TESTS[30:]))
        merged.save(file)
        assert load_criterion(file, NETWORK).score == merged.score

    def test_where_it_cannot_be_written(self, tmp_path):
        for place in (tmp_path, tmp_path / "nowhere" / "file"):
            with pytest.raises(SettingError, match=r"cannot be written.*save the criterion elsewhere"):
                fitted("nc").save(place)


class TestRefused:
    @pytest.mark.parametrize("name", ALL)
    def test_another_network(self, name, file):
        fitted(name).save(file)
        other = copy.deepcopy(NETWORK)
        other.fc.bias.data[0] += 1e-6
        with pytest.raises(ModelError, match=r"belongs to another network: fingerprint \w{16}, and this one has"):
            load_criterion(file, other)
        assert load_criterion(file, copy.deepcopy(NETWORK)).score == pytest.approx(0, abs=0)

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("name", ALL)
    def test_damage(self, name, file):
        fitted(name).update(TESTS).save(file)
        content = file.read_bytes()
        for place in range(0, len(content), max(1, len(content) // 60)):
            file.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
            with pytest.raises(DataError, match="damaged"):
                load_criterion(file, NETWORK)
            file.write_bytes(content[:place])
            with pytest.raises(DataError, match="damaged"):
                load_criterion(file, NETWORK)
        file.unlink()
        with pytest.raises(DataError, match="cannot be read"):
            load_criterion(file, NETWORK)

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("name", ALL)
    def test_arrays_that_do_not_fit(self, name, file):
        fitted(name).update(TESTS).save(file)
        content = file.read_bytes()
        with np.load(file) as arrays:
            held = {one: arrays[one] for one in arrays.files if one != "criterion.json"}
        assert held
        for one, array in held.items():
            wrong = [array[..., None]]
            if one != "fingerprint":
                wrong.append(array.astype(str))
            if array.dtype.kind == "f" and array.size:
                wrong.append(np.full_like(array, np.nan))
            for bad in wrong:
                file.write_bytes(content)
                rewritten(file, **{one: bad})
                with pytest.raises(DataError, match="does not fit its settings"):
                    load_criterion(file, NETWORK)
            for other in (None, np.concatenate([array, array]) if array.ndim else array + array):
                file.write_bytes(content)
                rewritten(file, **{one: other})
                # More or fewer rows than were saved may be what another criterion has: then they are taken.
                with suppress(IdcError):
                    load_criterion(file, NETWORK).profile(TESTS)

    @pytest.mark.parametrize(
        "settings",
        [
            {"k": 0},
            {"k": "a"},
            {"k": None},
            {"layers": []},
            {"layers": 3},
            {"layers": ["fc9"]},
            {"other": 1},
            {"k": 10**9},
        ],
    )
    def test_settings_that_do_not_fit(self, settings, file):
        fitted("kmnc").update(TESTS).save(file)
        rewritten(file, settings)
        with pytest.raises(IdcError, match=r"k must be|not fit its settings|at least one layer|names of layers|fc9"):
            load_criterion(file, NETWORK)

    @pytest.mark.parametrize("name", ["idc", "nc"])
    def test_a_layer_that_the_network_lacks(self, name, file):
        made = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
        options = {"m": 3} if name == "idc" else {}
        CRITERIA[name](made, "1", **options).fit(numbers(50, 6).float()).update(numbers(9, 6).float()).save(file)
        other = nn.Sequential()
        other.add_module("0", made[0])
        other.add_module("2", made[2])
        with pytest.raises(ModelError, match="belongs to another network"):
            load_criterion(file, other)

    def test_other_files(self, file):
        file.write_bytes(b"PK" * 50)
        with pytest.raises(DataError, match=r"The criterion in .* is damaged"):
            load_criterion(file, NETWORK)
        content = io.BytesIO()
        np.savez(content, hit=np.zeros(3))
        file.write_bytes(seal_zip(content.getvalue()))
        with pytest.raises(DataError, match=r"no member criterion\.json|lacks criterion\.json"):
            load_criterion(file, NETWORK)

    def test_a_criterion_that_is_not_there(self, file):
        fitted("nc").save(file)
        content = io.BytesIO(file.read_bytes())
        with zipfile.ZipFile(content) as archive:
            about = json.loads(archive.read("criterion.json")) | {"criterion": "gone"}
        other = io.BytesIO()
        np.savez(other, x=np.zeros(1))
        with zipfile.ZipFile(other, "a") as archive:
            archive.writestr("criterion.json", json.dumps(about))
        file.write_bytes(seal_zip(other.getvalue()))
        with pytest.raises(SettingError, match="Unknown coverage criterion 'gone'"):
            load_criterion(file, NETWORK)

    def test_a_class_that_does_not_say_what_it_has_learned(self, file):
        class Learner(TargetCriterion):
            learns = True

            def _profile(self, batch):
                return Profiles.of_mask(batch.values > 0)

        try:
            made = criterion("learner", label="Learner", help="Learns.", citation="none")(Learner)(NETWORK, "fc")
            made.sizes = (6,)
            with pytest.raises(SettingError, match="Learner cannot be saved: its class does not say what"):
                made.save(file)
        finally:
            del CRITERIA["learner"]
