"""Write CIFAR-10 pictures into class folders: `python photos.py` makes photos/train/cat/0001.png and so on."""

from pathlib import Path

from PIL import Image

import idc_core as idc

for split, count in (("train", 6000), ("test", 1200)):
    data = idc.load_dataset("cifar10", split, count)
    for number, (picture, target) in enumerate(zip(data.inputs, data.targets, strict=True)):
        folder = Path("photos") / split / data.class_names[target]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = (255 * picture).round().astype("uint8").transpose(1, 2, 0)
        Image.fromarray(pixels).save(folder / f"{number:04}.png")
