"""An option of IDC, as a person would write it: one field of `IdcOptions`; run by itself, it says what has it."""

import argparse
import sys
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

FIELD = """
    decimals: int = option(
        7,
        "decimals of centroids",
        CLUSTERS,
        control=Control(
            "rounded",
            "Decimals",
            "Decimals that centroids are rounded to.",
            "7",
            part="decimals",
            line="rounded to {}",
            refusal="Centroids cannot be rounded to {} decimals",
            choices=lambda: {str(number): _Choice(number, f"{number} decimals") for number in (7, 5, 3)},
        ),
    )
"""
BEFORE = "    original: bool = option("


def enter():
    """Load the settings of IDC with one field more."""
    spec = find_spec("idc_core.coverage.idc_settings")
    written = Path(spec.origin).read_text(encoding="utf-8")
    assert written.count(BEFORE) == 1
    module = sys.modules[spec.name] = module_from_spec(spec)
    exec(compile(written.replace(BEFORE, FIELD.strip("\n") + "\n" + BEFORE), spec.origin, "exec"), vars(module))  # noqa: S102 (the program's own source)


def command_line():
    from idc_core.cli import analyze

    parser = argparse.ArgumentParser()
    analyze.add_options(parser)
    assert "decimals of centroids (7)" in parser.format_help()
    return analyze._chosen(parser.parse_args(["--decimals", "5"])).decimals


def file_of_checks():
    from idc_core.gate.settings import read_gate

    with TemporaryDirectory() as folder:
        file = Path(folder) / "idc.toml"
        file.write_text('[[check]]\nmodel = "a"\ndecimals = 5\nlimit = [{kind = "coverage", at_least = 0.1}]\n')
        return read_gate(file).checks[0].settings.idc.decimals


def address():
    from studio.jobs.results import idc_settings
    from studio.state.setup import parse, setup_line, unknown

    setup = parse({"rounded": "5", "zeros": "dropped"})
    assert {name: text for name, text in setup.texts.items() if text} == {"rounded": "5", "zeros": "dropped"}
    assert setup_line("LeNet", setup, 6).endswith("zeros dropped · rounded to 5")
    assert unknown({"rounded": "4"}) == {"rounded": "Centroids cannot be rounded to “4” decimals. Shown instead: 7."}
    return idc_settings(setup).decimals


def page():
    from types import SimpleNamespace

    from studio.clusters.histograms import _controls
    from studio.state.setup import chosen

    _controls(SimpleNamespace(setup=chosen()))


def control():
    from streamlit.testing.v1 import AppTest

    app = AppTest.from_function(page, default_timeout=30).run()
    box = app.selectbox(key="rounded")
    assert (box.label, box.value, box.options) == ("Decimals", "7", ["7 decimals", "5 decimals", "3 decimals"])
    assert box.help == "Decimals that centroids are rounded to. Default 7 decimals."
    box.select("5").run()
    assert not app.exception
    return int(app.query_params["rounded"])


def run():
    from idc_core.coverage.idc_settings import IdcSettings
    from idc_core.runs import PlannedAnalysis
    from studio.runs.opening import parameters_of

    card = SimpleNamespace(fingerprint="", name="a", label="", dataset="")
    data = type("Data", (), {"fingerprint": "", "name": "b", "class_names": (), "__len__": lambda self: 0})()
    usual, other = (PlannedAnalysis(card, data, data, "c", 2, IdcSettings.of(**more)) for more in ({}, {"decimals": 5}))
    assert "decimals" not in dict(usual.key[5:])
    assert ("decimals", 5) in other.key
    facts = SimpleNamespace(kind="analysis", settings=other.settings)
    run = SimpleNamespace(facts=facts, said=lambda name: str(other.settings.get(name, "")))
    assert parameters_of(run)["rounded"] == "5"
    return other.settings["decimals"]


if __name__ == "__main__":
    enter()
    places = (command_line, file_of_checks, address, control, run)
    sys.stdout.write(" ".join(one.__name__ for one in places if one() == 5) + "\n")
