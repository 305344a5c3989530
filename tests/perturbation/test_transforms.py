import io

import numpy as np
import pytest
from PIL import Image

from idc_core.errors import CancelledError, DataError, SettingError
from idc_core.perturbation import TRANSFORMS, transform
from idc_core.perturbation.transforms import _BLOCK

NEUTRAL = {
    "rotation": {"degrees": 0.0},
    "shift": {"right": 0.0, "down": 0.0},
    "scale": {"factor": 1.0},
    "brightness": {"amount": 0.0},
    "contrast": {"factor": 1.0},
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_transform_changes_pictures_within_their_range(name, pictures):
    rgb = np.concatenate((pictures, pictures[:, :1]), 1)
    before = rgb.copy()
    changed = transform(rgb, name)
    assert changed.shape == rgb.shape
    assert changed.dtype == np.float32
    assert changed.min() >= 0
    assert changed.max() <= 1
    assert (np.abs(changed - rgb).reshape(len(rgb), -1).max(1) > 0.05).all()
    np.testing.assert_array_equal(rgb, before)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_no_transform_depends_on_the_batch(name, pictures):
    rgb = np.concatenate((pictures, pictures[:, :1]), 1)
    whole = transform(rgb, name, seed=5)
    part = transform(rgb[3:5], name, seed=5, numbers=[3, 4])
    np.testing.assert_allclose(whole[3:5], part, atol=1e-6)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_parameter_is_documented_and_checked(name, pictures):
    entry = TRANSFORMS[name]
    assert entry.label
    assert entry.help.endswith(".")
    for parameter in entry.parameters:
        assert parameter.low <= parameter.default <= parameter.high
        assert parameter.help.endswith(".")
        for wrong in (parameter.high + 1, parameter.low - 1, "much", True, float("nan")):
            with pytest.raises(SettingError, match=parameter.name):
                transform(pictures[:, :1], name, **{parameter.name: wrong})


LAWS = (
    test_every_transform_changes_pictures_within_their_range,
    test_no_transform_depends_on_the_batch,
    test_every_parameter_is_documented_and_checked,
)
"""What every transform obeys, one from elsewhere too."""


@pytest.mark.parametrize("name", NEUTRAL)
def test_neutral_settings_change_nothing(name, pictures):
    np.testing.assert_allclose(transform(pictures, name, **NEUTRAL[name]), pictures, atol=1e-5)


def test_a_quarter_turn_is_exact(pictures):
    square = pictures[:, :, :, :9]
    np.testing.assert_allclose(transform(square, "rotation", degrees=90), np.rot90(square, 1, (2, 3)), atol=1e-4)


def test_half_a_turn_of_an_oblong_picture_is_exact(pictures):
    np.testing.assert_allclose(transform(pictures, "rotation", degrees=180), pictures[:, :, ::-1, ::-1], atol=1e-4)


def test_turning_an_oblong_picture_keeps_its_proportions():
    """A square in the middle stays a square: turned by 90 degrees it looks as it did."""
    picture = np.zeros((1, 1, 20, 40), np.float32)
    picture[:, :, 5:15, 15:25] = 1
    np.testing.assert_allclose(transform(picture, "rotation", degrees=90), picture, atol=1e-3)


def test_a_shift_by_whole_pixels_is_exact_and_continues_the_edge(pictures):
    moved = transform(pictures, "shift", right=3, down=-2)
    np.testing.assert_allclose(moved[:, :, :-2, 3:], pictures[:, :, 2:, :-3], atol=1e-5)
    np.testing.assert_allclose(moved[:, :, :-2, 0], pictures[:, :, 2:, 0], atol=1e-5)


def test_scaling_up_by_three_shows_the_middle_third(pictures):
    # Of nine rows every third one, from the second, is a row of the picture.
    column = pictures.mean(3, keepdims=True).repeat(12, 3)
    np.testing.assert_allclose(transform(column, "scale", factor=3.0)[:, :, 1::3], column[:, :, 3:6], atol=1e-5)


def test_brightness_and_contrast_are_their_formulas(pictures):
    np.testing.assert_allclose(transform(pictures, "brightness", amount=-0.3), np.clip(pictures - 0.3, 0, 1), atol=1e-6)
    flat = transform(pictures, "contrast", factor=0.0)
    np.testing.assert_allclose(flat, np.broadcast_to(pictures.mean((1, 2, 3), keepdims=True), flat.shape), atol=1e-6)


def test_blur_is_a_gaussian_of_the_width_asked_for():
    point = np.zeros((1, 1, 41, 41), np.float32)
    point[0, 0, 20, 20] = 1
    bell = transform(point, "blur", width=2.0)[0, 0]
    away = np.arange(41) - 20
    assert bell.sum() == pytest.approx(1, abs=1e-4)
    assert (bell * away**2).sum() == pytest.approx(4, rel=0.03)
    assert (bell * away[:, None] ** 2).sum() == pytest.approx(4, rel=0.03)
    even = np.full((1, 1, 8, 8), 0.7, np.float32)
    np.testing.assert_allclose(transform(even, "blur", width=3.0), even, atol=1e-6)


def test_occlusion_covers_one_rectangle_of_the_size_asked_for(pictures):
    covered = transform(pictures, "occlusion", share=1 / 3, shade=0.5)
    corners = set()
    for before, after in zip(pictures, covered, strict=True):
        rows, columns = np.nonzero((before != after).any(0))
        top, left = int(rows.min()), int(columns.min())
        assert (rows.max() - top + 1, columns.max() - left + 1) == (3, 4)
        assert (after[:, top : top + 3, left : left + 4] == 0.5).all()
        corners.add((top, left))
    assert len(corners) > 2
    assert (transform(pictures, "occlusion", share=1.0, shade=0.0) == 0).all()


def test_jpeg_is_what_a_jpeg_file_holds(pictures):
    grey = pictures[:1, :1]
    file = io.BytesIO()
    Image.fromarray(np.rint(grey[0, 0] * 255).astype(np.uint8)).save(file, format="JPEG", quality=20)
    expected = np.asarray(Image.open(file), np.float32) / 255
    np.testing.assert_array_equal(transform(grey, "jpeg", quality=20)[0, 0], expected)
    with pytest.raises(SettingError, match="1 or 3 channels"):
        transform(pictures, "jpeg")


def test_long_work_tells_how_far_it_is_and_can_be_stopped():
    many = np.zeros((_BLOCK + 3, 1, 4, 4), np.float32)
    seen = []
    transform(many, "brightness", on_progress=lambda *told: seen.append(told[:2]))
    assert seen == [(_BLOCK, _BLOCK + 3), (_BLOCK + 3, _BLOCK + 3)]
    with pytest.raises(CancelledError):
        transform(many, "brightness", on_progress=lambda *told: False)


def test_unknown_names_are_refused_with_the_known_ones(pictures):
    with pytest.raises(SettingError, match="rotation, shift"):
        transform(pictures, "rotate")
    with pytest.raises(SettingError, match="no parameter 'angle'; its parameters: degrees"):
        transform(pictures, "rotation", angle=3)
    with pytest.raises(DataError, match="Only pictures"):
        transform(pictures[0], "rotation")
