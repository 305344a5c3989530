"""What all tests share: where the measured reference values lie, an empty home, and quiet, repeatable runs."""

import atexit
import gc
import logging
import os
import random
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# What a person has kept must neither help the tests nor be touched by them. Each worker has a home in that of the first
# process: some tests let everything be made again, which another worker's server would be reading.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ["IDC_HOME"] += os.sep + os.environ["PYTEST_XDIST_WORKER"]
else:
    os.environ["IDC_HOME"] = tempfile.mkdtemp(prefix="idc-tests-")
    os.environ.pop("IDC_CONFIG", None)
    atexit.register(shutil.rmtree, os.environ["IDC_HOME"], ignore_errors=True)

import pytest
from hypothesis import is_hypothesis_test, settings

from idc_core.base.threads import settle
from tests.process_state import ProcessState

settle()  # before torch is imported

TESTS = Path(__file__).parent

# Other work on the machine makes single examples slow, which says nothing about the code.
settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True, max_examples=25)
settings.register_profile("longest", settings.get_profile("repeatable"), max_examples=200)
settings.load_profile("repeatable")

SLOW, ALL_SLOW = "slow and not rare", "slow"
"""What `make test-slow` and `make test-all` run."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer another order of the tests: what one leaves behind can only be seen by those that come after it."""
    told = "run the files, and the tests of each, in an order drawn from this number"
    parser.addoption("--order", type=int, metavar="SEED", help=told)


def pytest_configure(config: pytest.Config) -> None:
    """Let `make test-all` try more examples."""
    if config.option.markexpr == ALL_SLOW:
        settings.load_profile("longest")


FIRST = ("browser/test_every_page.py", "browser/", "pages/", "inspection/", "perturbation/")
"""Files that take longest: workers that begin with them end together."""

TOGETHER = ("tests/browser/", "tests/pages/")
"""Folders whose tests one worker does all: they look at the same pages, which each worker would compute for itself."""

APART = "tests/browser/test_every_page.py"
"""A file of these that another worker does among the slow tests, where the folder would be done last."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out whole folders where their tests belong together, and whole files elsewhere."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            if file == APART and config.option.markexpr in (SLOW, ALL_SLOW):
                return file
            return next((folder for folder in TOGETHER if file.startswith(folder)), file)

    return Scheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest files first; what is rare is slow; `make test-all` tries every property again."""
    _sample(items)
    for item in items:
        tried_again = config.option.markexpr == ALL_SLOW and is_hypothesis_test(getattr(item, "obj", None))
        if tried_again or item.get_closest_marker("rare"):
            item.add_marker("slow")

    def place(item: pytest.Item) -> int:
        name = item.path.relative_to(TESTS).as_posix()
        return next((place for place, start in enumerate(FIRST) if name.startswith(start)), len(FIRST))

    if (seed := config.getoption("--order")) is not None:
        items[:] = _shuffled(items, seed)
    items.sort(key=place)


def _sample(items: list[pytest.Item]) -> None:
    """Of the cases of a sampled test, leave one of each n quick, one slow, the others rare; of slow ones one slow.

    Where cases are all pairs of two lists, n shares no divisor with their lengths: then it passes over none of either.
    """
    seen = Counter[tuple[str, bool]]()
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is None or item.get_closest_marker("rare"):
            continue
        kind = item.nodeid.partition("[")[0], item.get_closest_marker("slow") is not None
        if turn := seen[kind] % mark.args[0]:
            item.add_marker("slow" if turn == 1 and not kind[1] else "rare")
        seen[kind] += 1


def _shuffled(items: list[pytest.Item], seed: int) -> list[pytest.Item]:
    """Draw an order of the files, and of the tests in each, which stay together: they share what a module makes."""
    draw, files = random.Random(seed), defaultdict(list)
    for item in items:
        files[item.path].append(item)
    order = draw.sample(sorted(files), len(files))
    return [item for path in order for item in draw.sample(files[path], len(files[path]))]


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[Any]:
    """Collect without looking for garbage; what was collected is there to the end and never looked through again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        # Pytest adds handlers six times a test to loggers that tell no other what they are told: libraries have 100.
        for one in logging.root.manager.loggerDict.values():
            if isinstance(one, logging.Logger):
                one.propagate = True
        atexit.register(gc.unfreeze)  # DuckDB's types are freed at the end, or it prints that they are not


@pytest.fixture(autouse=True)
def left_as_found() -> Iterator[None]:
    """Fail a test that leaves threads, environment, registries, torch or global random numbers other than it found."""
    before = ProcessState()
    yield
    if changed := before.changed():
        pytest.fail(f"The test leaves behind that {'; '.join(changed)}.")


@pytest.fixture(autouse=True)
def nothing_left_open(left_as_found: None) -> Iterator[None]:
    """Take out what a test has entered into the lists of networks and data, but for what open setup files hold."""
    from idc_core.datasets import DATASETS
    from idc_core.models import MODELS
    from idc_core.opening import setup_files

    before = [(DATASETS, set(DATASETS)), (MODELS, set(MODELS))]
    yield
    held = {name for one in setup_files.opened() for name in (*one.models, *one.datasets)}
    for registry, names in before:
        for name in set(registry) - names - held:
            del registry[name]


@pytest.fixture
def draws_put_back() -> Iterator[None]:
    """Put Python's generator back where a library draws from it, as Ray does where machines go, and Playwright."""
    state = random.getstate()
    yield
    random.setstate(state)


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
