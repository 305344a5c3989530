"""Write pictures with and without letters into class folders: `python letters.py` makes letters/train/empty/000.png.

Each is a piece of one of scikit-learn's two photographs; on half of them stand two to five letters.
"""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from sklearn.datasets import load_sample_images

SIDE = 416
PHOTOS = [Image.fromarray(photo) for photo in load_sample_images().images]


def draw(random, letters):
    photo = PHOTOS[random.integers(len(PHOTOS))]
    side = int(random.integers(150, 400))
    left, top = (int(random.integers(room - side)) for room in photo.size)
    picture = photo.crop((left, top, left + side, top + side)).resize((SIDE, SIDE))
    for place in random.permutation(9)[: random.integers(2, 6)] if letters else ():
        letter = Image.new("L", (100, 100))
        font = ImageFont.load_default(int(random.integers(50, 80)))
        ImageDraw.Draw(letter).text((50, 50), chr(random.integers(65, 91)), 255, font, anchor="mm")
        letter = letter.rotate(random.integers(-30, 31))
        corner = 20 + 135 * (place % 3), 20 + 135 * (place // 3)
        picture.paste(tuple(int(value) for value in random.integers(0, 256, 3)), corner, letter)
    return picture


for split, count in (("train", 60), ("test", 40)):
    random = np.random.default_rng(split == "test")
    for number in range(count):
        name = ("empty", "letters")[number % 2]
        folder = Path("letters") / split / name
        folder.mkdir(parents=True, exist_ok=True)
        draw(random, name == "letters").save(folder / f"{number:03}.png")
