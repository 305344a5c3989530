"""A script of `test_threads.py`: one analysis by a server's own process, by its worker, and by the command line.

Each computes it in a home of its own, so that none reads what another has kept. Writes digests of the results and with
how many threads each was computed.
"""

import hashlib
import json
import logging
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from idc_core.base.threads import number, settle

ROOT = Path(__file__).parents[1]


def digest(analysis: Any) -> str:
    """Return a digest of every number of an analysis but of the time that it took."""
    from idc_core.store.values import pack

    tree, arrays = pack(replace(analysis, seconds={}))
    found = hashlib.sha256(json.dumps(tree, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return found.hexdigest()[:16]


def threads(report: object) -> int:
    """Return the number of threads, as a piece of work."""
    return number()


def main(folder: Path) -> None:
    """Compute it three times and say what came out."""
    settle()  # before torch is imported, as server and command line do
    from idc_core import store
    from studio.jobs import workers
    from studio.jobs.jobs import JobKind, shelf
    from studio.jobs.results import open_view
    from studio.state.setup import DEFAULT

    said = {}
    for name, processes in (("server", 0), ("worker", 1)):
        os.environ["IDC_HOME"] = str(folder / name)
        workers.number = lambda processes=processes: processes
        shelf.clear()
        view = open_view(DEFAULT)
        said[name] = digest(view.analysis), shelf().job(JobKind("threads"), "", threads).result()
        shelf().end()
    os.environ["IDC_HOME"] = str(folder / "command line")
    subprocess.run([sys.executable, "-m", "idc_core", "analyze"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    (one,) = store.results_folder().glob(f"*{store.ENDING}")
    said["command line"] = digest(store.find(one)), number()
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    logging.getLogger("streamlit").setLevel(logging.ERROR)
    main(Path(sys.argv[1]))
