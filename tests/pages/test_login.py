"""On a server with a login everybody sees their own things and those that are shared, whatever the address says."""

import pytest
from streamlit.testing.v1 import AppTest

from idc_core import library, store
from idc_core.datasets import DATASETS, load_dataset
from idc_core.errors import SettingError
from idc_core.inspection.database import store_path
from idc_core.models import MODELS
from idc_core.runs import find_runs
from idc_core.store import notes
from idc_core.store.marks import pinned
from idc_core.suites import SAVED, change_saved, open_saved, save_suite, saved_suites
from studio.shell.pages import PAGES
from studio.state import visitor
from tests.library.small_files import digits_onnx
from tests.pages.reading import ROOT, forget_all, text


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory):
    """A server that lets people upload; the registries are as before at the end."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "config.toml").write_text('[limits]\nuploads = "on"\n')
    before = dict(MODELS), dict(DATASETS)
    with pytest.MonkeyPatch.context() as patch:
        forget_all()
        patch.setenv("IDC_HOME", str(folder))
        yield folder
        forget_all()
        patch.setenv("IDC_HOME", str(folder / "none"))
        library.enter_all()
        assert dict(MODELS) == before[0]


def opened(user, name="coverage", **parameters):
    """Open a page as somebody; an empty name has not logged in."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.user = {"is_logged_in": bool(user)}
    if user:
        app.user |= {"iss": "https://login.example.org", "sub": user, "email": f"{user}@example.org"}
    for key, value in parameters.items():
        app.query_params[key] = value
    app = app.switch_page(str(PAGES[name].file)).run()
    assert not app.exception
    return app


@pytest.fixture(scope="module")
def people(home):
    """The words by which Ann and Bob are known, told as the pages tell them."""
    found = {}
    script = "import streamlit as st\nfrom studio.state import visitor\nst.text(visitor.person())"
    for name in ("ann", "bob"):
        app = AppTest.from_string(script)
        app.user = {"is_logged_in": True, "iss": "https://login.example.org", "sub": name}
        found[name] = app.run().text[0].value
    assert found["ann"] != found["bob"]
    return found


@pytest.fixture
def network(people):
    """Ann's network."""
    path = store.results_folder().parent / "net.onnx"
    path.write_bytes(digits_onnx())
    with path.open("rb") as file:
        entry = library.add_upload(file, "ann net.onnx", "network", owner=people["ann"])
    yield library.connect(library.understand(entry), library.NetworkSettings("digits"))
    library.delete(entry.id)
    library.enter_all()


@pytest.fixture(scope="module")
def suite(people):
    """Ann's test set."""
    digits = load_dataset("digits")
    return save_suite("Ann's", digits.inputs[:9], digits.targets[:9], like=digits, owner=people["ann"]).stem


def test_nothing_is_shown_before_the_login():
    app = opened("", "library", model="lenet5-digits")
    assert [button.label for button in app.button] == ["Log in"]
    assert not app.sidebar.selectbox
    assert [title.value for title in app.title] == ["IDC Studio"]


def test_who_is_logged_in_is_told_and_can_log_out():
    app = opened("ann", "library")
    assert "ann@example.org" in [one.value for one in app.text]
    assert "Log out" in [button.label for button in app.button]


def test_a_person_without_a_subject_is_nobody(home):
    app = AppTest.from_string("import streamlit as st\nfrom studio.state import visitor\nst.text(visitor.person())")
    app.user = {"is_logged_in": True, "iss": "https://login.example.org"}
    assert app.run().text[0].value == visitor.NOBODY


def test_a_network_is_its_owners_until_it_is_shared(network):
    own = opened("ann", "library", entry=network.id)
    assert "visible to you only" in text(own)
    assert "ann net" in opened("ann", "coverage", model="ann-net").selectbox(key="model").options
    other = opened("bob", "coverage", model="ann-net")
    assert "ann net" not in other.selectbox(key="model").options
    assert "There is no network named" in text(other)
    assert "Nothing is added yet" in text(opened("bob", "library", entry=network.id))
    own.toggle(key=f"library-share-{network.id}").set_value(True).run()
    assert "ann net" in opened("bob", "coverage", model="ann-net").selectbox(key="model").options
    shown = opened("bob", "library", entry=network.id)
    assert "ann net" in text(shown)
    assert not [one.key for one in shown.button if one.key and one.key.startswith(("library-delete", "library-conn"))]
    own.toggle(key=f"library-share-{network.id}").set_value(False).run()
    assert "Nothing is added yet" in text(opened("bob", "library"))


def test_a_test_set_is_its_owners_until_it_is_shared(suite, people):
    assert "Ann's" in opened("ann", "coverage", data=suite).selectbox(key="data").options
    other = opened("bob", "coverage", data=suite)
    assert "Ann's" not in other.selectbox(key="data").options
    assert "No tests named" in text(other)
    assert "Ann's" not in text(opened("bob", "testsets", suites=suite))
    assert "Ann's" not in text(opened("bob", "library"))
    own = opened("ann", "library")
    own.toggle(key=f"library-suite-share-{suite}").set_value(True).run()
    assert "Ann's" in opened("bob", "coverage", data=suite).selectbox(key="data").options
    shown = opened("bob", "library")
    assert "Ann's" in text(shown)
    assert not [one.key for one in shown.button if one.key == f"library-suite-{suite}"]
    own.toggle(key=f"library-suite-share-{suite}").set_value(False).run()
    assert saved_suites(asker=people["bob"]) == {}


def test_the_engine_refuses_what_is_somebody_elses(suite, people):
    bob = people["bob"]
    for change in (
        lambda: open_saved(suite, bob),
        lambda: change_saved(suite, bob, label="Bob's"),
        lambda: change_saved(suite, bob, shared=True),
        lambda: SAVED.delete(suite, bob),
    ):
        with pytest.raises(SettingError, match="There is no saved suite"):
            change()
    change_saved(suite, people["ann"], shared=True)
    assert len(open_saved(suite, bob)) == 9
    with pytest.raises(SettingError, match="somebody else's"):
        SAVED.delete(suite, bob)
    change_saved(suite, people["ann"], shared=False)
    assert open_saved(suite).label == "Ann's"


def test_equal_tests_of_two_people_are_two_test_sets(suite, people):
    digits = load_dataset("digits")
    other = save_suite("Bob's", digits.inputs[:9], digits.targets[:9], like=digits, owner=people["bob"]).stem
    assert [one.label for one in saved_suites(asker=people["bob"]).values()] == ["Bob's"]
    assert [one.label for one in saved_suites(asker=people["ann"]).values()] == ["Ann's"]
    assert open_saved(other).parts[0].fingerprint == open_saved(suite).parts[0].fingerprint
    SAVED.delete(other, people["bob"])


def test_notes_are_read_by_whoever_wrote_them(people):
    app = opened("ann", "clusters", input="3")
    app.text_area(key="note-text").set_value("A secret of Ann")
    app.button(key="note-keep").click().run()
    assert "A secret of Ann" in [one.value for one in app.text]
    assert "A secret of Ann" not in [one.value for one in opened("bob", "clusters", input="3").text]
    (note,) = notes.kept_notes()
    assert note.owner == people["ann"]
    with pytest.raises(SettingError, match="somebody else's"):
        notes.delete_note(note.name, people["bob"])
    notes.delete_note(note.name, people["ann"])


def offered(app):
    """Everything that a page says and offers."""
    menus = (app.selectbox, app.multiselect, app.get("button_group"))
    return "\n".join([text(app), *(str(one.options) for menu in menus for one in menu)])


@pytest.mark.parametrize(
    ("page", "parameters"),
    [
        ("coverage", {"pin": "model=ann-net"}),
        ("testsets", {"suites": "ann-net"}),
        ("differential", {"against": "lenet5-digits,ann-net"}),
    ],
)
def test_no_part_of_an_address_names_what_is_somebody_elses(network, page, parameters):
    assert "ann net" in offered(opened("ann", page, **parameters)) or page == "testsets"
    assert "ann net" not in offered(opened("bob", page, **parameters))


def listed(app):
    return next((list(table.value["network"]) for table in app.dataframe if "network" in table.value.columns), [])


def test_a_run_of_an_own_network_is_seen_by_its_owner_until_it_is_shared(network, people):
    opened("ann", "coverage", model="ann-net")
    opened("ann", "coverage")
    (own,) = find_runs(network="ann-net", text="fc")
    assert "ann net" in listed(opened("ann", "runs"))
    assert "ann net" not in listed(opened("bob", "runs", run=own.id))
    compared = ",".join(run.id for run in find_runs("analysis")[:2])
    assert "ann net" in offered(opened("ann", "runs", tab="compare", **{"compared-runs": compared}))
    assert "ann net" not in offered(opened("bob", "runs", tab="compare", **{"compared-runs": compared}))
    app = opened("ann", "runs", run=own.id)
    app.toggle(key=f"run-share-{own.id}").set_value(True).run()
    other = opened("bob", "runs", run=own.id)
    assert "ann net" in listed(other)
    assert not [one for one in other.button if one.key == "run-delete"]
    assert next(one for one in other.button if one.key == "run-open").disabled
    assert not other.toggle


def test_names_and_pins_of_runs_are_everybodys_own(people):
    opened("ann", "coverage")
    run = next(one for one in find_runs("analysis", "lenet5-digits") if one.said("tests") == "digits")
    app = opened("ann", "runs", run=run.id)
    app.text_input(key=f"run-name-{run.id}").set_value("Ann's best")
    app.button(key="run-rename").click().run()
    app.button(key="run-pin").click().run()
    assert store.marks(people["ann"])[run.id] == store.Mark("Ann's best", pinned=True)
    assert "Ann's best" not in text(opened("bob", "runs", run=run.id))
    assert run.id not in store.marks(people["bob"])
    assert run.id in pinned()


def test_inspections_are_asked_for_in_a_database_of_ones_own(people):
    assert len({store_path(), store_path(people["ann"]), store_path(people["bob"])}) == 3


def test_without_a_login_nothing_is_hidden(suite):
    assert suite in saved_suites()
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app = app.switch_page(str(PAGES["library"].file)).run()
    assert "Ann's" in text(app)
    assert not [one for one in app.button if one.label.startswith("Log")]
