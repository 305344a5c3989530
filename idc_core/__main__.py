"""`python -m idc_core`: the command line, which is `idc-studio` where the package is installed."""

import sys

from idc_core.cli.program import run

if __name__ == "__main__":
    sys.exit(run())
