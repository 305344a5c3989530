"""Who looks at the pages: somebody at this computer, or a visitor from elsewhere; what each sees and may do."""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import streamlit as st

if TYPE_CHECKING:
    from idc_core.datasets.entry import DatasetEntry
    from idc_core.models import ModelEntry

_KEY = "visitor-key"
_PLACE, _PLACES = "visitor-place", "visitor-places"
"""In the session: where the visitor is, and everywhere they were."""
NOBODY = "nobody"
"""Who asks without having logged in, on a server with a login."""
_COOKIE = "_streamlit_xsrf"
_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via")
"""Headers that a proxy adds: behind one, everybody seems to come from this computer."""


def person() -> str | None:
    """Return who asks, on a server with a login: a digest of issuer and subject; None on a server without one.

    For the thread of the script. Who has not logged in is `NOBODY`, whose nothing is.
    """
    claims = st.user.to_dict()
    if "is_logged_in" not in claims:
        return NOBODY if st.secrets.load_if_toml_exists() and "auth" in st.secrets else None
    name = f"{claims.get('iss', '')} {claims.get('sub', '')}"
    return hashlib.sha256(name.encode()).hexdigest()[:32] if claims["is_logged_in"] and claims.get("sub") else NOBODY


def is_local() -> bool:
    """Whether only this computer reaches the server, and the visitor comes from it, not through a proxy.

    On a server with a login nobody is: what counts there is who they are.
    """
    if person() is not None:
        return False
    addresses = [st.context.headers.get(name) for name in ("Host", "Origin")]
    hosts = [_host(address) for address in addresses if address] + [str(st.get_option("server.address") or "")]
    if (client := st.context.ip_address) is not None:
        hosts.append(client)
    return all(map(_is_loopback, hosts)) and not any(name in st.context.headers for name in _FORWARDED)


def owner() -> str:
    """Return whose the entries are that this visitor adds to the library.

    On a server with a login: theirs. Empty, so everybody's, on a server that only this computer reaches; elsewhere a
    digest of the browser's own key, which the browser keeps until it is closed. Where it keeps none, of a key of this
    session.
    """
    if (who := person()) is not None:
        return who
    if is_local():
        return ""
    key = _browser_key(st.context.cookies.get(_COOKIE, "")) or st.session_state.setdefault(_KEY, secrets.token_hex(16))
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def uploads_refused() -> str:
    """Say why this visitor may not upload files; empty where they may."""
    from idc_core.base.config import config

    rule = config().uploads
    if rule == "off":
        return "The owner of this server has switched uploads off."
    if rule == "loopback" and not is_local():
        return (
            "Uploads are switched off, as other computers reach this server. Its owner allows them by "
            'uploads = "on" in the section limits of the config file.'
        )
    return ""


def paths_refused() -> str:
    """Say why this visitor may not name files of the server's computer; empty where they may."""
    if uploads := uploads_refused():
        return uploads
    return "" if is_local() else "Files of the server are added by path only in a browser on the same computer."


def arrive(*place: str) -> None:
    """Note where the visitor is now: a page, or one of its tabs."""
    if st.session_state.get(_PLACE, ("",))[0] != place:
        been = st.session_state.setdefault(_PLACES, set())
        st.session_state[_PLACE] = (place, place not in been)
        been.add(place)


def is_first_visit() -> bool:
    """Whether the visitor is where they are for the first time in this session."""
    return bool(st.session_state.get(_PLACE, ("", True))[1])


def models() -> dict[str, ModelEntry]:
    """Return the networks that this visitor sees, by name: those of the registry but for others' own."""
    from idc_core.models import MODELS

    hidden = _hidden()
    return {name: entry for name, entry in dict(MODELS).items() if not hidden(name)}


def datasets() -> dict[str, DatasetEntry]:
    """Return the data sets that this visitor sees, by name."""
    from idc_core.datasets import DATASETS

    hidden = _hidden()
    return {name: entry for name, entry in dict(DATASETS).items() if not hidden(name)}


def may_see() -> Callable[[str], bool]:
    """Return what tells whether the name of a network or of data is this visitor's to see.

    What is not here any more, or never was, is seen at this computer alone: whose it was is not known.
    """
    from idc_core.datasets import DATASETS
    from idc_core.models import MODELS
    from idc_core.suites import SAVED

    hidden, local, who = _hidden(), is_local(), person()
    suites = None if who is None else SAVED.listed(who)

    def sees(name: str) -> bool:
        if SAVED.is_id(name):
            return suites is None or name in suites
        return not hidden(name) if name in MODELS or name in DATASETS else local

    return sees


def _hidden() -> Callable[[str], bool]:
    """Return what tells whether a name is not offered: somebody else's, once the library's entries are entered."""
    from idc_core import library
    from idc_core.suites import SAVED

    library.enter_all()
    others = library.hidden(owner()) if any(library.owners().values()) else set()
    # Saved suites hold tests alone: they are offered as such, not where data sets are.
    return lambda name: SAVED.is_id(name) or name in others


def _browser_key(cookie: str) -> str:
    """Return the token in the browser's cookie, which the server masks anew each time; empty where there is none."""
    from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string

    token, _ = decode_xsrf_token_string(cookie) if cookie else (None, None)
    return token.hex() if token else ""


def _host(text: str) -> str:
    """Return the name of the computer in a header: `name:port`, or an address with `http://`."""
    return urlsplit(text if "//" in text else f"//{text}").hostname or ""


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
