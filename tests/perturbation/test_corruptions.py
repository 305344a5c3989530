"""Corruptions beside slow ones written from the paper's program, pixel by pixel, and what all of them keep to."""

import io

import numpy as np
import pytest
from PIL import Image

from idc_core.errors import DataError, SettingError
from idc_core.perturbation import CORRUPTIONS, corrupt
from idc_core.perturbation.corruptions.weather import frosted
from idc_core.perturbation.inputs import stream

SIDE = 16
RANDOM = np.random.default_rng(0)
SHADES = np.linspace(0, 1, SIDE)
PICTURES = np.stack(
    [np.stack([np.outer(SHADES, SHADES[::step]) for step in (1, -1, 1)]), RANDOM.random((3, SIDE, SIDE))]
)
PICTURES = (np.rint(PICTURES * 255) / 255).astype(np.float32)


def bytes_of(pictures=PICTURES):
    return np.rint(pictures * 255).astype(np.uint8).transpose(0, 2, 3, 1)


def expected(slow, severity=3, seed=0):
    """What a slow corruption of one picture (H, W, C) of 8 bits gives, as `corrupt` returns it."""
    made = [slow(picture, severity, stream(seed, row)) for row, picture in enumerate(bytes_of())]
    levels = np.clip(np.array(made), 0, 255).astype(np.uint8)
    return levels.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)


def defocus(picture, severity, random):
    radius, softness = [(3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)][severity - 1]
    reach, half = (8, 1) if radius <= 8 else (10, 2)
    places = range(-reach, reach + 1)
    disc = np.array([[float(x * x + y * y <= radius**2) for x in places] for y in places])
    bell = {step: np.exp(-(step**2) / (2 * softness**2)) for step in range(-half, half + 1)}
    wide, size = np.pad(disc, half, mode="reflect"), len(disc)
    soft = np.zeros(disc.shape)
    for down, first in bell.items():
        for right, second in bell.items():
            soft += first * second * wide[half + down : half + down + size, half + right : half + right + size]
    soft /= disc.sum() * sum(bell.values()) ** 2
    around = np.pad(picture / 255, ((reach, reach), (reach, reach), (0, 0)), mode="reflect")
    blurred = np.zeros(picture.shape)
    for row in range(SIDE):
        for column in range(SIDE):
            blurred[row, column] = (around[row : row + size, column : column + size] * soft[:, :, None]).sum((0, 1))
    return blurred * 255


def moved(values, radius, width, degrees):
    steps = 2 * radius + 1
    weights = np.array([np.exp(-(step**2) / (2 * width**2)) for step in range(steps)])
    weights /= weights.sum()
    made = np.zeros(values.shape)
    for step in range(steps):
        down = int(np.ceil(step * np.sin(np.deg2rad(degrees)) - 0.5))
        right = int(np.ceil(step * np.cos(np.deg2rad(degrees)) - 0.5))
        if abs(down) >= values.shape[0] or abs(right) >= values.shape[1]:
            break
        for row in range(values.shape[0]):
            for column in range(values.shape[1]):
                from_row = min(max(row + down, 0), values.shape[0] - 1)
                from_column = min(max(column + right, 0), values.shape[1] - 1)
                made[row, column] += weights[step] * values[from_row, from_column]
    return made


def motion(picture, severity, random):
    radius, width = [(10, 3), (15, 5), (15, 8), (15, 12), (20, 15)][severity - 1]
    return moved(picture.astype(float), radius, width, random.uniform(-45, 45))


def brightness(picture, severity, random):
    """Raise the largest of the three, and keep the ratios of their differences: hue and saturation stay."""
    made = np.zeros(picture.shape)
    for place in np.ndindex(picture.shape[:2]):
        values = picture[place] / 255
        raised = min(values.max() + [0.1, 0.2, 0.3, 0.4, 0.5][severity - 1], 1)
        made[place] = values / values.max() * raised if values.max() else raised
    return made * 255 + 1e-9


def contrast(picture, severity, random):
    made = np.zeros(picture.shape)
    for channel in range(3):
        mean = (picture[:, :, channel] / 255).mean()
        made[:, :, channel] = mean + (picture[:, :, channel] / 255 - mean) * [0.4, 0.3, 0.2, 0.1, 0.05][severity - 1]
    return made * 255


def gaussian(picture, severity, random):
    return (picture / 255 + random.normal(size=picture.shape, scale=[0.08, 0.12, 0.18, 0.26, 0.38][severity - 1])) * 255


def shot(picture, severity, random):
    photons = [60, 25, 12, 5, 3][severity - 1]
    return np.minimum(random.poisson(picture / 255 * photons) / photons, 1) * 255


def jpeg(picture, severity, random):
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=[25, 18, 15, 10, 7][severity - 1])
    return np.asarray(Image.open(file))


@pytest.mark.parametrize("severity", [1, 5])
@pytest.mark.parametrize(
    ("name", "slow", "away"),
    [
        ("gaussian-noise", gaussian, 0),
        ("shot-noise", shot, 0),
        ("defocus-blur", defocus, 1),
        ("motion-blur", motion, 1),
        ("bright-light", brightness, 1),
        ("low-contrast", contrast, 1),
        ("jpeg-compression", jpeg, 0),
    ],
)
def test_a_corruption_is_the_slow_one(name, slow, away, severity):
    """Sums in another order may fall on the other side of a level, which is cut off: by one level, in few pixels."""
    apart = np.rint(255 * (corrupt(PICTURES, name, severity) - expected(slow, severity)))
    assert np.abs(apart).max() <= away
    assert (apart != 0).mean() < 0.02


def test_impulses_are_black_or_white_and_as_many_as_said():
    grey = np.full((1, 1, 100, 100), 0.5, np.float32)
    for severity, share in enumerate([0.03, 0.06, 0.09, 0.17, 0.27], 1):
        made = corrupt(grey, "impulse-noise", severity)
        hit = made != np.float32(128 / 255)
        assert set(made[hit].tolist()) == {0.0, 1.0}
        assert hit.mean() == pytest.approx(share, abs=0.015)
        assert made[hit].mean() == pytest.approx(0.5, abs=0.1)


def test_pixels_are_blocks_of_one_colour():
    made = corrupt(PICTURES, "pixelate", 5)
    blocks = made.reshape(2, 3, 4, 4, 4, 4)
    assert (blocks == blocks[:, :, :, :1, :, :1]).all()


def test_glass_only_mixes_values_nearby_and_ice_and_fog_only_lighten_black():
    black = np.zeros((1, 3, SIDE, SIDE), np.float32)
    assert (corrupt(black, "glass-blur", 5) == 0).all()
    edge = black.copy()
    edge[..., :2] = 1
    assert (corrupt(edge, "glass-blur", 3)[..., 14:] == 0).all()
    assert corrupt(black, "frost", 1).mean() > 0.05
    assert corrupt(black, "snow", 5).mean() > 0.1
    ice = np.full((SIDE, SIDE, 3), 100, np.uint8)
    assert frosted(bytes_of()[0], 2, ice)[3, 4, 1] == pytest.approx(0.8 * bytes_of()[0, 3, 4, 1] + 60)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_all_severities_of_grey_and_colour_give_pictures_of_8_bits(name):
    for pictures in (PICTURES, PICTURES[:, :1, :, :12]):
        before = pictures.copy()
        strengths = []
        for severity in range(1, 6):
            made = corrupt(pictures, name, severity)
            assert made.shape == pictures.shape
            assert made.dtype == np.float32
            assert (np.rint(made * 255) / np.float32(255) == made).all()
            assert made.min() >= 0
            assert made.max() <= 1
            strengths.append(np.abs(made - pictures)[0].mean())
        assert (pictures == before).all()
        assert strengths[-1] > strengths[0] > 0 or name in ("elastic", "glass-blur")  # small in small pictures


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_draws_depend_on_seed_and_number_alone(name):
    whole = corrupt(PICTURES, name, 4, seed=1)
    apart = [corrupt(PICTURES[row : row + 1], name, 4, seed=1, numbers=[row]) for row in (1, 0)]
    assert (whole == np.concatenate(apart[::-1])).all()
    other = corrupt(PICTURES, name, 4, seed=2)
    assert (whole != other).any() == CORRUPTIONS[name].random or name == "elastic"


def test_what_cannot_be_corrupted_is_refused():
    with pytest.raises(SettingError, match="1 or 3 channels; these have 2"):
        corrupt(PICTURES[:, :2], "fog")
    with pytest.raises(SettingError, match="severity"):
        corrupt(PICTURES, "fog", 6)
    with pytest.raises(SettingError, match="Unknown corruption"):
        corrupt(PICTURES, "rain")
    with pytest.raises(DataError):
        corrupt(PICTURES * 2, "fog")
