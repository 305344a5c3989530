"""The front door of IDC Studio: routes only. `streamlit run app.py` starts it."""

from pages.common.registry import navigation

navigation().run()
