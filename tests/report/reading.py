"""What tests read a report with: its schema, and the tags and texts of its page."""

import json
from html.parser import HTMLParser
from pathlib import Path

from idc_core.analysis.filtering import Conditions
from idc_core.report.material import gather
from idc_core.runs import PlannedAnalysis

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "idc_core" / "report" / "report.schema.json").read_text(encoding="utf-8"))


def gathered(model, train, test, layer, m, **conditions):
    """What a report of a network is made from, where all other settings are as usual."""
    plan = PlannedAnalysis(model.card, train, test, layer, m)
    return gather(plan, plan.sources(lambda: model), Conditions(**conditions))


class Page(HTMLParser):
    """A page's tags with their attributes, and its texts but for those of scripts."""

    def __init__(self, page: bytes):
        super().__init__()
        self.tags, self.texts, self._open = [], [], ""
        self.feed(page.decode())

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._open = tag

    def handle_endtag(self, tag):
        self._open = ""

    def handle_data(self, data):
        if self._open not in ("script", "style"):
            self.texts.append(" ".join(data.split()))

    @property
    def scripts(self) -> int:
        """How many scripts a browser would run."""
        return sum(tag == "script" and "type" not in attributes for tag, attributes in self.tags)

    @property
    def outside(self) -> list[str]:
        """Addresses that are not in the page itself."""
        found = [attributes.get(name) or "" for _, attributes in self.tags for name in ("src", "href")]
        return [one for one in found if one and not one.startswith("data:")]
