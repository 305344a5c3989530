"""Write the files of shipped Overviews anew: ``python -m studio.overview [--check] [NETWORK ...]``."""

import argparse
import sys

from studio.overview import shipped

_parser = argparse.ArgumentParser(prog="python -m studio.overview", description=__doc__)
_parser.add_argument("networks", nargs="*", metavar="NETWORK", help="names of shipped networks; all by default")
_parser.add_argument("--check", action="store_true", help="compare the files with the live results and write nothing")
_asked = _parser.parse_args()
_wrong = False
for _name in _asked.networks or shipped.names():
    _view = shipped.view_of(_name)
    if _asked.check:
        _found = shipped.differences(_view)
        _wrong |= bool(_found)
        _said = "; ".join(_found) or "as kept"
    else:
        _said = f"{shipped.write(_view):,} bytes"
    sys.stdout.write(f"{_name}: {_said}\n")
sys.exit(int(_wrong))
