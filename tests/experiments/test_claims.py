"""Claims over trainings: differences are picked from the right records, and verdicts follow what was planted."""

import numpy as np
import pytest

from idc_core.errors import DataError
from idc_core.experiments.claims import CLAIMS, judged


def suites(di, s, natural=0.55, original=0.5):
    of = {"U_O": original, "U_O+S": s, "U_O+DI": di, "U_O+train": natural}
    return [{"suite": suite, "m": m, "idc": value / m} for suite, value in of.items() for m in (4, 8)]


def test_differences_of_rq2_are_parts_of_what_the_tests_cover():
    di, natural, falls = CLAIMS["rq2"]
    assert dict(di.of(suites(0.60, 0.55))) == {"m = 4": pytest.approx(10), "m = 8": pytest.approx(10)}
    assert dict(natural.of(suites(0.60, 0.55))) == {"m = 4": pytest.approx(10), "m = 8": pytest.approx(10)}
    assert dict(falls.of(suites(0.60, 0.55))) == {"m = 4 to 8": pytest.approx(50)}


def test_a_planted_difference_is_found_over_trainings_and_noise_is_not():
    random = np.random.default_rng(0)
    planted = [suites(0.60 + 0.002 * random.normal(), 0.55) for _ in range(5)]
    alike = [suites(0.55 + 0.002 * random.normal(), 0.55) for _ in range(5)]
    rows = judged(CLAIMS["rq2"][:1], {"one": planted, "other": alike})[0].rows()
    assert [(row["model"], row["verdict"]) for row in rows] == [
        ("one", "more"),
        ("one", "more"),
        ("other", "none"),
        ("other", "none"),
    ]
    assert {row["networks"] for row in rows} == {5}


def test_other_criteria_are_compared_on_most_tests_and_in_points():
    def row(suite, criterion, together, tests=100):
        return {"tests": tests, "suite": suite, "criterion": criterion, "together": together, "original": 0.4}

    records = [
        row("U_O+S", "nc", 0.50),
        row("U_O+DI", "nc", 0.47),
        row("U_O+S", "nc", 0.9, 10),
        row("U_O+S", "nlc", 12.0),
        row("U_O+DI", "nlc", 10.0),
        row("U_O+S", "dsc", None),
        row("U_O+FGSM", "idc6", 0.6),
        row("U_O+noise", "idc6", 0.5),
    ]
    others = CLAIMS["rq3"][-1]
    assert dict(others.of(records)) == {"NC": pytest.approx(3)}
    assert dict(CLAIMS["rq3"][0].of(records)) == {"IDC, m = 6": pytest.approx(25)}


def test_depth_is_correlated_with_coverage_and_with_what_guided_noise_adds():
    def row(layer, suite, idc):
        return {"layer": layer, "suite": suite, "m": 4, "idc": idc}

    records = [
        row(layer, suite, idc)
        for layer, values in (("a", (0.5, 0.6, 0.5)), ("b", (0.4, 0.5, 0.5)), ("c", (0.3, 0.4, 0.5)))
        for suite, idc in zip(("U_O", "U_O+S", "U_O+DI"), values, strict=True)
    ]
    rises, beyond = CLAIMS["rq5"]
    assert dict(rises.of(records)) == {"m = 4": pytest.approx(-1)}
    assert dict(beyond.of(records)) == {"m = 4": pytest.approx(1)}


def test_what_one_training_does_not_have_is_left_out():
    def row(criterion, rho):
        return {"points": "14 suites", "criterion": criterion, "m": 6, "spearman": rho}

    trainings = [[row("nc", 0.5), row("dsc", None)], [row("nc", 0.6), row("dsc", 0.1)]]
    assert [one["of"] for one in judged(CLAIMS["rq4"], {"net": trainings})[0].rows()] == ["NC, m = 6"]


def test_models_need_equally_many_trainings():
    with pytest.raises(DataError, match="same number of trainings"):
        judged(CLAIMS["rq2"], {"one": [suites(0.6, 0.5)], "other": [suites(0.6, 0.5)] * 2})
