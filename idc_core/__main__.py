"""`python -m idc_core`: the command line, which is `idc-studio` where the package is installed."""

import sys

from idc_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
