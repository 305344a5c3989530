"""Compare the corruptions with the package imagecorruptions, pixel by pixel; for the environment of the peers.

Both draw the same random numbers. Run by hand: `make peers`, then
`PYTHONPATH=. .venv-peers/bin/python -m benchmarks.peer_corruptions`.
"""

import json
import sys
import types
from typing import Any
from unittest import mock

import numpy as np

from idc_core.perturbation.corruptions import CORRUPTIONS
from idc_core.perturbation.corruptions.weather import frosted

NAMES = {"bright-light": "brightness", "low-contrast": "contrast", "elastic": "elastic_transform"}
"""Their names of ours, where they differ by more than a hyphen."""

PICTURES, SIDES = 4, (32, 64, 224)


class Numbers:
    """The random numbers of numpy's older generator, by the names that the engine calls."""

    def __init__(self, seed: int) -> None:
        self._state = np.random.RandomState(seed)
        self.integers = self._state.randint

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)


def pictures(side: int) -> list[Any]:
    """Cut squares out of scikit-learn's photographs, shrunk so that they show more than a shade."""
    from PIL import Image
    from sklearn.datasets import load_sample_images

    random, cut = np.random.default_rng(side), []
    for number in range(PICTURES):
        photo = load_sample_images().images[number % 2]
        top, left = (int(random.integers(length - 256)) for length in photo.shape[:2])
        cut.append(np.asarray(Image.fromarray(photo[top : top + 256, left : left + 256]).resize((side, side))))
    return cut


def peer() -> Any:
    """Import the package, of 2020, with what newer numpy, scipy and scikit-image call otherwise."""
    from scipy import ndimage

    gone = types.ModuleType("scipy.ndimage.interpolation")
    gone.map_coordinates = ndimage.map_coordinates  # type: ignore[attr-defined]
    sys.modules[gone.__name__] = gone
    np.float_ = np.float64  # type: ignore[attr-defined]
    import imagecorruptions
    from imagecorruptions import corruptions

    blur = corruptions.gaussian

    def gaussian(image: Any, sigma: Any, *, multichannel: bool = False, **how: Any) -> Any:
        return blur(image, sigma, channel_axis=-1 if multichannel else None, **how)

    corruptions.gaussian = gaussian
    return imagecorruptions, corruptions


def theirs(package: Any, module: Any, picture: Any, name: str, severity: int, seed: int) -> Any:
    """Corrupt a picture by the package, from a seed."""
    state = np.random.RandomState(seed)
    np.random.set_state(state.get_state())
    with mock.patch.object(module.sk.util, "random_noise", salted(module.sk.util.random_noise, seed)):
        return package.corrupt(picture, severity=severity, corruption_name=name)


def salted(random_noise: Any, seed: int) -> Any:
    """Let scikit-image's salt and pepper draw from the seed."""
    return lambda image, **how: random_noise(image, rng=seed, **how)


def ice(module: Any, picture: Any, severity: int, seed: int) -> Any:
    """Return the piece of a photograph of frost that the package lays over a picture."""
    seen: list[Any] = []

    def clip(value: Any, low: float, high: float) -> Any:
        seen.append(value)
        return np.clip(value, low, high)

    with mock.patch.object(module, "np", types.SimpleNamespace(**{**vars(np), "clip": clip})):
        np.random.seed(seed)
        from PIL import Image

        module.frost(Image.fromarray(picture), severity)
    kept, strength = ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75))[severity - 1]
    return np.rint((seen[-1] - kept * picture) / strength)


def main() -> None:
    """Compare every corruption at every severity and size, and print a row per corruption and size as JSON."""
    package, module = peer()
    rows = []
    for side in SIDES:
        cut = pictures(side)
        for name, entry in CORRUPTIONS.items():
            apart, most, levels = 0, 0, 0
            for number, picture in enumerate(cut):
                for severity in range(1, 6):
                    seed = 100 * number + severity
                    known = theirs(package, module, picture, NAMES.get(name, name.replace("-", "_")), severity, seed)
                    if name == "frost":
                        made = frosted(picture, severity, ice(module, picture, severity, seed))
                    else:
                        newer = name == "impulse-noise"  # scikit-image draws from numpy's newer generator
                        numbers: Any = np.random.default_rng(seed) if newer else Numbers(seed)
                        made = entry.apply(picture, severity, numbers)
                    away = np.abs(np.clip(made, 0, 255).astype(np.uint8).astype(int) - known.astype(int))
                    apart, most, levels = apart + int((away > 0).sum()), max(most, int(away.max())), levels + away.size
            rows.append({"corruption": name, "side": side, "values": levels, "differ": apart, "by at most": most})
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
