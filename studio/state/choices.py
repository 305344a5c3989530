"""Choices that the address holds by the options' names, so that no rewording of their texts breaks a link.

A control that Streamlit binds to the address itself writes the text of an option there. Numbers, switches and fields
of text may be bound so, choices among texts are drawn by the functions below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import streamlit as st

from studio.state import address
from studio.text import literal, quoted

_T = TypeVar("_T", bound=str | int | float)

_NONE = "none"
"""In the address: nothing is chosen of several options."""


def choose_one(
    draw: Callable[..., _T | None], label: str, options: Mapping[_T, str], default: _T, key: str, **how: Any
) -> _T:
    """Draw a choice of one option; the address holds its name, and nothing where it is the default.

    Parameters
    ----------
    draw : callable
        ``st.selectbox`` or ``st.segmented_control``, which gets ``how``.
    label : str
        Name of the control.
    options : mapping
        Text of every option; the options themselves are their names in the address.
    default : str, int or float
        The option that is chosen at first.
    key : str
        Name of the control in the session and in the address.
    """
    new = address.is_new(key)
    if (text := _said(key, st.session_state.get(key) in options)) is not None:
        option = named(text, options)
        not_there(label, [text] if new and option is None else [])
        st.session_state[key] = default if option is None else option
    chosen = draw(label, list(options), format_func=_writer(draw, options), key=key, **how)
    chosen = default if chosen is None else chosen
    address.keep(key, "" if chosen == default else str(chosen))
    return chosen


def choose_several(
    draw: Callable[..., list[_T]], label: str, options: Mapping[_T, str], default: Sequence[_T], key: str, **how: Any
) -> list[_T]:
    """Draw a choice of several options, as `choose_one` does; ``draw`` is ``st.multiselect`` or ``st.pills``."""
    before, new = st.session_state.get(key), address.is_new(key)
    # Streamlit itself wrote an empty value where nothing was chosen.
    emptied = st.query_params.get_all(key) == [""]
    if (texts := _said(key, before is not None and all(option in options for option in before))) is not None:
        picked = {text: named(text, options) for text in texts.split(",")}
        chosen = [option for option in picked.values() if option is not None]
        not_there(label, [text for text, option in picked.items() if new and option is None and text != _NONE])
        st.session_state[key] = chosen if chosen or emptied or texts == _NONE else list(default)
    chosen = draw(label, list(options), format_func=_writer(draw, options), key=key, **how)
    address.keep(key, "" if list(chosen) == list(default) else ",".join(map(str, chosen)) or _NONE)
    return list(chosen)


def choose_or_usual(
    draw: Callable[..., list[_T]], label: str, options: Mapping[_T, str], usual: Sequence[_T], key: str, **how: Any
) -> list[_T]:
    """Draw a choice of several options, the usual ones where none is chosen; the address holds what a person chose."""
    new, names = address.is_new(key), address.read(key).split(",")
    not_there(label, [name for name in names if new and name not in map(str, options)])
    st.session_state[key] = [option for option in options if str(option) in names] or list(usual)

    def keep() -> None:
        address.keep(key, ",".join(map(str, st.session_state[key])))

    return draw(label, list(options), format_func=_writer(draw, options), key=key, on_change=keep, **how)


def _writer(draw: Callable[..., object], options: Mapping[_T, str]) -> Callable[[_T], str]:
    """Return what writes an option: menus show a text as it is, other controls read it as Markdown."""
    drawn = draw.func if isinstance(draw, partial) else draw
    if getattr(drawn, "__name__", "") in ("selectbox", "multiselect"):
        return options.__getitem__
    return lambda option: literal(options[option])


def named(text: str, options: Mapping[_T, str]) -> _T | None:
    """Return the option that an address means by its name, or by its text of today; None if none."""
    names = {str(option): option for option in options}
    return names.get(text, {shown: option for option, shown in options.items()}.get(text))


def not_there(label: str, names: Sequence[str]) -> None:
    """Say which names, of what an address asks for, are nothing that can be chosen."""
    if missed := ", ".join(quoted(name) for name in names if name):
        st.toast(f"{label}: there is no {literal(missed)}. The page shows what can be chosen.", duration="long")


def _said(key: str, is_set: bool) -> str | None:
    """Return what the address says of a control that is drawn first, or that the reader went back to; else None."""
    if address.went_back():
        return ",".join(st.query_params.get_all(key))
    return None if is_set else address.read(key)
