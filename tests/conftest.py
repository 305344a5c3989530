"""What all tests share: where the measured reference values lie, an empty home, and quiet, repeatable runs."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

# Before torch is imported: threads that spin starve a machine with other work.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# What a person has kept must neither help the tests nor be touched by them. Workers take the home of the first process.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["IDC_HOME"] = tempfile.mkdtemp(prefix="idc-tests-")
    os.environ.pop("IDC_CONFIG", None)
    atexit.register(shutil.rmtree, os.environ["IDC_HOME"], ignore_errors=True)

import pytest
from hypothesis import is_hypothesis_test, settings

TESTS = Path(__file__).parent

# Other work on the machine makes single examples slow, which says nothing about the code.
settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True, max_examples=25)
settings.register_profile("long", settings.get_profile("repeatable"), max_examples=200)
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    """Let the slow tests try more examples."""
    if config.option.markexpr == "slow":
        settings.load_profile("long")


FIRST = ("browser/test_every_page.py", "browser/", "pages/", "inspection/", "perturbation/")
"""Files that take longest: workers that begin with them end together."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest files first; the slow tests try every property once more, on more examples."""
    for item in items:
        if config.option.markexpr == "slow" and is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("slow")

    def place(item: pytest.Item) -> int:
        name = item.path.relative_to(TESTS).as_posix()
        return next((place for place, start in enumerate(FIRST) if name.startswith(start)), len(FIRST))

    items.sort(key=place)


@pytest.fixture
def one_mebibyte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest limit of memory that an owner can set, in a config file."""
    path = tmp_path / "owner.toml"
    path.write_text("[limits]\nmemory_mib = 1\n", encoding="utf-8")
    monkeypatch.setenv("IDC_CONFIG", str(path))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder with the full data sets, from the environment variable IDC_DATA."""
    place = os.environ.get("IDC_DATA")
    if not place:
        pytest.skip("IDC_DATA is not set: it points to the folder with the full data sets")
    folder = Path(place).resolve()
    if not folder.is_dir():
        pytest.fail(f"IDC_DATA points to {folder}, which is not a folder")
    return folder


@pytest.fixture(scope="session")
def reference_folder(data_folder: Path) -> Path:
    """Folder with values measured on the original programs; it lies beside the data sets."""
    folder = data_folder.parent / "reference"
    if not folder.is_dir():
        pytest.skip(f"there are no reference values beside IDC_DATA: {folder} is missing")
    return folder
