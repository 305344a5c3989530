"""From a file on the visitor's disk to the coverage grid: the real upload, the check, the studio."""

import pytest

from idc_core import library
from tests.browser.violations import serious_violations
from tests.browser.waiting import expect
from tests.library.small_files import digits_onnx

pytestmark = pytest.mark.browser


@pytest.fixture
def emptied():
    """A library without entries before and after: the server has the home of the tests."""
    yield
    for one in library.ENTRIES.listed().values():
        library.delete(one.id)


@pytest.mark.slow
def test_an_uploaded_network_is_checked_and_opened(visitor, emptied, tmp_path):
    file = tmp_path / "uploaded <b>net.onnx"
    file.write_bytes(digits_onnx())
    page = visitor.page
    visitor.open("library")
    page.locator('input[type="file"]').set_input_files(file)
    expect(page.get_by_text("9,528 parameters")).to_be_visible()
    visitor.settle()
    page.get_by_role("combobox", name="Data that it takes").click()
    page.get_by_role("option", name="Digits", exact=False).first.click()
    visitor.settle()
    page.get_by_role("button", name="Use these and check").click()
    expect(page.get_by_text("Do these look right?")).to_be_visible()
    visitor.settle()
    assert page.get_by_test_id("stImage").count() >= 1
    assert "uploaded <b>net" in visitor.text()
    # The fingerprint is code in a caption, which is dimmed.
    assert page.locator('[data-testid="stCaptionContainer"] code').count() >= 1
    for scheme in ("dark", "light"):
        visitor.show(scheme)
        assert serious_violations(page, colours_only=True) == []
    page.get_by_role("button", name="Open in the studio").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("What do these tests not cover?")
    visitor.settle()
    visitor.follow("coverage")
    assert "uploaded b net" in visitor.setup()
    assert page.get_by_test_id("stException").count() == 0
    assert visitor.faults() == []
    (entry,) = library.ENTRIES.listed().values()
    assert entry.path.read_bytes() == file.read_bytes()
