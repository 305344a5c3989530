"""The front door of IDC Studio: `streamlit run app.py` starts it.

The server imports this file once, as it starts; at every run of a page Streamlit executes it.
"""

import streamlit as st

if __name__ == "app":
    from studio.starting import prepared
    from studio.unforeseen import show

    app = st.App(__file__, lifespan=prepared, on_script_error=show)
else:
    from studio.shell.frame import run
    from studio.starting import pages

    with pages:
        run()
