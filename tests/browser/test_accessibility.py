"""No page breaks a serious rule of accessibility, in either theme: checked with axe-core."""

import json
from pathlib import Path

import pytest

from pages.common.registry import PAGES

pytestmark = pytest.mark.browser

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")
STATES = ("?tour=1", "coverage?tour=7", "learn?chapter=4+States", "learn?chapter=6+Empty+cells", "clusters?pin=m%3D3")
"""Addresses that show what no page shows at first."""


def serious_violations(page) -> list[str]:
    """Names of the serious rules that a page breaks, with the elements that do."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    assert len(found["passes"]) > 10, "the checker looked at hardly anything"
    return [
        f"{rule['id']} ({rule['impact']}): {json.dumps([node['html'][:200] for node in rule['nodes'][:3]])}"
        for rule in found["violations"]
        if rule["impact"] in SERIOUS
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [*PAGES, *STATES])
def test_no_serious_violation(visitor, name, scheme):
    visitor.page.emulate_media(color_scheme=scheme)
    visitor.open(name if name != "overview" else "")
    assert serious_violations(visitor.page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_violation_once_networks_are_retrained(visitor, scheme):
    visitor.page.emulate_media(color_scheme=scheme)
    visitor.open("robustness?epochs=1&seeds=2")
    visitor.page.locator('[data-testid="stImage"] img').nth(1).wait_for(timeout=90_000)
    visitor.settle()
    assert serious_violations(visitor.page) == []


def test_the_checker_sees_a_violation(visitor):
    visitor.open("learn")
    visitor.page.evaluate("() => document.querySelector('h1').insertAdjacentHTML('afterend', '<img src=\"data:,\">')")
    assert any(text.startswith("image-alt") for text in serious_violations(visitor.page))
