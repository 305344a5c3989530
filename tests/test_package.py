"""The package: what it needs, what is in the wheel, and that an installed one works in any folder without the clone."""

import ast
import importlib.metadata
import re
import socket
import subprocess
import sys
import sysconfig
import textwrap
import time
import tomllib
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from playwright.sync_api import sync_playwright

import idc_core
from idc_core.base.files import COMMAND, SHIPPED
from tests.browser import browsers
from tests.test_architecture import CODE, modules

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]


def pins():
    """Return the pinned version of every package in the requirement files."""
    files = ("requirements.txt", "requirements-cluster.txt", "requirements-login.txt")
    lines = "\n".join((ROOT / file).read_text(encoding="utf-8") for file in files)
    return dict(re.findall(r"^([\w-]+)==([\w.]+)$", lines, re.MULTILINE))


def needed():
    """Return what the package needs, its extras included."""
    return [
        Requirement(line)
        for line in [*PROJECT["project"]["dependencies"], *(one for all_ in EXTRAS.values() for one in all_)]
    ]


@cache
def imported():
    """Return the distributions that the program imports."""
    names = set()
    for file in modules().values():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.split(".")[0])
    homes = importlib.metadata.packages_distributions()
    foreign = names - set(sys.stdlib_module_names) - {*CODE, "app"}
    return {homes[name][0].lower().replace("_", "-") for name in foreign if name in homes}


BROUGHT = {"protobuf": "onnx", "tokenizers": "transformers", "uvicorn": "streamlit"}
"""Packages that others bring along, which are used only beside them."""


def test_it_needs_what_the_program_imports_and_nothing_else():
    names = {one.name for one in needed()}
    assert imported() - names == set(BROUGHT)
    assert names - imported() == {"authlib"}  # Streamlit's login imports it
    for package, other in BROUGHT.items():
        assert any(Requirement(line).name == package for line in importlib.metadata.requires(other))


def test_every_range_begins_with_the_pinned_version():
    """Earlier ones were never tried."""
    for one in needed():
        pin = pins()[one.name]
        (begin,) = [part.version for part in one.specifier if part.operator == ">="]
        assert begin == ".".join(pin.split(".")[:2]), one
        assert one.specifier.contains(pin), one


def test_the_version_stands_once():
    assert PROJECT["project"]["dynamic"] == ["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == idc_core.__version__


def test_what_is_shipped_lies_at_the_root_of_a_clone():
    assert (SHIPPED, COMMAND) == (ROOT, "python -m idc_core")


INSIDE = {".streamlit/config.toml": "idc_core/shipped/.streamlit/config.toml", "app.py": "idc_core/shipped/app.py"}
INSIDE |= {folder: f"idc_core/shipped/{folder}" for folder in ("assets", "pages")}
INSIDE |= {package: package for package in ("idc_core", "studio")}
"""Where the wheel has what a clone has."""


def files_of_the_clone():
    """Return every file that the wheel is to have, by its name there."""
    found = set()
    for name, inside in INSIDE.items():
        path = ROOT / name
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        found |= {f"{inside}/{file.relative_to(path).as_posix()}".removesuffix("/.") for file in files}
    return {name for name in found if "__pycache__" not in name}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of the project as it is."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [
        "pip",
        "wheel",
        ROOT,
        "--no-deps",
        "--no-build-isolation",
        "--quiet",
        "--disable-pip-version-check",
        "-w",
        folder,
    ]
    subprocess.run([sys.executable, "-m", *map(str, build)], check=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Run a program of an environment that has the wheel and the libraries of the tests, in an empty folder."""
    folder = tmp_path_factory.mktemp("installed")
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    own = environment / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    (own / "libraries.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    install = [
        "pip",
        f"--python={environment}",
        "install",
        "--no-deps",
        "--quiet",
        "--disable-pip-version-check",
        wheel,
    ]
    subprocess.run([sys.executable, "-m", *map(str, install)], check=True)
    scratch = folder / "scratch"
    scratch.mkdir()

    def run(program, *words, wait=True):
        command = [environment / "bin" / program, *words]
        if not wait:
            return subprocess.Popen(command, cwd=scratch, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)

    run.folder = scratch
    return run


@pytest.mark.slow
def test_the_wheel_has_the_program_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == files_of_the_clone()
    assert wheel.stat().st_size < 40 * 2**20


@pytest.mark.slow
def test_an_installed_one_lists_analyses_and_checks(installed):
    assert installed("python", "-c", "import idc_core; print(idc_core.__file__)").stdout.count("site-packages") == 1
    assert installed("idc-studio", "--version").stdout == f"IDC Studio {idc_core.__version__}\n"
    assert "lenet5-digits" in installed("idc-studio", "list", "models").stdout
    analysis = installed("idc-studio", "analyze", "--limit-test", "50")
    assert "LeNet-5 on digits" in analysis.stdout, analysis.stderr
    limits = """
        [[check]]
        model = "lenet5-digits"
        limit = [{at_least = 0.4}, {kind = "accuracy", at_least = 0.999}]
        """
    (installed.folder / "idc.toml").write_text(textwrap.dedent(limits), encoding="utf-8")
    checked = installed("idc-studio", "check", "idc.toml")
    assert (checked.returncode, checked.stderr) == (1, "")
    assert "accuracy is 0.9833, below its minimum of 0.999" in checked.stdout


@pytest.mark.slow
def test_an_installed_one_serves_other_peoples_tests(installed):
    """A project that has nothing but a test of its own network."""
    test = """
        import torch
        from idc_core.testing import assert_coverage

        def test_coverage():
            torch.manual_seed(0)
            network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
            inputs = torch.randn(200, 4)
            assert_coverage(network, inputs[100:], "1", at_least=AT_LEAST, train=inputs[:100], m=2)
        """
    for at_least, passed in (("0.1", True), ("1.0", False)):
        (installed.folder / "test_own.py").write_text(
            textwrap.dedent(test).replace("AT_LEAST", at_least), encoding="utf-8"
        )
        done = installed("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_own.py")
        assert (done.returncode == 0) == passed, done.stdout
    assert "IDC of 1 is" in done.stdout


def shown_in_a_browser(url):
    """Return the main text of a page, once it shows a finding. In a thread: another browser may be open here."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_shown_in_a_browser, url).result()


def _shown_in_a_browser(url):
    with sync_playwright() as playwright:
        browser = browsers.start(playwright)
        page = browser.new_page()
        page.goto(url)
        page.wait_for_selector("h1", timeout=120_000)
        page.get_by_text("IDC", exact=True).first.wait_for(timeout=120_000)
        text = page.locator('[data-testid="stMain"]').inner_text()
        browser.close()
    return text


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.usefixtures("draws_put_back")
def test_an_installed_one_opens_the_dashboard_without_a_command(installed):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = installed("idc-studio", "--port", str(port), wait=False)
    try:
        assert "Opening the dashboard" in server.stdout.readline()
        wait_for(f"http://127.0.0.1:{port}/_stcore/health", server)
        assert "What do these tests not cover?" in shown_in_a_browser(f"http://127.0.0.1:{port}")
    finally:
        server.terminate()
        server.wait(timeout=60)


@pytest.mark.rare
@pytest.mark.browser
@pytest.mark.usefixtures("draws_put_back")
def test_an_installed_one_is_launched_from_a_script(installed):
    script = """
        import torch
        import idc_core as idc

        torch.manual_seed(0)
        network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
        data = torch.randn(60, 4), torch.randint(3, (60,))
        dashboard = idc.launch(network, train=data, test=data, name="mine")
        print(dashboard.url, flush=True)
        dashboard.wait()
        """
    (installed.folder / "script.py").write_text(textwrap.dedent(script), encoding="utf-8")
    program = installed("python", "script.py", wait=False)
    try:
        url = program.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        assert "mine" in shown_in_a_browser(url)
    finally:
        program.terminate()
        program.wait(timeout=60)


def wait_for(url, server):
    """Wait until a server answers, or has ended."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while server.poll() is None:
        try:
            with direct.open(url, timeout=10) as reply:
                assert reply.status == 200
                return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"the server ended: {server.stdout.read()}")
