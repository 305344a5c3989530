"""Login, where the server has one: nothing is shown before it, and who is logged in stands in the sidebar."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from studio.state import visitor


def enter() -> None:
    """On a server with a login, show its button and no more to whoever has not logged in, else who it is."""
    who = visitor.person()
    if who is None:
        return
    if who != visitor.NOBODY:
        _draw_account()
        return
    st.title("IDC Studio", anchor=False)
    st.markdown("Log in to see your networks, data and results.")
    for provider in _providers():
        st.button(
            f"Log in with {provider}", key=f"login-{provider}", type="primary", on_click=st.login, args=(provider,)
        )
    if not _providers():
        st.button("Log in", key="login", type="primary", on_click=st.login)
    st.stop()


def _draw_account() -> None:
    claims = st.user.to_dict()
    with st.sidebar, st.container(horizontal=True, vertical_alignment="center", key="account"):
        # As plain text: Markdown makes a link of an address, too pale to read.
        st.text(str(claims.get("email") or claims.get("name") or "Logged in"))
        st.button(
            "Log out", key="logout", type="tertiary", on_click=st.logout, help="Ends your session in this browser."
        )


def _providers() -> list[str]:
    """Return the names of several providers; none where there is one without a name."""
    configured = st.secrets["auth"] if st.secrets.load_if_toml_exists() and "auth" in st.secrets else {}
    return [name for name, value in configured.items() if isinstance(value, Mapping) and name != "client_kwargs"]
