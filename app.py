"""The front door of IDC Studio: routes only. `streamlit run app.py` starts it."""

import os

# Read by OpenMP when torch is first imported: waiting threads must not spin beside other processes.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import streamlit as st

from pages.common.registry import PAGES

groups: dict[str, list[st.Page]] = {}
for index, page in enumerate(PAGES.values()):
    groups.setdefault(page.group, []).append(
        st.Page(
            page.file,
            title=page.title,
            icon=page.icon,
            help=page.help,
            url_path=page.name,
            default=index == 0,
        )
    )
st.navigation(groups, position="top").run()
