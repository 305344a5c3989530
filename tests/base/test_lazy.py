"""Names that packages import when they are first used."""

import subprocess
import sys

import pytest

import idc_core
from idc_core import coverage, models, suites


@pytest.mark.parametrize("package", [idc_core, coverage, models, suites], ids=lambda package: package.__name__)
def test_every_name_is_found_and_no_other(package):
    assert len(package.__all__) >= 2
    assert not [name for name in package.__all__ if getattr(package, name) is None]
    with pytest.raises(AttributeError, match=rf"module '{package.__name__}' has no attribute 'nonsense'"):
        package.nonsense  # noqa: B018


def test_a_package_imports_what_is_asked_for_and_no_more():
    code = "import sys, idc_core; idc_core.IdcError; print(*sorted(n for n in sys.modules if n.startswith('idc_core')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["idc_core", "idc_core.base", "idc_core.base.lazy", "idc_core.errors"]
