"""The Library page: from a file to the overview, wrong files in sentences, and who sees what."""

import io

import numpy as np
import pytest
import streamlit as st

from idc_core import library
from idc_core.datasets import DATASETS, load_dataset
from idc_core.models import MODELS
from idc_core.suites import save_suite, saved_suites
from studio.library import shipped
from studio.shell.pages import PAGES
from studio.state import visitor
from tests.library.small_files import digits_onnx, segmenting_onnx
from tests.pages.reading import open_page, text


@pytest.fixture
def file(home):
    path = home / "my net.onnx"
    path.write_bytes(digits_onnx())
    return path


def add(app, path):
    app.text_input(key="library-path").input(str(path)).run()
    return app.button(key="library-add").click().run()


def only_entry():
    (entry,) = library.ENTRIES.listed().values()
    return entry


def test_what_is_shipped_is_listed_with_a_card(home):
    app = open_page("library")
    (table,) = [one.value for one in app.dataframe if "parameters" in one.value]
    assert len(table) == 18
    assert table.set_index("network").loc["LeNet-5 on digits", "accuracy"] == "98.3 %"
    app.session_state[shipped._SHOWN] = "lenet1-digits"
    app.run()
    assert "Source: Y. LeCun" in text(app)
    app.button(key="library-open-shipped").click().run()
    assert "".join(app.query_params["model"]) == "lenet1-digits"


def test_an_empty_library_says_what_to_do(home):
    app = open_page("library")
    assert not app.exception
    assert app.title[0].value == PAGES["library"].question
    assert "Nothing is added yet" in text(app)
    assert not app.sidebar.selectbox
    assert not (home / "home" / "library").exists()


def test_from_a_path_to_the_overview(file):
    app = add(open_page("library"), file)
    assert not app.exception
    assert not app.error
    entry = only_entry()
    assert "ONNX · 9,528 parameters · not checked" in text(app)
    assert app.button(key=f"library-open-{entry.id}").disabled
    choice = app.selectbox(key=f"library-data-{entry.id}")
    assert choice.options == [DATASETS[name].label for name in ("digits", "mnist", "fashion-mnist")]
    assert choice.value is None
    choice.select("digits").run()
    app.button(key=f"library-connect-{entry.id}").click().run()
    assert not app.exception
    assert not app.error
    assert "Do these look right?" in text(app)
    assert app.warning
    assert "data " in text(app)
    assert "likely mistake" in text(app)
    app.button(key=f"library-open-{entry.id}").click().run()
    assert not app.exception
    assert app.title[0].value == PAGES["overview"].question
    assert "my net · digits · layer fc1" in text(app)
    assert app.selectbox(key="model").value == "my-net"


def test_a_network_with_scores_per_pixel_is_opened_once_it_is_said_what_is_explained(home):
    entry = library.understand(library.add_upload(io.BytesIO(segmenting_onnx()), "seg.onnx", "network"))
    app = open_page("library", entry=entry.id)
    assert "say which are explained" in text(app)
    app.selectbox(key=f"library-explained-{entry.id}").select("mean-pixels")
    app.text_input(key=f"library-axes-{entry.id}").input("classes, pixel")
    next(one for one in app.button if one.label == "Explain these scores").click().run()
    assert "classes,pixel'" in app.error[0].value
    app.selectbox(key=f"library-explained-{entry.id}").select("mean-pixels")
    app.text_input(key=f"library-axes-{entry.id}").input("classes, pixels")
    next(one for one in app.button if one.label == "Explain these scores").click().run()
    assert not app.error
    app.selectbox(key=f"library-data-{entry.id}").select("digits").run()
    app.button(key=f"library-connect-{entry.id}").click().run()
    assert not app.exception
    assert not app.error
    assert only_entry().network_settings.explain == "mean-pixels:classes,pixels"
    app.button(key=f"library-open-{entry.id}").click().run()
    assert "seg · digits · layer conv1" in text(app)


def connected(content=None, name="my net.onnx", owner=""):
    entry = library.add_upload(io.BytesIO(content or digits_onnx()), name, "network", owner=owner)
    return library.connect(library.understand(entry), library.NetworkSettings("digits"))


def test_the_names_of_the_outputs_are_said_and_shown_beside_the_classes(home):
    entry = connected()
    names = ", ".join(reversed("0123456789"))
    app = open_page("library", entry=entry.id)
    app.text_input(key=f"library-output_names-{entry.id}").input(names)
    app.text_input(key=f"library-output-{entry.id}").input("y")
    next(one for one in app.button if one.label == "Explain these scores").click().run()
    assert not app.exception
    assert not app.error
    settings = only_entry().network_settings
    assert (settings.output, settings.output_names) == ("y", tuple(reversed("0123456789")))
    assert "Outputs and classes of the data by name: 9 '0' is '0', 8 '1' is '1'" in text(app).replace("\\", "")
    app.text_input(key=f"library-output_names-{entry.id}").input("a, b")
    next(one for one in app.button if one.label == "Explain these scores").click().run()
    assert "has 10 outputs, but 2 names are given" in app.error[0].value


def test_it_is_there_after_a_restart_with_its_name(home):
    entry = connected()
    app = open_page("library", entry=entry.id)
    app.text_input(key=f"library-name-{entry.id}").input("**Bold** <b>net</b>").run()
    app.button(key=f"library-rename-{entry.id}").click().run()
    assert r"**\*\*Bold\*\* \<b\>net\</b\>**" in text(app)
    assert MODELS["my-net"].label == "Bold b net /b"
    app = open_page("coverage", model="my-net")
    assert not app.exception
    assert "Bold b net /b · digits" in text(app)


def test_deletion_is_confirmed(home):
    entry = connected()
    app = open_page("library", entry=entry.id)
    app.button(key=f"library-delete-{entry.id}").click().run()
    assert "Delete it from the library? The uploaded file goes with it." in text(app)
    app.button(key=f"library-keep-{entry.id}").click().run()
    assert library.ENTRIES.listed() == {entry.id: entry}
    app.button(key=f"library-delete-{entry.id}").click().run()
    app.button(key=f"library-really-{entry.id}").click().run()
    assert not app.exception
    assert library.ENTRIES.listed() == {}
    assert "Nothing is added yet" in text(app)
    assert "my-net" not in visitor.models()
    app = open_page("coverage", model="my-net")
    assert "LeNet-5 · digits" in text(app)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("code.py", b"raise SystemExit", "named on the command line only"),
        ("net.pt", b"\x80\x04.", "may be a pickle"),
        ("net.onnx", b"no network", "net"),
        ("gone.onnx", None, "cannot be read: No such file"),
        ("what.exe", b"1", "expected"),
    ],
)
def test_wrong_files_end_in_a_sentence(home, name, content, said):
    if content is not None:
        (home / name).write_bytes(content)
    app = add(open_page("library"), home / name)
    assert not app.exception
    (error,) = app.error
    assert said in error.value
    assert error.value.endswith(".")
    assert "Library" in [page.title for page in PAGES.values()]


def test_a_file_that_is_gone_or_changed_is_said_and_read_again(file):
    app = add(open_page("library"), file)
    entry = only_entry()
    file.write_bytes(digits_onnx(seed=1))
    app.run()
    assert "has changed since it was read" in app.warning[0].value
    app.button(key=f"library-read-{entry.id}").click().run()
    assert not app.warning
    assert only_entry().network.fingerprint != entry.network.fingerprint
    file.unlink()
    app.run()
    assert not app.exception
    assert "gone or cannot be read" in app.warning[0].value


def test_damaged_entries_are_listed_and_deleted(home):
    entry = connected()
    (home / "home" / "library" / "entries" / f"{entry.id}.json").write_bytes(b"{}")
    app = open_page("library")
    assert not app.exception
    assert "Delete it, and add its network or data again" in app.warning[0].value
    app.button(key=f"library-really-{entry.id}").click().run()
    assert not app.warning
    assert library.ENTRIES.listed() == {}


@pytest.fixture
def elsewhere(home, monkeypatch):
    """A server that other computers reach, whose owner allows uploads."""
    (home / "owner.toml").write_text('[limits]\nuploads = "on"\n')
    monkeypatch.setenv("IDC_CONFIG", str(home / "owner.toml"))
    monkeypatch.setattr(visitor, "is_local", lambda: False)


def test_a_visitor_from_elsewhere_names_no_files_of_the_server(elsewhere, monkeypatch):
    monkeypatch.setattr(visitor, "owner", lambda: "somebody")
    app = open_page("library")
    assert app.get("file_uploader")
    assert "library-path" not in [one.key for one in app.text_input]
    assert "only in a browser on the same computer" in text(app)
    texts = io.BytesIO(b"text,label\n" + b"a fox,x\nthe dog,y\n" * 20)
    data = library.add_upload(texts, "a.csv", "data", owner="somebody")
    library.understand(data)
    keys = [one.key for one in open_page("library", entry=data.id).text_input]
    assert f"library-length-{data.id}" in keys
    assert f"library-tokenizer-{data.id}" not in keys


@pytest.mark.parametrize("rule", ["loopback", "off"])
def test_uploads_are_as_the_owner_says(elsewhere, home, rule):
    (home / "owner.toml").write_text(f'[limits]\nuploads = "{rule}"\n# another one\n')
    app = open_page("library")
    assert not app.get("file_uploader")
    assert "switched" in text(app)


def test_an_entry_is_seen_by_its_own_visitor_until_it_is_shared(elsewhere, monkeypatch):
    who = ["me"]
    monkeypatch.setattr(visitor, "owner", lambda: who[0])
    mine = connected(owner="me")
    app = open_page("library", entry=mine.id)
    assert "visible to this browser only" in text(app)
    assert "my-net" in visitor.models()
    who[0] = "you"
    other = open_page("library", entry=mine.id)
    assert "Nothing is added yet" in text(other)
    page = open_page("coverage", model="my-net")
    assert "LeNet-5 · digits" in text(page)
    assert "my net" not in page.selectbox(key="model").options
    who[0] = "me"
    app.toggle(key=f"library-share-{mine.id}").set_value(True).run()
    assert not app.exception
    who[0] = "you"
    other.run()
    assert "my net" in text(other)
    # What is shared is opened by all, and changed by nobody from elsewhere.
    assert not [one.key for one in other.button if one.key and one.key.startswith(("library-delete", "library-conn"))]


@pytest.mark.parametrize(
    ("server", "headers", "ip", "local"),
    [
        ("127.0.0.1", {}, None, True),
        ("localhost", {"Host": "localhost:8501", "Origin": "http://localhost:8501"}, None, True),
        ("::1", {"Host": "[::1]:8501"}, "::1", True),
        (None, {"Host": "localhost"}, None, False),
        ("0.0.0.0", {"Host": "localhost"}, None, False),
        ("127.0.0.1", {"Host": "studio.example.org"}, None, False),
        ("127.0.0.1", {"Host": "127.0.0.1:8501", "Origin": "https://studio.example.org"}, None, False),
        ("127.0.0.1", {"Host": "127.0.0.1:8501", "X-Forwarded-For": "10.0.0.7"}, None, False),
        ("127.0.0.1", {"Host": "127.0.0.1"}, "10.0.0.7", False),
        ("127.0.0.1", {"Origin": "null"}, None, False),
    ],
)
def test_who_is_at_this_computer(monkeypatch, server, headers, ip, local):
    class Context:
        pass

    Context.headers, Context.ip_address = headers, ip
    monkeypatch.setattr(st, "context", Context)
    monkeypatch.setattr(st, "get_option", lambda name: server)
    assert visitor.is_local() is local


def test_the_key_of_a_browser_stays_when_its_cookie_is_masked_anew():
    from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string as masked

    first, second = masked(b"a" * 16), masked(b"a" * 16)
    assert first != second
    assert visitor._browser_key(first) == visitor._browser_key(second) != ""
    assert visitor._browser_key("") == visitor._browser_key("2|nonsense") == ""


def test_scaling_is_tried_and_kept(home):
    entry = connected()
    app = open_page("library", entry=entry.id)
    before = library.ENTRIES.find(entry.id).network.fingerprint
    app.text_input(key=f"library-mean-{entry.id}").input("0.5, x")
    submit = next(one for one in app.button if one.label == "Use this scaling")
    submit.click().run()
    assert "must be numbers with spaces" in app.error[0].value
    app.text_input(key=f"library-mean-{entry.id}").input("127.5")
    app.text_input(key=f"library-deviation-{entry.id}").input("127.5")
    app.selectbox(key=f"library-factor-{entry.id}").select(255.0)
    next(one for one in app.button if one.label == "Use this scaling").click().run()
    assert not app.exception
    assert not app.error
    found = library.ENTRIES.find(entry.id)
    assert (found.network_settings.scaling["factor"], found.network.fingerprint) == (255.0, before)
    assert found.check is not None
    assert "multiplied by 255" in next(one.label for one in app.expander if one.label.startswith("Scaling"))


def test_data_that_could_not_be_read_are_read_once_their_targets_are_named(home):
    path = home / "flowers.csv"
    path.write_text("a;b;species\n" + "\n".join(f"{n},5;{n};{'xyz'[n % 3]}" for n in range(30)))
    app = add(open_page("library"), path)
    assert "such as --targets species" in app.error[0].value
    entry = next(iter(library.ENTRIES.listed().values()))
    app.text_input(key=f"library-targets-{entry.id}").input("species")
    next(one for one in app.button if one.label == "Read with these settings").click().run()
    assert not app.exception
    assert not app.error
    assert only_entry().data.class_names == ("x", "y", "z")


def test_data_are_prepared_anew(home):
    path = home / "some.npz"
    np.savez(path, inputs=np.random.default_rng(0).random((40, 1, 28, 28)), targets=np.arange(40) % 10)
    app = add(open_page("library"), path)
    assert not app.exception
    assert not app.error
    entry = only_entry()
    assert (entry.kind, entry.data.test) == ("data", 8)
    app.number_input(key=f"library-test_share-{entry.id}").set_value(0.5)
    next(one for one in app.button if one.label == "Read with these settings").click().run()
    assert not app.error
    assert only_entry().data.test == 20
    app.text_input(key=f"library-inputs-{entry.id}").input("nothing")
    next(one for one in app.button if one.label == "Read with these settings").click().run()
    assert not app.exception
    assert "its arrays are 'inputs', 'targets'" in app.error[0].value
    assert only_entry().data_settings.preparation == {"test_share": 0.5}
    app.button(key=f"library-open-{entry.id}").click().run()
    assert "LeNet-5 · some" in text(app) or "· some ·" in text(app)


def test_texts_get_the_tokenizer_of_a_folder(home):
    (home / "bert").mkdir()
    (home / "bert" / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "fox", "dog"]))
    (home / "bert" / "config.json").write_text('{"model_type": "bert"}')
    (home / "some.csv").write_text("text,label\n" + "the fox,x\nthe dog,y\n" * 20)
    entry = library.understand(library.add_path(str(home / "some.csv"), "data"))
    library.replaced(entry, data_settings=library.DataSettings({"resample": "box"}))
    app = open_page("library", entry=entry.id)
    for given, said in (("bert", "is no folder of this computer"), (str(home / "bert"), "")):
        app.text_input(key=f"library-tokenizer-{entry.id}").input(given)
        next(one for one in app.button if one.label == "Read with these settings").click().run()
        assert not app.exception
        assert said in "".join(one.value for one in app.error)
    assert "token ids by the tokenizer bert" in text(app)
    assert only_entry().data_settings.preparation == {"resample": "box", "tokenizer": str(home / "bert")}


def test_test_sets_are_renamed(home):
    digits = load_dataset("digits")
    path = save_suite("Mine", digits.inputs[:3], digits.targets[:3], like=digits)
    app = open_page("library")
    app.text_input(key=f"library-suite-name-{path.stem}").input("Hard <b>ones</b>")
    app.button(key=f"library-suite-rename-{path.stem}").click().run()
    assert not app.exception
    assert not app.error
    assert [one.label for one in saved_suites().values()] == ["Hard <b>ones</b>"]
    assert r"**Hard \<b\>ones\</b\>**" in text(app)
    app.text_input(key=f"library-suite-name-{path.stem}").input(" ")
    app.button(key=f"library-suite-rename-{path.stem}").click().run()
    assert "needs a name" in app.error[0].value
