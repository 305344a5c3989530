"""A story: what is told with it, slide by slide; kept until somebody deletes it, in the folder "stories" of IDC_HOME.

Two stories come with the project. They are played like any other; who wants to change one changes a copy.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from idc_core.base.files import SHIPPED
from idc_core.errors import DataError, SettingError
from idc_core.guarded import read_json, seal_text
from idc_core.store.documents import Documents, read_sealed
from idc_core.stories.drawing import MOST_PARTS, Drawing, check, check_drawable, count_parts

LONGEST, LONGEST_TITLE = 300, 80
"""Characters of a slide's sentence, and of a story's title, at most."""

MOST_SLIDES = 60

MOST_BYTES = 8 << 20
"""Bytes of a story at most."""

_MOST_CHART = 2 << 20
"""Bytes of a slide's chart, in both themes, at most."""

_MOST, _MOST_OF_ALL = 100, 2_000
"""Stories of one person at most, and of all together."""

_LONGEST_VALUE, _MOST_VALUES = 8_000, 60

THEMES = ("light", "dark")

SHIPPED_STORIES = ("lesson", "examined")
"""The stories that come with the project."""


@dataclass(frozen=True)
class Slide:
    """One sentence and one chart, with what the dashboard's address says of where it is from.

    `page` is empty where it is from none. `setup` is the network, tests and settings in a line. `drawings` are the
    chart by theme; a slide without one is its sentence alone.
    """

    sentence: str
    page: str = ""
    query: dict[str, str] = field(default_factory=dict)
    setup: str = ""
    drawings: dict[str, Drawing] = field(default_factory=dict)


@dataclass(frozen=True)
class Story:
    """A title and slides; `owner` is whose it is, empty for everybody's, and `made` the time, UTC, in ISO 8601."""

    title: str
    slides: tuple[Slide, ...] = ()
    made: str = ""
    owner: str = ""
    shared: bool = False

    def titled(self, title: str) -> Story:
        """Return it under another title."""
        return replace(self, title=_line(title, LONGEST_TITLE, "The title of a story"))

    def shared_with_all(self, shared: bool) -> Story:
        """Return it played by everybody, or by its owner alone."""
        return replace(self, shared=shared)

    def added(self, slide: Slide) -> Story:
        """Return it with a slide more at its end."""
        return replace(self, slides=(*self.slides, replace(slide, sentence=_sentence(slide.sentence))))

    def said(self, at: int, sentence: str) -> Story:
        """Return it with another sentence on a slide."""
        slides = list(self.slides)
        slides[at] = replace(slides[at], sentence=_sentence(sentence))
        return replace(self, slides=tuple(slides))

    def moved(self, at: int, to: int) -> Story:
        """Return it with a slide at another place."""
        slides = list(self.slides)
        slides.insert(to, slides.pop(at))
        return replace(self, slides=tuple(slides))

    def without(self, at: int) -> Story:
        """Return it without a slide."""
        return replace(self, slides=(*self.slides[:at], *self.slides[at + 1 :]))


def _read(path: Path) -> Story:
    story = read_sealed(path, f"The story {path}", Story)
    _check(story, f"The story {path}")
    return story


STORIES = Documents(
    "stories",
    "story-[0-9a-f]{16}",
    _read,
    unknown="There is no story {id!r}: it was deleted, or is somebody else's.",
    what="The story",
    remedy="Delete it.",
    order=lambda story: story.made,
)
"""The stories that are kept, by id."""


@cache
def shipped() -> Mapping[str, Story]:
    """Return the stories that come with the project, by name."""
    files = {name: SHIPPED / "assets" / "stories" / f"{name}.json" for name in SHIPPED_STORIES}
    return {name: read_json(path, f"The story {path}", Story) for name, path in files.items()}


def find_story(id: str, asker: str | None = None) -> Story:
    """Return a story that comes with the project or is kept; raises as `Documents.find`."""
    story = shipped().get(id)
    return STORIES.find(id, asker) if story is None else story


def new_story(story: Story, owner: str = "") -> str:
    """Keep a story as a new one of its owner; return its id.

    Raises
    ------
    SettingError
        If it is too large, or its owner, or all together, have as many as they may.
    DataError
        If it cannot be written.
    """
    if sum(one.owner == owner for one in STORIES.listed().values()) >= _MOST:
        raise SettingError(f"You keep {_MOST:,} stories, which is the limit for one person: delete some first.")
    if len(STORIES.state()) >= _MOST_OF_ALL:
        raise SettingError(f"{_MOST_OF_ALL:,} stories are kept here, which is the limit for all: delete some first.")
    id = f"story-{secrets.token_hex(8)}"
    made = datetime.now(UTC).isoformat(timespec="milliseconds")
    keep_story(id, replace(story, made=made, owner=owner, shared=False))
    return id


def keep_story(id: str, story: Story) -> None:
    """Keep a story in place of the one of its id; raises as `new_story`."""
    if len(story.slides) > MOST_SLIDES:
        raise SettingError(f"A story has at most {MOST_SLIDES} slides: begin another one.")
    for slide in story.slides:
        if (parts := max(map(count_parts, slide.drawings.values()), default=0)) > MOST_PARTS:
            raise SettingError(
                f"The chart of \u201c{slide.sentence}\u201d has {parts:,} parts; a slide holds at most {MOST_PARTS:,}. "
                "Show fewer tests or neurons in it."
            )
        if (size := len(json.dumps(slide.drawings))) > _MOST_CHART:
            raise SettingError(
                f"The chart of \u201c{slide.sentence}\u201d takes {size / 2**20:.1f} MiB; a slide holds at most "
                f"{_MOST_CHART >> 20} MiB. Narrow the tests, or save the chart as a file."
            )
    content = story_json(story)
    if len(content) > MOST_BYTES:
        raise SettingError(f"A story takes at most {MOST_BYTES >> 20} MiB: begin another one, or delete slides.")
    STORIES.write(id, seal_text(content))


def story_json(story: Story) -> str:
    """Write a story as JSON."""
    return json.dumps(asdict(story), ensure_ascii=False, separators=(",", ":"))


def read_story(content: bytes, where: str) -> Story:
    """Read a story that came from outside, as JSON; raise `DataError` where it is none, or holds more than one."""
    if len(content) > MOST_BYTES:
        raise DataError(f"{where} takes {len(content):,} bytes; a story has at most {MOST_BYTES:,}.")
    story = read_json(content, where, Story)
    _check(story, where)
    for slide in story.slides:
        for drawing in slide.drawings.values():
            check_drawable(drawing, where)
    return replace(story, made="", owner="", shared=False)


def _check(story: Story, where: str) -> None:
    """Raise `DataError` where a story that was read holds what this program does not write."""
    texts = (story.title, story.made, story.owner, *(text for slide in story.slides for text in _lines(slide)))
    lengths = all(0 < len(slide.sentence) <= LONGEST and len(slide.query) <= _MOST_VALUES for slide in story.slides)
    known = all(set(slide.drawings) in ({*THEMES}, set()) for slide in story.slides)
    if not (lengths and known and 0 < len(story.title) <= LONGEST_TITLE and len(story.slides) <= MOST_SLIDES) or any(
        len(text) > _LONGEST_VALUE or _one_line(text) != text for text in texts
    ):
        raise DataError(f"{where} was not written by this program, or was changed.")
    for slide in story.slides:
        for drawing in slide.drawings.values():
            check(drawing, where)


def _lines(slide: Slide) -> tuple[str, ...]:
    return (slide.sentence, slide.page, slide.setup, *slide.query, *slide.query.values())


def _sentence(text: str) -> str:
    return _line(text, LONGEST, "The sentence of a slide")


def _line(text: str, longest: int, what: str) -> str:
    """Return a text on one line; SettingError where it is empty or too long."""
    line = _one_line(text)
    if not 0 < len(line) <= longest:
        raise SettingError(f"{what} has 1 to {longest} characters; this one has {len(line):,}.")
    return line


def _one_line(text: str) -> str:
    """Return a text on one line, with blanks for what cannot be printed."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())
