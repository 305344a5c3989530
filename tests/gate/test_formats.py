"""Reports of hostile names: well-formed XML, Markdown without markup, one line per annotation."""

from xml.etree import ElementTree as ET

from idc_core.cli.check import render
from idc_core.gate.formats import to_annotations, to_junit, to_markdown
from idc_core.gate.verdicts import CheckReport, GateReport, Verdict

NAME = 'a|b <img src="x"> ]]> \x00\x1b[31m\ud800 *c*\n::error::d'
REPORT = GateReport(
    "idc.toml",
    (
        CheckReport(
            NAME,
            {"network": NAME},
            (
                Verdict(NAME, "at least 1", "broken", "0.5", "0.7", NAME, (NAME, "second")),
                Verdict("b", "", "could not run", sentence=NAME),
                Verdict("c", "at least 0", "kept", "0.5"),
            ),
        ),
    ),
)


def test_junit_is_xml_that_holds_every_character_that_xml_can():
    root = ET.fromstring(to_junit(REPORT))
    (suite,) = root
    assert [root.get(name) for name in ("tests", "failures", "errors")] == ["3", "1", "1"]
    assert 'a|b <img src="x"> ]]> \ufffd\ufffd[31m\ufffd *c*' in suite.get("name")
    assert [[one.tag for one in case] for case in suite.iter("testcase")] == [["failure"], ["error"], []]
    assert suite.find("testcase/failure").text.endswith("second")


def test_markdown_shows_names_as_they_are():
    rows = [line for line in to_markdown(REPORT).splitlines() if line.startswith("| ")]
    assert len(rows) == 4
    assert all(row.replace("\\|", "").count("|") == 7 for row in rows)
    assert "<img" not in to_markdown(REPORT).replace("\\<img", "").replace("    a|b <img", "")


def test_an_annotation_is_one_line_each():
    lines = to_annotations(REPORT).split("\n")
    assert len(lines) == 2
    assert all(line.startswith("::error file=idc.toml,title=a|b ") for line in lines)


def test_the_table_ends_with_the_finding():
    assert render(REPORT).splitlines()[-1] == "1 of 3 limits broken, 1 of 3 limits could not be judged (0.0 s)"
