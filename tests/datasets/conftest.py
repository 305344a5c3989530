import pytest

from tests.datasets.dataset_files import write_all


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Empty folders for IDC_DATA and IDC_HOME."""
    data, home = tmp_path / "data", tmp_path / "home"
    data.mkdir()
    home.mkdir()
    monkeypatch.setenv("IDC_DATA", str(data))
    monkeypatch.setenv("IDC_HOME", str(home))
    return data, home


@pytest.fixture(scope="session")
def small_files(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("data"))


@pytest.fixture
def small(small_files, tmp_path, monkeypatch):
    """Small whole files of every dataset in IDC_DATA, and an empty cache."""
    monkeypatch.setenv("IDC_DATA", str(small_files))
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))
    return small_files
