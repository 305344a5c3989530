"""What all pages share: the front door draws the frame and the setup, then runs the page that was asked for."""

from __future__ import annotations

from contextlib import suppress
from contextvars import ContextVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.navigation.page import Page
from streamlit.runtime.scriptrunner import StopException

from idc_core.base.files import cache_folder
from idc_core.base.threads import settle
from idc_core.errors import CancelledError, IdcError
from studio import starting
from studio.jobs import jobs
from studio.jobs.overview import Snapshot, snapshot
from studio.jobs.results import View, neuron_said, open_view, warm
from studio.jobs.wording import tests_name
from studio.shell import account, asked, own_setup, pins, presenting, search, tabs, test_filter, tour
from studio.shell.pages import PAGES, asked_page, navigation
from studio.state import address, device, visitor
from studio.state.selection import Selection
from studio.state.setup import DEFAULT, Setup, arrive, fitting_data, not_found, parse, untouched
from studio.state.sidebar import choose
from studio.text import literal, plural
from studio.widgets import exports
from studio.widgets.charts import ASSETS, follow_theme, is_dark
from studio.widgets.headlines import reached

with suppress(IdcError):  # a mistake in the config file is told on the page
    settle()  # torch is first imported after the first paint

_LAST_GOOD = "last-good-setup"
_TRIED = "front-door-tried"
_GIVEN_UP = "given-up-setup"
"""In the session: the setup whose opening was stopped; no page begins it again unless it is asked to."""
_SHOWN = "shown-setup"
"""In the session: the page, its setup, and that in a line, that are shown; another one may be on its way."""
_KEPT, _HIDDEN = (f'<span class="former-setup {state}"></span>' for state in ("kept", "hidden"))
"""While one of them is on the page, the styles dim, or hide, all that is not drawn anew yet."""

_SAID_BEFORE = {"coverage": reached}
"""What the first sentence of a page is made by, where it needs no more than what files say of shipped setups."""

# Of the thread that runs the script: nothing of it stays in the session.
_opened: ContextVar[View | Snapshot | None] = ContextVar("opened")

_history = st.components.v2.component("idc_history", js=(ASSETS / "history" / "steps.js").read_text(encoding="utf-8"))


def run() -> None:
    """Draw heading, sidebar and setup, then run the page; its script is loaded only then, when these are painted."""
    arrive()
    registered = _registered()
    entry, script = navigation(registered)
    asked.arrive(entry.name)
    st.session_state.pop(_TRIED, None)
    # A picture of our own: a Material symbol in the browser's tab would be fetched from the network.
    st.set_page_config(page_title=f"{entry.title} - IDC Studio", page_icon=ASSETS / "icon.png", layout="wide")
    for held in (*vars(DEFAULT), *vars(Selection()), pins.PIN, tour.STEP, address.STORY, address.SLIDE, device.KEY):
        # On every page, also one that shows none of it: the next page's address is empty.
        address.read(held)
    address.arrive(entry.name)
    page, parameters = asked_page()
    if page:
        st.switch_page(PAGES[page].file, query_params=parameters)
    try:
        cache_folder()
    except IdcError as error:
        st.error(literal(error))
        st.stop()
    st.html(ASSETS / "styles" / "studio.css")
    st.logo(ASSETS / ("logo-dark.svg" if is_dark() else "logo.svg"), size="large")
    account.enter()
    presenting.draw(entry.name)
    line, former = st.empty(), st.empty()
    shown = st.session_state.get(_SHOWN)
    if shown is not None and shown[0] == entry.name:
        line.caption(literal(shown[2]))  # what the page still shows is of this setup
    st.title(presenting.heading(entry.name) or entry.question, anchor=False)
    follow_theme()
    _keep_history()
    own_setup.follow()
    if entry.setup != "none":
        try:
            missing = not_found(entry.name)
        except IdcError as error:  # the chosen network, or its data, cannot be opened any more
            st.error(literal(error))
            st.stop()
        for sentence in missing:
            st.warning(literal(sentence))
    guide = tour.begin(entry.name)
    if entry.setup == "none":
        with st.sidebar.container():  # in the same place as on other pages, so that it is not made again between them
            search.draw(registered, parts=False)
        _run(script, None)
    elif entry.setup == "snapshot" and (kept := _instant(_registered())) is not None:  # with the setup file's networks
        _hide_former(former, kept.setup)
        line.caption(literal(kept.line))
        st.session_state[jobs.HALTED] = st.session_state.get(jobs.STOPPED, False)
        if kept.setup == DEFAULT:  # of any other `_open`, behind the page, takes the stop up
            st.session_state.pop(jobs.STOPPED, None)
        tour.guide(guide, entry.name, kept.result)
        _run(script, kept)
        # What the sidebar lists takes a second to load; the page has not waited for it.
        _draw_sidebar()
        st.session_state[_SHOWN] = (entry.name, kept.setup, kept.line)
        _go_on_behind(kept)
        former.empty()
    else:
        setup, filtering = _draw_sidebar()
        view = _open_behind(entry.name, setup, line, former)
        _hide_former(former, view.setup)
        test_filter.fill(filtering, view)
        line.caption(literal(view.line))
        for sentence in asked.refused(entry.name, view):
            st.warning(literal(sentence))
        _note(view)
        tour.guide(guide, entry.name, view)
        _run(script, view)
        st.session_state[_SHOWN] = (entry.name, view.setup, view.line)
        former.empty()


def _registered() -> Setup | None:
    """Return the setup as the registries know it; None as the studio opens, when they are not loaded for this."""
    if untouched():
        return None
    try:
        return parse({name: address.read(name) for name in vars(DEFAULT)})
    except IdcError:
        return None  # what is wrong is said where the setup is opened


def _hide_former(place: DeltaGenerator, setup: Setup) -> None:
    """Hide what the page still shows of another setup until it is drawn anew: their numbers would mix."""
    if _of_another(setup):
        place.html(_HIDDEN)
    else:
        place.empty()


def _keep_former(page: str, setup: Setup, line: DeltaGenerator, place: DeltaGenerator) -> None:
    """Dim what the page still shows of another setup while this one is opened, below a line that says whose it is."""
    if not _of_another(setup):
        return
    where, _, said = st.session_state[_SHOWN]
    if where != page:
        place.html(_HIDDEN)
        return
    line.caption(f"Still shown: {literal(said)}. The new setup is on its way.")
    place.html(_KEPT)


def _of_another(setup: Setup) -> bool:
    """Whether the page still shows results of another setup."""
    shown = st.session_state.get(_SHOWN)
    return shown is not None and shown[1] != setup


def _run(script: Page, shown: View | Snapshot | None) -> None:
    exports.name_after(shown.setup if shown else None, shown.line if shown else "")
    token = _opened.set(shown)
    try:
        script.run()
    except StopException:
        _tell_not_taken()
        raise
    else:
        _tell_not_taken()
    finally:
        address.keep_drawn()
        _opened.reset(token)
        starting.shown.set()


def _tell_not_taken() -> None:
    for sentence in asked.not_taken():
        st.toast(sentence, duration="long")


def enter() -> View | Snapshot | None:
    """Begin a page's script: return the results that the front door opened for it, None for a page without a setup.

    As long as no page has gone through the front door, Streamlit opens the files of a folder named ``pages``
    directly. The script then begins anew behind the door.
    """
    try:
        return _opened.get()
    except LookupError:
        navigation(None)
    if _TRIED in st.session_state:
        st.error("This page is part of IDC Studio: start it with `streamlit run app.py`.")
        st.stop()
    st.session_state[_TRIED] = True
    st.rerun()


def current_result() -> View | Snapshot:
    """Begin the script of a page that shows the setup's results: return them, or those made beforehand."""
    result = enter()
    if result is None:
        raise TypeError("A page that shows results of the setup must not be registered with setup='none'.")
    return result


def current_view() -> View:
    """Begin the script of a page that shows the setup's results: return them."""
    view = current_result()
    if not isinstance(view, View):
        raise TypeError("A page registered with setup='snapshot' reads its results by current_result().")
    return view


def _instant(registered: Setup | None) -> Snapshot | None:
    """Return what the Overview shows before anything is loaded; None unless all is as a shipped network opens."""
    setup = DEFAULT if untouched() else registered
    if setup is None or pins.pinned() is not None or test_filter.is_open():
        return None
    return snapshot(setup)


def _go_on_behind(kept: Snapshot) -> None:
    """Load what the other pages will need, once the page is painted: in sight, and only as far as it is let."""
    if kept.setup == DEFAULT:
        warm(DEFAULT, kept.result.fingerprints)
        return
    try:
        _open(kept.setup)
    except IdcError as error:
        if not isinstance(error, CancelledError):
            st.error(literal(error))


def _open_behind(page: str, setup: Setup, line: DeltaGenerator, former: DeltaGenerator) -> View:
    """Return what to show of a setup; until it is there, what files say of it stands on the page, or the former one."""
    kept = snapshot(setup)
    if kept is None:
        _keep_former(page, setup, line, former)
        return _open_setup(setup, line)
    _hide_former(former, setup)
    line.caption(literal(kept.line))
    if page not in _SAID_BEFORE:
        return _open_setup(setup, line)
    finding = st.empty()
    finding.markdown(_SAID_BEFORE[page](kept.result))
    view = _open_setup(setup, line)
    finding.empty()
    return view


def _open_setup(setup: Setup, line: DeltaGenerator) -> View:
    """Return what to show of a setup; where that fails, say why and return the last good result."""
    try:
        view = _open(setup)
    except CancelledError:
        return _last_good(setup, line)
    except IdcError as error:
        st.error(literal(error))
        return _last_good(setup, line)
    st.session_state[_LAST_GOOD] = setup
    return view


def _open(setup: Setup) -> View:
    """Return the results of a setup; CancelledError where a person stopped that, now or on a page before."""
    stopped = st.session_state.pop(jobs.STOPPED, False)
    st.session_state[jobs.HALTED] = stopped or st.session_state.get(_GIVEN_UP) == setup
    if st.session_state[jobs.HALTED]:
        st.info("Stopped. Finished results are kept. Start again, or change the setup.")
        st.button("Start again", on_click=_start_again)
    try:
        view = open_view(setup)
    except CancelledError:
        st.session_state[_GIVEN_UP] = setup
        raise
    st.session_state.pop(_GIVEN_UP, None)
    st.session_state[jobs.HALTED] = stopped
    return view


def _start_again() -> None:
    """Go on with what was stopped; for callbacks."""
    st.session_state.pop(_GIVEN_UP, None)
    jobs.go_on()


def _draw_sidebar() -> tuple[Setup, test_filter.Places]:
    """Draw the sidebar; return the setup that is chosen there, and the places of the filter of its tests."""
    top = st.sidebar.container()
    setup, below_tests = choose()
    filtering = test_filter.draw(below_tests)
    device.draw()
    with top:
        search.draw(setup)
    pins.draw_sidebar(setup)
    tour.draw_sidebar()
    presenting.draw_sidebar()
    return setup, filtering


def _last_good(failed: Setup, line: DeltaGenerator) -> View:
    """Return the last result of this session, or end the page, of which no more than files say is shown."""
    if snapshot(failed) is None:
        line.empty()  # it may still name the former setup
    setup = st.session_state.get(_LAST_GOOD)
    if setup is None or setup == failed or setup.model not in visitor.models() or not _is_there(setup):
        st.stop()
    st.caption("The last successful result is shown; the line above the heading names its setup.")
    try:
        return open_view(setup)
    except IdcError:
        st.stop()


def _is_there(setup: Setup) -> bool:
    """Whether a setup's tests can still be chosen: a saved suite may have been deleted."""
    return setup.data in fitting_data(visitor.models()[setup.model])


def _note(view: View) -> None:
    """Say what is unusual about a setup."""
    if problem := jobs.shelf().problem:
        st.caption(f"{literal(problem)} The studio goes on without keeping them.")
    _how_read(view)
    if sentence := neuron_said(view):
        st.caption(literal(sentence))
    if view.analysis.m < view.setup.m:
        few = "" if view.analysis.m > 1 else " Its clusters alone are the cells: choose a wider layer in the sidebar."
        st.caption(f"Layer {literal(view.setup.layer)} has {plural(view.analysis.m, 'neuron')}: all are used.{few}")
    if view.is_classifier and not view.is_comparable:
        st.caption(
            f"The network predicts classes of {literal(view.train.name)}, the tests are "
            f"{literal(tests_name(view.test))}. Accuracy is not defined for these tests; coverage is."
        )
    test_filter.tell_click(view.setup)
    test_filter.tell_suspects(view)
    if not len(view.chosen):
        st.warning(f"None of the {plural(len(view.test), 'test')} is {literal(view.setup.filter_words)}.")
        test_filter.draw_clear("filter-way-back")
        st.stop()


def _how_read(view: View) -> None:
    """Say how a person's own network and tests were understood, behind a click: the finding comes first."""
    said = list(view.remarks)
    if view.test.notes:
        said.append(f"Tests of {tests_name(view.test)} read as: {'; '.join(view.test.notes)}.")
    if said:
        with st.expander("How network and tests were read"):
            for sentence in said:
                st.caption(literal(sentence))


def _history_names() -> list[str]:
    """Return the names in the address whose change is a step in the browser's history, as a change of page is."""
    setup = [name for name in vars(DEFAULT) if name != "m"]
    frame = [tabs.TAB, tour.STEP, pins.PIN, address.STORY, address.SLIDE]
    return [*setup, *vars(Selection()), *frame, *(name for page in PAGES.values() for name in page.selects)]


def _keep_history() -> None:
    """Make choices alone steps in the browser's history; other changes of the address replace the one before."""
    _history(key="history", data={"names": _history_names()})
