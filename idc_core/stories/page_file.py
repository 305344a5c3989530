"""A story as one web page: it is played without a network, and read back from the same file."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from idc_core.errors import DataError
from idc_core.figures.web import allowed_script, packed_library
from idc_core.stories.story import Story, read_story, story_json

_FOLDER = Path(__file__).parent / "page"

_BEGIN, _END = '<script type="application/json" id="story">', "</script>"

MOST_PAGE = 24 << 20
"""Bytes of a file that is read, at most."""


def write_page(story: Story) -> bytes:
    """Write a story as a web page of 1.5 MB and more that asks for nothing else; equal stories give equal bytes.

    Texts are escaped. Should one get through, the page's own policy lets only its two scripts run, and nothing be
    loaded.
    """
    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    script, style = ((_FOLDER / f"story.{kind}").read_text(encoding="utf-8") for kind in ("js", "css"))
    library, packed = packed_library()
    content = story_json(story)
    for character, code in {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}.items():
        content = content.replace(character, code)
    page = environment.get_template("story.html").render(
        story=story,
        content=Markup(f"{_BEGIN}{content}{_END}"),
        style=Markup(style),
        script=Markup(script),
        scripts=Markup(f"{allowed_script(library)} {allowed_script(script)}"),
        plotly=packed,
    )
    return page.encode("utf-8", errors="replace")


def read_page(content: bytes, name: str) -> Story:
    """Read a story back from a page that `write_page` wrote.

    Parameters
    ----------
    content : bytes
        The file, from anywhere: everything in it is checked.
    name : str
        Its name, for messages.

    Returns
    -------
    Story
        Nobody's yet.

    Raises
    ------
    DataError
        If it holds no story, or anything that a story does not have.
    """
    where = f"The file {name[:100]}"
    if len(content) > MOST_PAGE:
        raise DataError(f"{where} takes {len(content):,} bytes; the file of a story has at most {MOST_PAGE:,}.")
    _, begin, rest = content.partition(_BEGIN.encode())
    inner, end, _ = rest.partition(_END.encode())
    if not begin or not end:
        raise DataError(f"{where} holds no story: expected an HTML file that this page exported.")
    return read_story(inner, where)
