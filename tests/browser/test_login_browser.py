"""Somebody who has logged in: their setup file, upload and test set to the coverage grid, by worker processes."""

import json

import numpy as np
import pytest
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

from idc_core.datasets import load_dataset
from idc_core.suites import save_suite
from tests.browser.conftest import Visitor, serve
from tests.browser.violations import serious_violations
from tests.browser.waiting import expect
from tests.library.small_files import segmenting_onnx

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SECRET = "a stand-in for what a provider of logins would give"
SECRETS = f"""[auth]
redirect_uri = "http://127.0.0.1/oauth2callback"
cookie_secret = "{SECRET}"
client_id = "nobody"
client_secret = "nothing"
server_metadata_url = "http://127.0.0.1/none"
"""
SETUP = """
import numpy as np
import torch
from torch import nn
import idc_core as idc

@idc.dataset("tables", class_names=("a", "b", "c"))
def tables(split):
    random, targets = np.random.default_rng(split == "test"), np.arange(60) % 3
    return random.normal(size=(60, 4)) + targets[:, None], targets

@idc.network("own-mlp", data="tables")
def mlp():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, {width}), nn.ReLU(), nn.Linear({width}, 3))
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A server with a login where everybody uploads, and a setup file of its owner."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text('[limits]\nuploads = "on"\n')
    (tmp_path / "secrets.toml").write_text(SECRETS)
    (tmp_path / "setup.py").write_text(SETUP.format(width=3))
    monkeypatch.setenv("IDC_SETUP", str(tmp_path / "setup.py"))
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))
    with serve(tmp_path, f"--secrets.files={tmp_path / 'secrets.toml'}") as address:
        yield tmp_path, address


def log_in(visitor, name):
    said = {"origin": visitor.address, "is_logged_in": True, "iss": "tests", "sub": name, "email": f"{name}@tests.org"}
    value = create_signed_value(SECRET, "_streamlit_user", json.dumps(said)).decode()
    visitor.page.context.add_cookies([{"name": "_streamlit_user", "value": value, "url": visitor.address}])


def table():
    random, targets = np.random.default_rng(3), np.arange(60) % 3
    rows = random.normal(size=(60, 4)) + targets[:, None]
    lines = [",".join([*(f"{one:.3f}" for one in row), "abc"[k]]) for row, k in zip(rows, targets, strict=True)]
    return "\n".join(["w,x,y,z,class", *lines]).encode()


def upload(visitor, name, content):
    visitor.open("library")
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    visitor.page.locator('input[type="file"]').set_input_files(file)
    expect(visitor.page.get_by_text(f"uploaded as {name}")).to_be_visible()
    visitor.settle()


def to_coverage(visitor, place):
    """Open one of the library's entries, and go to the grid."""
    visitor.page.get_by_role("button", name="Open in the studio").nth(place).click()
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text("What do these tests not cover?")
    visitor.follow("coverage")
    assert visitor.page.get_by_test_id("stEChartsChart").count() == 1


def test_from_the_login_to_the_coverage_of_own_things(own, browser):
    folder, address = own
    page = browser.new_page(viewport={"width": 1440, "height": 1200})
    visitor = Visitor(page, address, [])
    page.on("pageerror", lambda error: visitor.errors.append(str(error)))
    visitor.open("coverage?model=own-mlp")
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    assert "own-mlp" not in page.locator("body").inner_text()
    assert serious_violations(page) == []

    log_in(visitor, "ann")
    visitor.open("coverage")
    assert "own-mlp" in visitor.setup()
    assert "Layer 0 has 3 neurons: all are used." in visitor.text()
    (folder / "setup.py").write_text(SETUP.format(width=7))
    visitor.open("coverage")
    assert "own-mlp · tables · layer 0 · m = 6" in visitor.setup()
    assert page.get_by_test_id("stEChartsChart").count() == 1

    upload(visitor, "pixels.onnx", segmenting_onnx())
    page.get_by_text("Explained: the scores that it returns").click()
    assert "visible to you only" in visitor.text()
    expect(page.get_by_text("Share with all visitors")).to_be_visible()
    assert serious_violations(page) == []

    upload(visitor, "rows.csv", table())
    to_coverage(visitor, 1)
    assert "own-mlp · rows" in visitor.setup()

    digits = load_dataset("digits")
    kept = save_suite("Kept", digits.inputs[:40], digits.targets[:40], like=digits).stem
    visitor.open(f"coverage?model=lenet5-digits&data={kept}")
    assert "Kept · layer fc2 · m = 6 · 40 tests" in visitor.setup()
    assert visitor.faults() == []
    page.close()
