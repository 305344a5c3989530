"""What tests of relevance share."""

import pytest

from idc_core.tracing import batching


@pytest.fixture
def kept_together(monkeypatch):
    """Run inputs together, also where what is done with one depends on its place in the batch."""
    monkeypatch.setattr(batching, "_must_run_alone", lambda *_: False)
