"""The front door of IDC Studio: `streamlit run app.py` starts it."""

import gc

from studio.shell.frame import run

# Libraries make hundreds of thousands of objects while they load, which stay: looking for garbage after every few
# hundred takes a fifth of that time. Streamlit looks for it after each run of a page.
gc.set_threshold(50_000)
run()
