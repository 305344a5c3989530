"""The pages, as their scripts declare them: navigation, links and headings are made from this list."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.navigation.page import Page

from idc_core.base.files import SHIPPED
from idc_core.base.registry import Registry
from idc_core.errors import SettingError
from studio.shell import needs
from studio.shell.needs import Need, first_unmet
from studio.state import address
from studio.state.selection import EXPLAINED, NEURON, select
from studio.state.setup import Setup

SECTIONS = ("Start", "Explore", "Challenge", "Compare", "Mine")
"""Headings of the navigation, in their order."""

_GO = "go-to-page"
"""The page that a callback asked for: callbacks cannot change the page themselves."""
_PARAMETERS = "go-to-parameters"
"""What its address is to say, where the callback said so."""


@dataclass(frozen=True)
class PageEntry:
    """One page: its title in the navigation, its Material symbol in links, and the question of its heading.

    `help` says in a line what can be done there; pages are listed under one of `SECTIONS`, by their `place`.
    `setup` is ``live`` where the page shows results of the setup, ``none`` where it needs none, and ``snapshot``
    where it opens on results made beforehand. `tabs` are the titles of its tabs by their names, `controls` says in
    which of them a control is that the address can hold, and a change of those that it `selects` is a step in the
    browser's history. `needs` are what the page cannot do without: it is marked where network and tests do not meet
    them. It `opens` these kinds of runs. Its `name`, in the address, is that of its script, the `file`, which is
    run anew each time the page is shown.
    """

    title: str
    icon: str
    question: str
    help: str
    section: str = "Explore"
    place: int = 1000
    setup: Literal["live", "none", "snapshot"] = "live"
    tabs: Mapping[str, str] = field(default_factory=dict)
    controls: Mapping[str, str] = field(default_factory=dict)
    selects: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    opens: tuple[str, ...] = ()
    name: str = ""
    file: Path = Path()


PAGES: Registry[PageEntry] = Registry("page")
"""Pages by name, in the order of the navigation."""


def register(*scripts: Path) -> None:
    """Add the pages of these scripts to the navigation."""
    for script in scripts:
        PAGES.enter(script.stem, _declared(script))
    pages = sorted(PAGES.items(), key=lambda named: (SECTIONS.index(named[1].section), named[1].place))
    PAGES.clear()
    PAGES.update(pages)


def _declared(script: Path) -> PageEntry:
    """Read the `PAGE` of a script, which is not run for it: what pages are made of takes long to load."""
    for line in ast.parse(script.read_text(encoding="utf-8")).body:
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "PAGE":
            # Code of the program, as the script runs it.
            code = compile(ast.Expression(line.value), script, "eval")
            entry: PageEntry = eval(code, {**vars(needs), "PageEntry": PageEntry})
            return replace(entry, name=script.stem, file=script)
    raise SettingError(f"{script} is no page: expected a line PAGE = PageEntry(...) with plain values and needs.")


register(*(SHIPPED / "pages").glob("*.py"))


def navigation(setup: Setup | None) -> tuple[PageEntry, Page]:
    """Draw the navigation; return the page that was asked for, and its script to run.

    Pages that do not apply to a setup say so behind their titles, and why when they are pointed at.
    """
    pages = [
        _draw_entry(entry, unmet(entry.name, setup), default=index == 0) for index, entry in enumerate(PAGES.values())
    ]
    # In the sidebar all pages are in sight and one click away; menus on top hid them.
    script = st.navigation(pages, position="sidebar", expanded=True)
    st.html(f"<style>{_headings()}</style>")
    return list(PAGES.values())[pages.index(script)], script


def _headings() -> str:
    """Return styles that write each section's heading above its first page, as text of that item of the list.

    Streamlit's own headings stand between the list and its items, so that it is no list to screen readers any more.
    """
    sections = [page.section for page in PAGES.values()]
    firsts = {section: sections.index(section) for section in dict.fromkeys(sections)}
    # Two columns, as equal as whole sections allow.
    half = (len(sections) + len(firsts)) / 2
    second = min(firsts, key=lambda section: abs(firsts[section] + list(firsts).index(section) - half))
    items = '[data-testid="stSidebarNavItems"] > li:nth-child'
    rules = [f'{items}({first + 1})::before {{ content: "{section}"; }}' for section, first in firsts.items()]
    return "".join((*rules, f"{items}({firsts[second] + 1}) {{ break-before: column; }}"))


def _draw_entry(entry: PageEntry, need: Need | None, *, default: bool) -> Page:
    """Return a page as the navigation shows it."""
    title = f"{entry.title} · *{need.short}*" if need else entry.title
    # No help on the others: sixteen of them took a tenth of the browser's time whenever a page was opened.
    reason = need.reason if need else None
    return st.Page(entry.file, title=title, help=reason, url_path=entry.name, default=default)


def unmet(name: str, setup: Setup | None) -> Need | None:
    """Return what a page needs and a setup does not have; None where the page applies, or there is no setup yet."""
    return first_unmet(PAGES[name].needs, setup)


def stop_if_unmet(name: str, setup: Setup, finding: DeltaGenerator) -> None:
    """End a page that does not apply to a setup: its finding says why, and a link leads on."""
    if need := unmet(name, setup):
        finding.markdown(f"{need.reason} {need.more}")
        draw_link(need.instead)
        st.stop()


def draw_link(name: str, label: str = "") -> None:
    """Draw a link to a page, named by its question where it has no label."""
    page = PAGES[name]
    st.page_link(page.file, label=label or page.question, help=page.help)


def go_to(name: str) -> None:
    """Open another page at the next run; for callbacks."""
    st.session_state[_GO] = name


def open_neuron(neuron: int) -> None:
    """Open the Relevance page on a neuron of the layer; for callbacks."""
    select(neuron=neuron)
    address.keep(EXPLAINED, NEURON)
    st.session_state[EXPLAINED] = NEURON
    go_to("relevance")


def go_to_address(name: str, parameters: Mapping[str, str]) -> None:
    """Open a page as a link with these parts would in a new window, at the next run; for callbacks."""
    address.replace(parameters)
    st.session_state[_PARAMETERS] = dict(parameters)
    go_to(name)


def asked_page() -> tuple[str, dict[str, str] | None]:
    """Return the page that a callback asked for, once, and its parameters if it named any; empty where none did."""
    return str(st.session_state.pop(_GO, "")), st.session_state.pop(_PARAMETERS, None)
