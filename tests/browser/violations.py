"""What axe-core finds serious about a page in a browser."""

import json
from importlib.resources import files

AXE = files("axe_playwright_python") / "axe.min.js"
SERIOUS = ("serious", "critical")
COLOURS = ["color-contrast", "link-in-text-block"]
"""Rules that look at colours, of those that are in force."""
MAIN, PANEL = '[data-testid="stMain"]', ".st-key-tour-panel"
FRAME = ('[data-testid="stHeader"]', '[data-testid="stSidebar"]')
"""What all pages have."""


def serious_violations(page, part="html", colours_only=False) -> list[str]:
    """Names of the serious rules that a page, its main area or the tour's panel breaks, with the elements that do."""
    if page.evaluate("typeof axe === 'undefined'"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    # The rules for whole pages are only asked of whole pages.
    context = {"include": [[PANEL if part == PANEL else "html"]]}
    context |= {"exclude": [[one] for one in FRAME]} if part == MAIN else {}
    rules = {"runOnly": {"type": "rule", "values": COLOURS}} if colours_only else {}
    run = "([context, rules]) => axe.run(context, {resultTypes: ['violations'], ...rules})"
    found = page.evaluate(run, [context, rules])
    assert len(found["passes"]) > (0 if colours_only or part == PANEL else 10), "the checker looked at hardly anything"
    return [
        f"{rule['id']} ({rule['impact']}): {json.dumps([node['html'][:200] for node in rule['nodes'][:3]])}"
        for rule in found["violations"]
        if rule["impact"] in SERIOUS
    ]
