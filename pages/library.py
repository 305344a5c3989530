"""Library: your own networks, data and test sets, added from files, checked, and opened in the studio."""

import streamlit as st

from idc_core.errors import IdcError
from studio.library import adding, details, entries, shipped, test_sets
from studio.library.work import do_asked
from studio.shell.frame import enter
from studio.shell.pages import PageEntry
from studio.text import literal
from studio.widgets.layout import topic

PAGE = PageEntry(
    "Library",
    ":material/folder_open:",
    "Which networks and data are mine?",
    "Your own networks, data and test sets: add them from files, check them, open them in the studio.",
    section="Mine",
    place=150,
    setup="none",
    selects=("entry",),
)

enter()
try:
    _finding = st.empty()
    do_asked()
    _networks, _data, _damaged = entries.split()
    _finding.markdown(entries.sentence(_networks, _data))
    adding.draw(expanded=not _networks and not _data)
    for title, some in (("Networks", _networks), ("Data sets", _data)):
        if some:
            st.header(topic("{}", title), anchor=False)
        for entry in some:
            with st.container(border=True):
                entries.head(entry)
                if entries.opened() == entry.id:
                    details.draw(entry)
                    if entries.may_change(entry):
                        entries.manage(entry)
    for id, reason in _damaged.items():
        entries.draw_damaged(id, reason)
    st.header("Test sets", anchor=False)
    test_sets.draw()
    shipped.draw()
except IdcError as error:
    st.error(literal(error))
