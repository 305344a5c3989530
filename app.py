"""The front door of IDC Studio: routes only. `streamlit run app.py` starts it."""

import streamlit as st

from pages.common.registry import FRONT_DOOR, navigation

st.session_state[FRONT_DOOR] = True
navigation().run()
