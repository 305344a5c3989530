"""What the owner's config file allows one session: a sentence names the setting where a limit is reached."""

import pytest

from idc_core.errors import SettingError
from studio.jobs.jobs import JobKind, Shelf
from studio.state import allowed


@pytest.fixture(name="limit")
def limit_fixture(tmp_path, monkeypatch):
    """Write a section of limits."""

    def limit(**values: int) -> None:
        path = tmp_path / "owner.toml"
        path.write_text("[limits]\n" + "".join(f"{name} = {value}\n" for name, value in values.items()))
        monkeypatch.setenv("IDC_CONFIG", str(path))

    return limit


def said(app) -> str:
    return "\n".join(one.value for kind in (app.error, app.warning, app.caption) for one in kind)


def test_too_many_inputs(open_page, limit):
    limit(inputs=1257)
    assert not open_page("coverage").error
    limit(inputs=1256)
    error = open_page("coverage").error[0].value
    assert "has 1,257 training inputs; at most 1,256 are allowed (inputs in the section limits of" in error


def test_too_many_neurons(open_page, limit):
    limit(m=4)
    app = open_page("coverage", m="9")
    slider = next(one for one in app.slider if one.key == "m")
    assert (slider.value, slider.max) == (4, 4)
    assert "m in the section limits of this server's config file" in said(app)
    assert "The number of neurons is from 1 to 4" in said(app)
    assert max(map(int, next(one for one in open_page("layers").button_group if one.key == "ms").options)) == 4


def test_an_attack_above_the_budget(open_page, limit):
    limit(attack_passes=10)
    assert r"(attack\_passes in the section limits" in open_page("adversarial").error[0].value


def test_too_much_work_of_one_session(limit, monkeypatch, tmp_path):
    import threading

    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    limit(jobs=2)
    shelf, end = Shelf(), threading.Event()
    try:
        assert shelf.may_begin()
        jobs = [shelf.job(JobKind("trace"), "first", lambda on_progress: end.wait(20))]
        assert not shelf.may_begin(), "one is left for what is waited for"
        jobs.append(shelf.job(JobKind("trace"), "second", lambda on_progress: True))
        with pytest.raises(SettingError, match=r"piece of work 3 .*at most 2 are allowed \(jobs in"):
            shelf.job(JobKind("trace"), "third", lambda on_progress: True)
        monkeypatch.setattr("studio.jobs.jobs._session", lambda: "another")
        jobs.append(shelf.job(JobKind("trace"), "third", lambda on_progress: True))
    finally:
        end.set()
    assert all(job.result() for job in jobs)


def test_no_limit_by_default():
    assert [allowed.most(name) for name in ("inputs", "m", "attack_passes", "jobs")] == [None] * 4
