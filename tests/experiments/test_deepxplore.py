"""DeepXplore's tables: seeds, coverage, likeness and ranks against slow versions, published figures against files."""

import csv
import statistics
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from idc_core.datasets import load_dataset
from idc_core.errors import DataError, SettingError
from idc_core.experiments.beside import counted, repeated
from idc_core.experiments.deepxplore import near_networks, polluted_training, tables
from idc_core.experiments.deepxplore.polluted_training import FoundPollution, Pollution, likeness
from idc_core.experiments.deepxplore.published import PUBLISHED
from idc_core.experiments.deepxplore.searches import AgreeingNetworks
from idc_core.experiments.deepxplore.trained_networks import trained_network
from idc_core.models import load_model
from idc_core.models.entry import Recipe
from idc_core.models.registry import companions, find_entry

NAMES = companions("lenet5-digits")


@pytest.fixture(scope="module")
def at():
    return AgreeingNetworks([load_model(name) for name in NAMES], load_dataset("digits", "test"))


def said(model, inputs):
    with torch.no_grad():
        return model(torch.tensor(inputs)).argmax(1).numpy()


def test_seeds_are_tests_on_which_all_agree_as_many_of_each_class(at):
    answers = [said(model, at.test.inputs) for model in at.models]
    agreed = [row for row in range(len(at.test)) if len({answer[row] for answer in answers}) == 1]
    assert at.agreed.tolist() == agreed
    seeds = at.seeds(30, 4)
    assert set(seeds) <= set(agreed)
    assert np.bincount(at.test.targets[seeds]).tolist() == [3] * 10
    assert at.seeds(30, 5).tolist() != seeds.tolist()
    assert len(at.seeds(10_000, 0)) == len(agreed)


def test_networks_that_cannot_be_searched_are_refused(at):
    with pytest.raises(SettingError, match="at least two"):
        AgreeingNetworks(at.models[:1], at.test)
    with pytest.raises(DataError, match="pictures"):
        AgreeingNetworks(at.models, replace(at.test, inputs=at.test.inputs.reshape(len(at.test), -1)))


def test_growth_is_the_union_of_scaled_neurons_that_pass_the_threshold(at):
    model, inputs = at.models[0], at.test.inputs[:5]
    seen, growth = set(), []
    for one in inputs:
        values = torch.tensor(one)[None]
        outputs = {}
        with torch.no_grad():
            hidden = outputs["conv1"] = model.conv1(values).relu()
            hidden = outputs["conv2"] = model.conv2(model.pool1(hidden)).relu()
            hidden = model.pool2(hidden).flatten(1)
            for name in ("fc1", "fc2"):
                hidden = outputs[name] = model.get_submodule(name)(hidden).relu()
            outputs["logits"] = model.logits(hidden)
        for layer, output in outputs.items():
            output = output[0]
            scaled = (output - output.min()) / (output.max() - output.min())
            for neuron in range(len(scaled)):
                if scaled[neuron].mean() > 0.25:
                    seen.add((layer, neuron))
        growth.append(len(seen) / sum(output.shape[1] for output in outputs.values()))
    assert at.growth(0, inputs, 0.25) == pytest.approx(growth)
    assert at.active(0, inputs, 0.25).any(0).mean() == pytest.approx(growth[-1])


def test_a_search_counts_no_seed_on_which_networks_differ_and_is_kept(at, own_folder, finished, monkeypatch):
    record = at.search(12, 1, constraint="linf")
    assert record["seeds"] == 12
    assert len(record["steps"]) > 5
    assert min(record["steps"]) > 0
    assert [len(growth) for growth in record["coverage"]] == [len(record["steps"])] * 3
    assert finished("differences") == 1
    monkeypatch.setattr("idc_core.experiments.deepxplore.searches.differential_search", None)
    assert at.search(12, 1, constraint="linf") == record
    with pytest.raises(TypeError):
        at.search(12, 2, constraint="linf")


def test_a_table_has_its_published_figures(at, own_folder, monkeypatch):
    monkeypatch.setattr(tables, "TABLES", {"Table 6": tables.ten_inputs})
    rows = tables.measure(at, (0, 1))
    assert [(row.table, row.case, row.paper) for row in rows] == [
        ("Table 6", name, PUBLISHED["Table 6", name, "neuron coverage"]) for name in at.names
    ]
    ten = np.random.default_rng(0).permutation(len(at.test))[:10]
    other = np.random.default_rng(1).permutation(len(at.test))[:10]
    both = [100 * at.growth(2, at.test.inputs[some], 0.75)[-1] for some in (ten, other)]
    assert rows[2].here == pytest.approx(np.mean(both))


def test_pairs_are_of_one_class_or_of_two(at):
    for same in (True, False):
        first, second = tables._pairs(at, same, 40, 3)
        assert ((at.test.targets[first] == at.test.targets[second]) == same).all()


def test_full_coverage_counts_the_seeds_up_to_the_find_that_completes_it():
    found = {
        "seeds": 5,
        "seed": [0, 2, 3],
        "steps": [4, 1, 10],
        "seconds": 7.0,
        "convolutions": [[0.5, 1.0, 1.0], [0.2, 0.3, 0.9]],
    }
    # Seeds 1 and 4 led nowhere: 10 steps each. The second find is of the third seed.
    assert tables._until_full(found, 0) == (3, 4 + 10 + 1, 7.0 * 15 / 35)
    assert tables._until_full(found, 1) is None


def test_rows_have_means_with_students_interval_and_shares_with_wilsons():
    values = [3.0, 5.0, 4.5, 4.0]
    row = repeated("Table 7", "one class", "neurons of both", "neurons", [*values, float("nan")], 74.2)
    low, high = stats.t.interval(0.95, 3, statistics.mean(values), statistics.stdev(values) / 2)
    assert (row.paper, row.here, row.of) == (74.2, statistics.mean(values), 4)
    assert (row.low, row.high) == pytest.approx((low, high))
    assert repeated("a", "b", "c", "d", []).here is None
    share = counted("Table 2", "LeNet-1", "seeds with a difference", 8, 10, 53.65)
    expected = stats.binomtest(8, 10).proportion_ci(0.95, "wilson")
    assert (share.paper, share.here) == (53.65, 80)
    assert (share.low, share.high) == pytest.approx((100 * expected.low, 100 * expected.high))


@pytest.mark.slow
def test_all_tables_are_measured_and_every_published_figure_has_its_row(at, own_folder):
    rows = tables.measure(at, (0, 1), 10)
    cases = {(row.table, row.case, row.measure) for row in rows}
    assert {row.table for row in rows} == {name for name, *_ in PUBLISHED}
    assert set(PUBLISHED) - cases == set()
    assert all(row.low is None or row.low <= row.here <= row.high for row in rows)


def test_published_figures_are_those_of_the_files(reference_folder):
    def rows(name):
        with (reference_folder / "papers" / f"deepxplore-{name}.csv").open(encoding="utf-8") as file:
            return [row for row in csv.DictReader(file) if row["dataset"] == "mnist"]

    names = {"1": "LeNet-1", "2": "LeNet-4", "3": "LeNet-5"}
    found = {}
    for row in rows("table2"):
        found["Table 2", names[row["network"][-1]], "seeds with a difference"] = int(row["differences_found"]) / 20
    for weight in "01":
        own = [row for row in rows("table5") if row["lambda2"] == weight]
        for measure, column, share in (
            ("seeds with a difference", "differences_found", 20),
            ("mean L1 distance", "mean_l1_distance", 1),
            ("neuron coverage", "neuron_coverage_percent", 1),
        ):
            mean = statistics.mean(float(row[column]) / share for row in own)
            found["Table 5", f"light, scores, lambda2 = {weight}", measure] = round(mean + 1e-9, 1)
    for row in rows("table6"):
        found["Table 6", names[row["network"][-1]], "neuron coverage"] = float(row["neuron_coverage_percent"])
    for row in rows("table7"):
        kind = "one class" if row["pairs_of"] == "same class" else "two classes"
        found["Table 7", kind, "neurons active"] = float(row["mean_activated_neurons"])
        found["Table 7", kind, "neurons of both"] = float(row["mean_overlap_neurons"])
    for row in rows("table8"):
        case = names[row["network"][-1]]
        found["Table 8", case, "seconds to full coverage"] = float(row["seconds_to_full_neuron_coverage"])
        found["Table 8", case, "seeds to full coverage"] = int(row["seeds"])
    for row in rows("tables9-11"):
        case = f"{row['parameter'].removesuffix('_size')} = {float(row['parameter_value']):g}"
        found[row["source"], case, "seconds to a difference"] = float(row["seconds_to_first_difference"])
    kinds = {"deepxplore": "differences", "adversarial": "FGSM", "random tests": "random tests"}
    for row in rows("figure9"):
        case = f"{kinds[row['inputs_from']]}, t = {float(row['threshold']):g}"
        found["Figure 9", case, "neuron coverage"] = float(row["neuron_coverage_percent"])
    assert {key: pytest.approx(value) for key, value in found.items()} == PUBLISHED
    words = {"samples": "training inputs left out", "per layer": "filters more", "epochs": "epochs more"}
    steps = {}
    for row in rows("table12"):
        (what,) = [word for part, word in words.items() if part in row["what_differs"]]
        if row["mean_iterations_to_first_difference"]:
            steps[f"{what}, {row['difference']}"] = float(row["mean_iterations_to_first_difference"])
    assert steps.pop("epochs more, 40") == 210
    assert steps == near_networks.PUBLISHED


def slow_likeness(one, other):
    """Structural similarity, window by window, as its paper has it."""
    found = []
    for top in range(one.shape[0] - 6):
        for left in range(one.shape[1] - 6):
            a, b = (part[top : top + 7, left : left + 7].ravel().astype(float) for part in (one, other))
            both = np.mean(a * b) - a.mean() * b.mean()
            light = (2 * a.mean() * b.mean() + 1e-4) / (a.mean() ** 2 + b.mean() ** 2 + 1e-4)
            found.append(light * (2 * both + 9e-4) / (a.var() + b.var() + 9e-4))
    return np.mean(found)


def test_likeness_is_the_largest_structural_similarity():
    random = np.random.default_rng(0)
    inputs, others = random.random((4, 1, 9, 10), np.float32), random.random((6, 1, 9, 10), np.float32)
    inputs[2] = others[3]
    expected = [max(slow_likeness(one[0], other[0]) for other in others) for one in inputs]
    np.testing.assert_allclose(likeness(inputs, others), expected, atol=1e-5)
    assert likeness(inputs, others)[2] == pytest.approx(1, abs=1e-5)


def test_ranks_are_counted_against_all_pairs():
    marks = np.array([True, False, True, True, False, False])
    found = FoundPollution(3, 6, 1, {"a": marks})
    pairs = [place < other for place in np.flatnonzero(marks) for other in np.flatnonzero(~marks)]
    assert found.found("a") == 2 / 3
    assert found.auc("a") == np.mean(pairs)


def test_pollution_marks_a_share_of_one_class(at):
    marks = polluted_training._marked(at.test, Pollution(true=7, share=0.25))
    assert set(at.test.targets[marks]) == {7}
    assert marks.sum() == round(0.25 * (at.test.targets == 7).sum())


@pytest.mark.slow
def test_planted_wrong_labels_are_found(own_folder):
    train, test = load_dataset("digits", "train"), load_dataset("digits", "test")
    clean = load_model("lenet5-digits")
    found = polluted_training.polluted_training("lenet5-digits", train, test, clean)
    assert found.auc("differences") > 0.9
    assert found.found("differences") > 0.6


def test_networks_are_trained_once_and_differ_as_told(own_folder, monkeypatch):
    train = load_dataset("digits", "train", 64)
    recipe = Recipe("adamw", 3e-3, batch=32, epochs=1)
    build = find_entry("lenet1-digits").build
    first = trained_network(build, "small", train, recipe, 3)
    monkeypatch.setattr("idc_core.experiments.deepxplore.trained_networks.fit", None)
    again = trained_network(build, "small", train, recipe, 3)
    for one, other in zip(first.state_dict().values(), again.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    with pytest.raises(TypeError):
        trained_network(build, "small", train, recipe, 4)
    wider = near_networks._built("lenet1-digits", 2)
    assert (wider.conv1.weight.shape[0], wider.conv2.weight.shape[0]) == (6, 14)


def test_a_network_does_not_differ_from_itself_and_rows_say_how_many_do(own_folder, monkeypatch):
    monkeypatch.setattr(near_networks, "_MOST", 80)
    train, test = load_dataset("digits", "train", 96), load_dataset("digits", "test", 40)
    near = (near_networks.NearNetwork("nothing", 0), near_networks.NearNetwork("another training seed", 1, seed=1))
    recipe = Recipe("adamw", 3e-3, batch=32, epochs=1)
    rows = near_networks.near_networks("lenet1-digits", train, test, near, 5, recipe)
    assert [(row.case, row.measure) for row in rows][:2] == [
        ("nothing, 0", "seeds with a difference"),
        ("nothing, 0", "steps to a difference"),
    ]
    assert (rows[0].here, rows[1].here) == (0, None)
    assert rows[2].here > 0
