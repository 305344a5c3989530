"""The container file keeps the rules that matter, as far as they can be seen without building it."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE = ROOT / "Containerfile"


def instructions():
    """Return the instructions with their words; lines that go on are one, comments none."""
    text = re.sub(r"^\s*#.*\n", "", FILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split()[0].upper(), line.split(maxsplit=1)[1]) for line in text.splitlines() if line.strip()]


def of(name):
    return [words for one, words in instructions() if one == name]


def test_images_are_named_by_a_version():
    """Of both stages the same, which an owner may name by its digest."""
    (base,) = of("ARG")
    name, image = base.split("=")
    assert re.search(r":\d+\.\d+", image), image
    assert not image.endswith("latest")
    assert {words.split()[0] for words in of("FROM")} == {f"${{{name}}}"}
    assert f"--build-arg {name}=" in (ROOT / "docs" / "SERVER.md").read_text(encoding="utf-8")


def test_it_does_not_run_as_root():
    (user,) = of("USER")
    assert int(user.split(":")[0]) > 0
    last = [name for name, _ in instructions()]
    assert last.index("USER") > max(place for place, name in enumerate(last) if name in ("FROM", "RUN", "COPY"))


def test_nothing_comes_from_an_address_and_what_is_copied_exists():
    assert not of("ADD")
    ignored = (ROOT / ".containerignore").read_text().splitlines()
    assert ignored[0] == "*"
    for words in of("COPY"):
        *sources, _ = [one for one in shlex.split(words) if not one.startswith("--")]
        if "--from=" in words:
            continue
        for source in sources:
            assert (ROOT / source).exists(), source
            assert f"!{source}" in ignored, source


def test_every_package_of_the_program_is_in_it():
    copied = {word for words in of("COPY") for word in shlex.split(words)}
    packages = {path.parent.name for path in ROOT.glob("*/*.py")} - {"tests", "benchmarks"}
    assert packages <= copied


def test_health_is_asked_of_streamlit_and_commands_need_no_shell():
    (check,) = of("HEALTHCHECK")
    assert "/_stcore/health" in check
    assert "CMD [" in check
    (command,) = of("CMD")
    assert command.startswith("[")
    assert "--server.address=0.0.0.0" in command


def test_versions_are_pinned():
    assert all("-r " in words for words in of("RUN") if "pip install" in words)
    for name in ("requirements.txt", "requirements-login.txt"):
        lines = (ROOT / name).read_text().splitlines()
        assert all("==" in line for line in lines if line and not line.startswith("#"))
