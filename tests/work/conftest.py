"""Ray reads this when it is imported: a token of these tests' own, which it would else write into the home folder."""

import os
import secrets
from collections.abc import Iterator

import pytest

from idc_core.base.threads import one_thread

os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")


@pytest.fixture(scope="module", autouse=True)
def as_workers_compute() -> Iterator[None]:
    """Compute as each worker of these tests does: last bits of float32 products differ with the number of threads."""
    with one_thread():
        yield
