"""A suite as pictures in class folders, which most tools of the field read."""

from __future__ import annotations

import io
import re
import zipfile

import numpy as np

from idc_core.base.arrays import Array
from idc_core.errors import DataError
from idc_core.suites.suite import Suite

_LEVELS = 255
_NO_NAME = re.compile(r'[\x00-\x1f<>:"/\\|?*]|^\.|[. ]$')
"""What a folder's name cannot hold on some system."""


def pack_class_folders(suite: Suite) -> bytes:
    """Return a suite's pictures as the content of a zip file with one folder per class.

    Each is a PNG of 8 bits named by its place in the suite and the test that it was made of:
    ``7/0001-of-test-12.png``. What cannot stand in the name of a folder becomes ``_``.

    Parameters
    ----------
    suite : Suite
        Of a classification, its inputs grey or colour pictures in 0..1.

    Raises
    ------
    DataError
        If its inputs are no such pictures, have no classes, or two classes have the same folder.
    """
    if len(suite.shape) != 3 or suite.shape[0] not in (1, 3) or not suite.class_names:
        raise DataError(
            f"Only grey or colour pictures with classes go into class folders; {suite.label!r} has inputs of shape "
            f"{suite.shape} and {len(suite.class_names)} classes. Export it as npz."
        )
    folders = [_NO_NAME.sub("_", name) for name in suite.class_names]
    if len({name.lower() for name in folders}) < len(folders):
        raise DataError(f"Two classes of {suite.label!r} would have the same folder: export it as npz.")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:  # PNG is compressed already
        for places, block in suite.blocks():
            for place, picture in zip(places.tolist(), block, strict=True):
                origin, partner = int(suite.origin[place]), int(suite.partner[place])
                name = f"{place + 1:04d}" + f"-of-test-{origin}" * (origin >= 0) + f"-and-{partner}" * (partner >= 0)
                # A date of its own would make another file of the same suite.
                entry = zipfile.ZipInfo(f"{folders[int(suite.targets[place])]}/{name}.png")
                archive.writestr(entry, _png(picture))
    return content.getvalue()


def _png(picture: Array) -> bytes:
    """Write a picture (C, H, W) in 0..1."""
    from PIL import Image  # only here: what compares suites needs no pictures

    values = np.rint(np.clip(picture, 0, 1) * _LEVELS).astype(np.uint8)
    shown = values[0] if len(values) == 1 else values.transpose(1, 2, 0)
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(shown)).save(file, "PNG")
    return file.getvalue()
