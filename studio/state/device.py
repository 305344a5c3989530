"""Where the setup's network runs, chosen in the sidebar where this machine has more than a processor."""

from __future__ import annotations

import streamlit as st

from idc_core.base import devices
from studio.state import address
from studio.state.choices import choose_one

KEY = "device"


def chosen() -> str:
    """Return the name of the device that is chosen; empty for that of the config file."""
    name = address.read(KEY)
    return name if name and name in devices.available() else ""


def draw() -> None:
    """Draw the choice in the sidebar; nothing on a machine that leaves none."""
    there = devices.available()
    if len(there) == 1:
        return
    with st.sidebar:
        choose_one(
            st.selectbox,
            "Device",
            {name: name for name in there},
            str(devices.choose()),
            KEY,
            help="Where the network runs. Results agree to rounding whichever device computes them.",
        )
