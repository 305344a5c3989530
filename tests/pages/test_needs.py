"""Pages that do not apply to network and tests: marked in navigation and search, and they say why themselves."""

import subprocess
import sys

import pytest

from studio.shell import search
from studio.shell.pages import PAGES, unmet
from studio.state import setup
from tests.pages.reading import ROOT, open_page, text

TEXTS = {"model": "textcnn-20newsgroups"}
NUMBERS = {"model": "dave2-udacity"}
FOREIGN = {"model": "lenet5-digits", "data": "fashion-mnist"}

MARKED = [
    (TEXTS, {"adversarial": "relevance", "differential": "testsets", "robustness": "testsets"}),
    (NUMBERS, {"adversarial": "testsets", "classes": "coverage"}),
    (FOREIGN, {"adversarial": "coverage", "robustness": "coverage"}),
    ({"model": "convnet-cifar10"}, {}),
]
"""Setups, and the pages that do not apply to each with the pages that they lead to."""


@pytest.mark.parametrize(("said", "wanted"), MARKED, ids=str)
def test_pages_that_do_not_apply_are_known_from_what_is_registered(said, wanted):
    chosen = setup.parse(said)
    needs = {name: unmet(name, chosen) for name in PAGES}
    assert {name: need.instead for name, need in needs.items() if need} == wanted
    found = search._entries(chosen)
    marked = {
        one["value"].split()[0]: one["reason"] for one in found if one["kind"] in ("page", "tab") and "needs" in one
    }
    assert marked == {name: need.reason for name, need in needs.items() if need}


@pytest.mark.parametrize(("said", "page"), [(said, page) for said, pages in MARKED for page in pages], ids=str)
def test_a_page_that_does_not_apply_says_why_and_where_to_go(small_data, said, page):
    app = open_page(page, **said)
    need = unmet(page, setup.parse(said))
    assert not app.exception
    assert not app.error
    assert need.reason in text(app)
    assert [one.proto.page for one in app.get("page_link")] == [need.instead]


def test_nothing_is_marked_as_the_studio_opens():
    assert [name for name in PAGES if unmet(name, None)] == []


def test_it_is_told_without_torch():
    script = (
        "import sys; from studio.shell.pages import unmet; from studio.state import setup; "
        "assert unmet('adversarial', setup.parse({'model': 'dave2-udacity'})); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)
