"""An option of IDC as one field: every way in takes it, and every result is found and listed by it.

A real one touches two files: the field in `idc_core/coverage/idc_settings.py`, and the one that uses it.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_one_field_is_everywhere():
    """In a process of its own: whoever derives from the fields has done so when it was imported."""
    script = str(Path(__file__).parent / "toys" / "option.py")
    code = f"import runpy; runpy.run_path({script!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "command_line file_of_checks address control run\n"
