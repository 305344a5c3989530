"""How much of each thing a report shows, so that it fits on a few pages whatever it is of."""

LONGEST_NAME = 40
"""Characters of a name: of a class, a network, a data set."""

LONGEST_TEXT = 160
"""Characters of a test that is a text, and of other texts from outside."""

NEURONS = 12
"""Important neurons that are drawn and listed."""

CELLS = 10_000
"""Covered cells in the JSON file."""

UNCOVERED, CLOSEST, CLOSEST_TEXTS = 6, 4, 2
"""Uncovered cells that are shown, and tests closest to each; fewer where they are texts."""

PAIRS, CLASSES = 6, 5
"""Confused pairs of classes, and classes by their accuracy."""

NOTES, LONGEST_NOTE = 4, 300
"""Notes of a person, and characters of one on the page; the JSON file holds all of it."""


def cut(text: str, most: int) -> str:
    """Return a text on one line, cut where it is longer; blanks for what cannot be printed."""
    line = " ".join("".join(character if character.isprintable() else " " for character in text[: 4 * most]).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
