"""The entries as cards: what each is in a line, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from idc_core.errors import IdcError
from idc_core.store.documents import may_change as may_change_it
from studio.shell.pages import go_to
from studio.state import address, visitor
from studio.state.selection import select
from studio.state.setup import fitting_data
from studio.text import count, literal, plural
from studio.widgets.headlines import label

if TYPE_CHECKING:
    from idc_core.library import Entry

_OPEN = "entry"
"""Name in the address: the entry whose details are shown."""

_DELETING = "library-deleting"
_REFUSED = "library-entry-refused"


def open_details(id: str) -> None:
    """Show the details of an entry; for callbacks."""
    address.keep(_OPEN, id)


def opened() -> str:
    """Return the entry whose details are shown."""
    return address.read(_OPEN)


def split() -> tuple[list[Entry], list[Entry], dict[str, str]]:
    """Return the networks and the data sets that this visitor sees, and why others are damaged, by id."""
    from idc_core.library import ENTRIES

    whole, kinds = ENTRIES.listed(visitor.owner()).values(), ("network", "data")
    networks, data = ([entry for entry in whole if entry.kind == kind] for kind in kinds)
    # Whose a damaged entry was is not known: it is shown on the server's own computer.
    return networks, data, ENTRIES.damaged() if visitor.is_local() else {}


def may_change(entry: Entry) -> bool:
    """Whether an entry is this visitor's to change; what is shared is changed on the server's own computer."""
    return may_change_it(entry.owner, visitor.owner(), shared=entry.shared)


def sentence(networks: list[Entry], data: list[Entry]) -> str:
    """Say what there is, as the finding of the page."""
    from idc_core import library
    from idc_core.base.config import config

    if not networks and not data:
        return "**Nothing is added yet.** Add a network from a file, choose its data, and open it in the studio."
    ready = sum(bool(_opening(network)) for network in networks)
    held = f"Uploads take {size(library.used())} of {size(config().library)}."
    return f"{plural(len(networks), 'network')} and {plural(len(data), 'data set')}, {ready} ready to open. {held}"


def head(entry: Entry) -> None:
    """Draw what an entry is, and its first buttons."""
    target = _opening(entry)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(label(entry.label))
        st.button(
            "Open in the studio",
            key=f"library-open-{entry.id}",
            disabled=not target,
            on_click=_go,
            args=(target,),
            help="Opens the overview on it." if target else _missing(entry),
        )
        shown = opened() == entry.id
        st.button(
            "Close" if shown else "Details",
            key=f"library-details-{entry.id}",
            type="tertiary",
            on_click=open_details,
            args=("" if shown else entry.id,),
            help="Settings, check, predictions, name and deletion.",
        )
    st.caption(" · ".join(_facts(entry)))


def _opening(entry: Entry) -> dict[str, str]:
    """Return network and data that open an entry; empty where it cannot be opened yet."""
    models = visitor.models()
    if entry.kind == "network":
        return {"model": entry.name} if entry.name in models else {}
    if entry.name not in visitor.datasets():
        return {}
    own_first = sorted(models, key=lambda name: (models[name].dataset != entry.name, name not in _added()))
    network = next((name for name in own_first if entry.name in fitting_data(models[name])), "")
    return {"model": network, "data": entry.name} if network else {}


def _added() -> dict[str, str]:
    from idc_core import library

    return library.owners()


def _missing(entry: Entry) -> str:
    if entry.facts is None:
        return "It has not been read yet: see its details."
    if entry.kind == "network":
        return "Choose the data that it takes first: see its details."
    return "No network here takes inputs of this shape and these classes. Add one."


def _go(target: dict[str, str]) -> None:
    select(model=target["model"], data=target.get("data"), layer=None, classes=None)
    go_to("overview")


def _facts(entry: Entry) -> list[str]:
    """Say in a few words each what an entry is, where it came from and what was found."""
    facts = []
    if entry.network is not None:
        facts += [literal(entry.network.format), f"{count(entry.network.parameters)} parameters"]
        if entry.network.takes:
            facts.append(f"takes {literal(entry.network.takes)}")
        if entry.network_settings.data:
            facts.append(f"data {literal(_data_label(entry))}")
        facts.append(_checked(entry))
    if entry.data is not None:
        facts += [literal(entry.data.format), " x ".join(map(str, entry.data.shape))]
        facts.append(plural(len(entry.data.class_names), "class").replace("classs", "classes"))
        facts.append(f"{plural(entry.data.train, 'training input')}, {plural(entry.data.test, 'test')}")
    if entry.facts is None:
        facts.append("not read yet")
    facts += [size(entry.stamp.size), _origin(entry)]
    if entry.facts is not None:
        facts.append(f"fingerprint `{entry.facts.fingerprint}`")
    return facts


def _data_label(entry: Entry) -> str:
    data = visitor.datasets().get(entry.network_settings.data)
    return data.label if data else f"{entry.network_settings.data}, which is gone"


def _checked(entry: Entry) -> str:
    """Say what the check found."""
    if entry.check is None:
        return "not checked"
    mistakes = len(entry.check.get("mistakes", ()))
    return f"check: {plural(mistakes, 'likely mistake')}" if mistakes else "check: no likely mistakes"


def _origin(entry: Entry) -> str:
    day = entry.added[:10]
    if entry.content:
        origin = f"uploaded as {literal(entry.source)}, {day}"
    else:
        from idc_core.library import plain_name

        # The folders of the server's computer are nothing to tell a visitor from elsewhere.
        path = entry.source if visitor.is_local() else entry.path.name
        origin = f"read from {literal(plain_name(path))}, added {day}"
    if not entry.owner:
        return origin
    return (
        f"{origin}, shared"
        if entry.shared
        else f"{origin}, visible to {'you' if visitor.person() else 'this browser'} only"
    )


def size(bytes_: int) -> str:
    """Write a number of bytes as a person reads it."""
    for unit, step in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if bytes_ >= step:
            return f"{bytes_ / step:.1f} {unit}"
    return f"{bytes_} bytes"


def manage(entry: Entry) -> None:
    """Draw name, sharing and deletion of an entry."""
    from idc_core import library

    st.divider()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input(
            "Name",
            entry.label,
            key=f"library-name-{entry.id}",
            width=360,
            max_chars=120,
            help="Shown in menus and on all pages; links keep working. Default after the file.",
        )
        st.button(
            "Rename",
            key=f"library-rename-{entry.id}",
            on_click=_try,
            args=(lambda: library.rename(_own(entry), st.session_state[f"library-name-{entry.id}"]),),
            help="Gives it this name.",
        )
        if entry.owner:
            key = f"library-share-{entry.id}"
            st.toggle(
                "Share with all visitors",
                entry.shared,
                key=key,
                on_change=_try,
                args=(lambda: library.share(_own(entry), st.session_state[key]),),
                help="Lists it, and the data that it takes, for all visitors of this server. Default off.",
            )
        st.button("Delete", key=f"library-delete-{entry.id}", on_click=_ask_deletion, args=(entry.id,))
    if st.session_state.get(_DELETING) == entry.id:
        _confirm(entry.id, "The uploaded file goes with it." if entry.content else "Your own file stays where it is.")
    if refusal := st.session_state.pop(_REFUSED, ""):
        st.error(refusal)


def _own(entry: Entry) -> Entry:
    """Return an entry as it is now; SettingError where it is not this visitor's to change."""
    from idc_core import library

    return library.ENTRIES.own(entry.id, visitor.owner())


def _ask_deletion(id: str) -> None:
    st.session_state[_DELETING] = id


def _confirm(id: str, what: str) -> None:
    """Ask whether an entry is to be deleted."""
    from idc_core import library

    with st.container(border=True):
        st.markdown(f"Delete it from the library? {what}")
        with st.container(horizontal=True):
            st.button(
                "Delete it",
                key=f"library-really-{id}",
                type="primary",
                on_click=_try,
                args=(lambda: library.delete(id, visitor.owner()),),
            )
            st.button("Keep it", key=f"library-keep-{id}", on_click=_ask_deletion, args=("",))


def draw_damaged(id: str, reason: str) -> None:
    """Draw an entry that cannot be read, and its removal."""
    from idc_core import library

    with st.container(border=True):
        st.warning(literal(reason))
        st.button(
            "Delete this damaged entry",
            key=f"library-really-{id}",
            on_click=_try,
            args=(lambda: library.delete(id),),
            help="Deletes it from the library.",
        )


def _try(do: Callable[[], object]) -> None:
    """Do something to an entry; say why where it fails."""
    st.session_state.pop(_DELETING, None)
    try:
        do()
    except IdcError as error:
        st.session_state[_REFUSED] = literal(error)
