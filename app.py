"""The front door of IDC Studio: routes only. `streamlit run app.py` starts it."""

import gc

import streamlit as st

from studio.shell.pages import FRONT_DOOR, navigation

# Libraries make hundreds of thousands of objects while they load, which stay: looking for garbage after every few
# hundred takes a fifth of that time. Streamlit looks for it after each run of a page.
gc.set_threshold(50_000)
st.session_state[FRONT_DOOR] = True
navigation().run()
