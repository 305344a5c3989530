"""What the tests of suites share: LeNet-5 on digits, clusters learnt once, and a cache folder of their own."""

import pytest

import idc_core as idc


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "suites"


@pytest.fixture(scope="session")
def lenet():
    return idc.load_model("lenet5-digits")


@pytest.fixture(scope="session")
def digits():
    return idc.load_dataset("digits", limit=150)


@pytest.fixture(scope="session")
def learnt(lenet):
    return idc.IDC(lenet, "fc2", m=12).fit(idc.load_dataset("digits", split="train"))
