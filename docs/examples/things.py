"""Draw pictures of ten classes of ImageNet into class folders: `python things.py` makes things/train/banana/000.png."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

SIDE = 48
FRUIT = {"banana": "gold", "Granny Smith": "limegreen", "lemon": "yellow", "orange": "darkorange"}
NAMES = (*FRUIT, "crossword puzzle", "envelope", "maze", "ping-pong ball", "traffic light", "window screen")


def draw(name: str, rng: np.random.Generator) -> Image.Image:
    """Draw one thing at a place and size of its own, on a background of its own, with noise."""
    picture = Image.new("RGB", (SIDE, SIDE), tuple(rng.integers(60, 200, 3).tolist()))
    pen, size = ImageDraw.Draw(picture), int(rng.integers(20, 34))
    x, y = rng.integers(2, SIDE - size - 1, 2).tolist()
    box = (x, y, x + size, y + size)
    if name == "banana":
        pen.arc((x, y - size // 2, x + size, y + size // 2), 10, 170, FRUIT[name], size // 4)
    elif name in FRUIT:
        pen.ellipse((x, y + size // 5 * (name == "lemon"), x + size, y + size), FRUIT[name])
    elif name == "ping-pong ball":
        pen.ellipse((x, y, x + size // 2, y + size // 2), "white")
    elif name == "envelope":
        pen.rectangle((x, y, x + size, y + size * 2 // 3), "white", "black")
        pen.line((x, y, x + size // 2, y + size // 3, x + size, y), "black")
    elif name == "traffic light":
        pen.rectangle((x, y, x + size // 2, y + size), "black")
        for place, colour in enumerate(("red", "orange", "lime")):
            top = y + 2 + place * size // 3
            pen.ellipse((x + size // 8, top, x + size * 3 // 8, top + size // 4), colour)
    else:
        pen.rectangle(box, "white", "black")
        for step in range(0, size, 6):
            if name == "window screen":
                pen.line((x, y + step, x + size, y + step, x + size, y), "grey")
                pen.line((x + step, y, x + step, y + size), "grey")
            for other in range(0, size, 6):
                at = (x + step, y + other)
                if name == "crossword puzzle" and rng.random() < 0.4:
                    pen.rectangle((*at, min(at[0] + 5, box[2]), min(at[1] + 5, box[3])), "black")
                elif name == "maze":
                    pen.line((*at, at[0] + 6 * (rng.random() < 0.5), at[1] + 6), "black", 2)
    noisy = np.asarray(picture) + rng.normal(0, 12, (SIDE, SIDE, 3))
    return Image.fromarray(noisy.clip(0, 255).astype(np.uint8))


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    for split, count in (("train", 60), ("test", 20)):
        for name in NAMES:
            folder = Path("things") / split / name
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(count):
                draw(name, rng).save(folder / f"{number:03}.png")
