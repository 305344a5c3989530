"""Stories: slides of findings, charts and notes, for a room."""

from studio.shell import presenting
from studio.shell.frame import enter
from studio.shell.pages import PageEntry
from studio.stories import editor, player

PAGE = PageEntry(
    "Stories",
    ":material/slideshow:",
    "What do I want to show?",
    "Slides of one sentence and one chart each: collect them, order them, play them, save them as one file.",
    section="Mine",
    place=145,
    setup="none",
)

enter()
if (_shown := presenting.playing()) is None:
    editor.draw()
else:
    player.play(_shown)
