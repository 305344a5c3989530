"""Make the stories that come with the project anew, from the pages: ``python -m studio.stories``."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from urllib.parse import parse_qsl

from streamlit.testing.v1 import AppTest

from idc_core.base.files import SHIPPED
from idc_core.stories.story import STORIES, Slide, Story, story_json
from studio.shell.pages import PAGES

_OPENED = {
    "lesson": (
        "Twenty minutes: what importance-driven coverage is",
        (
            ("overview", "", "add-overview-grid", "The tests cover"),
            ("learn", "", "tell-network", ""),
            ("learn", "tab=relevance", "tell-network", ""),
            ("learn", "tab=importance", "add-importance", ""),
            ("learn", "tab=clusters&step3=11", "add-kmeans", ""),
            ("learn", "tab=cells", "add-cells", ""),
            ("learn", "tab=empty&own-top=0.6&own-foot=1.0", "add-cells", ""),
            ("clusters", "", "add-histograms", ""),
            ("coverage", "", "add-grid-", "Cells reached only by misclassified tests"),
            ("relevance", "input=519", "tell-heatmaps", "Test 519"),
            ("testsets", "", "add-", "New cells at m = 6 from relevance-guided noise"),
        ),
    ),
    "examined": (
        "A test set examined",
        (
            ("overview", "", "add-overview-grid", "Untested combinations"),
            ("coverage", "tab=growth", "add-", "Chance that the next test"),
            ("coverage", "", "add-grid-", "Cells reached only by misclassified tests"),
            ("relevance", "input=519", "tell-heatmaps", "Test 519"),
            ("classes", "", "add-", "Truly confused"),
            ("layers", "", "add-", ""),
            ("testsets", "", "add-", "New cells at m = 6 from random noise"),
            ("criteria", "", "add-", "TKNP correlates"),
        ),
    ),
}
"""By file, the title, and of each slide the page, its address, the beginning of the key of what it shows, and that of a
sentence of the page; by default the slide says what the chart's title does."""


def _slide(page: str, query: str, key: str, begins: str) -> Slide:
    """Open a page and add what it shows."""
    app = AppTest.from_file(str(SHIPPED / "app.py"), default_timeout=600)
    app.query_params.update(dict(parse_qsl(query)))
    app.switch_page(str(PAGES[page].file)).run()
    said = " ".join(element.value for element in app.main.markdown).replace("**", "")
    next(button for button in app.button if (button.key or "").startswith(key)).click().run()
    (id,) = STORIES.listed()
    story = STORIES.find(id)
    STORIES.delete(id)
    if begins:
        story = story.said(0, re.findall(rf"{re.escape(begins)}.*?\.(?=\s|$)", said)[0])
    return story.slides[0]


def main() -> None:
    """Write the files."""
    with tempfile.TemporaryDirectory() as home:
        config = Path(home, "config.toml")
        config.write_text('[limits]\nuploads = "on"\n', encoding="utf-8")
        os.environ |= {"IDC_HOME": home, "IDC_CONFIG": str(config)}
        for name, (title, slides) in _OPENED.items():
            story = Story(title, tuple(_slide(*one) for one in slides))
            path = SHIPPED / "assets" / "stories" / f"{name}.json"
            path.write_text(f"{story_json(story)}\n", encoding="utf-8")


main()
