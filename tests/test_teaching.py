"""The Learn page's numbers: equal to the engine's, and true to what the page says about them."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from idc_core import relevance
from idc_core.analysis import teaching
from idc_core.clustering.kmeans import cluster
from idc_core.coverage.cells import CellCounts
from idc_core.errors import SettingError
from idc_core.figures import learn as figures

SIZES = tuple(len(names) for names in teaching.NAMES)
GRID = np.array(list(itertools.product(np.linspace(0, 1, 21), repeat=3)))
hundredths = st.integers(-200, 200).map(lambda number: number / 100)
random_weights = st.tuples(
    *(
        st.lists(hundredths, min_size=a * b, max_size=a * b).map(lambda flat, a=a, b=b: np.array(flat).reshape(a, b))
        for a, b in itertools.pairwise(SIZES)
    )
)
random_inputs = st.lists(st.integers(0, 100).map(lambda number: number / 100), min_size=3, max_size=3)


def pairs(trace):
    return zip(trace.x, trace.y, strict=True)


class Twin(torch.nn.Module):
    """The same network for the engine."""

    def __init__(self, weights):
        super().__init__()
        for name, weight in zip(("first", "second", "scores"), weights, strict=True):
            layer = torch.nn.Linear(*weight.shape, bias=False, dtype=torch.float64)
            layer.weight.data = torch.from_numpy(weight.T.copy())
            setattr(self, name, layer)

    def forward(self, x):
        return self.scores(torch.relu(self.second(torch.relu(self.first(x)))))


@pytest.mark.parametrize("target", [None, 0, 1])
@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_equal_to_the_engine(seed, target):
    random = np.random.default_rng(seed)
    shapes = itertools.pairwise(SIZES)
    weights = teaching.START if seed is None else tuple(random.uniform(-2, 2, shape) for shape in shapes)
    inputs = np.concatenate([teaching.PICTURES, teaching.TESTS, random.uniform(0, 1, (30, 3)), np.zeros((1, 3))])
    twin = Twin(weights)
    found = teaching.explain(weights, inputs, target)
    with torch.no_grad():
        np.testing.assert_allclose(found.values[-1], twin(torch.from_numpy(inputs)).numpy(), atol=1e-12)
    layers = ("input", "first", "second")
    theirs = relevance(twin, inputs, layers, epsilon=teaching.EPSILON, target="predicted" if target is None else target)
    for mine, layer in zip(found.relevance, layers, strict=False):
        np.testing.assert_allclose(mine, theirs[layer], atol=1e-9)


@given(random_weights, random_inputs, st.sampled_from([None, 0, 1]))
def test_every_layer_keeps_the_score(weights, inputs, target):
    found = teaching.explain(weights, [inputs], target)
    score = found.values[-1][0, found.target[0]]
    for layer in found.relevance:
        assert layer.sum() == pytest.approx(score, abs=1e-4)


@given(random_weights, random_inputs)
def test_what_lines_hand_back_is_what_neurons_get(weights, inputs):
    found = teaching.explain(weights, [inputs])
    for flows, below, above in zip(found.flows, found.relevance, found.relevance[1:], strict=False):
        np.testing.assert_array_equal(flows.sum(axis=2), below)
        np.testing.assert_allclose(flows.sum(axis=1), above, atol=1e-4)


def test_worked_by_hand():
    weights = (np.array([[2.0], [-1.0]]), np.array([[0.5, -1.0]]))
    found = teaching.explain(weights, [[1.0, 0.5], [0.0, 1.0]])
    assert found.values[1].tolist() == [[1.5], [0.0]]  # 2 - 0.5; -1 is silent
    assert found.values[2][0].tolist() == [0.75, -1.5]
    np.testing.assert_allclose(found.relevance[0][0], [1.0, -0.25], atol=1e-5)  # 2/1.5 and -0.5/1.5 of 0.75
    assert found.relevance[0][1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("inputs", "target", "said"),
    [([0.1, 0.2, 0.3], None, "(n, units)"), ([[0.1, 0.2]], None, "from 2 neurons"), ([[0.1] * 3], 2, "0 to 1; got 2")],
)
def test_what_does_not_fit_is_refused(inputs, target, said):
    with pytest.raises(SettingError) as refused:
        teaching.explain(teaching.START, inputs, target)
    assert said in str(refused.value)


class TestSteps:
    @pytest.mark.parametrize("k", [2, 3])
    def test_end_in_the_best_clusters(self, k):
        values = teaching.watched(teaching.PICTURES)[:, 0]
        last = teaching.kmeans_steps(values, k)[-1]
        best = cluster(values, (k,))
        np.testing.assert_allclose(last.centroids, best.centroids, atol=1e-12)
        assert last.spread == pytest.approx(best.inertia[k])

    def test_four_get_stuck_as_the_page_says(self):
        values = teaching.watched(teaching.PICTURES)[:, 0]
        assert teaching.kmeans_steps(values, 4)[-1].spread > 2 * cluster(values, (4,)).inertia[4]

    @given(st.lists(st.integers(0, 100), min_size=1, max_size=30), st.integers(1, 4))
    def test_never_spread_more_and_never_beat_the_best(self, values, k):
        assume(len(set(values)) >= k)
        steps = teaching.kmeans_steps(values, k)
        spreads = [step.spread for step in steps[1:]]
        assert all(after <= before + 1e-9 for before, after in itertools.pairwise(spreads))
        assert [step.kind for step in steps] == ["start"] + ["assign", "move"] * (len(steps) // 2 - 1) + ["done"]
        if k > 1:
            assert spreads[-1] >= cluster(values, (k,)).inertia[k] - 1e-6
        for step in steps[1:]:
            assert (np.diff(step.centroids) > 0).all()

    def test_worked_by_hand(self):
        steps = teaching.kmeans_steps([1.0, 2.0, 9.0], 2)
        assert [step.centroids.tolist() for step in steps] == [[1, 2], [1, 2], [1, 5.5], [1, 5.5], [1.5, 9], [1.5, 9]]
        assert [step.assignment.tolist() for step in steps[1::2]] == [[0, 1, 1], [0, 0, 1], [0, 0, 1]]
        assert steps[1].spread == 49
        assert steps[-1].spread == 0.5

    @pytest.mark.parametrize("k", [0, 3])
    def test_impossible_numbers_are_refused(self, k):
        with pytest.raises(SettingError, match="from 1 to 2"):
            teaching.kmeans_steps([1.0, 1.0, 2.0], k)


class TestWhatThePageSays:
    """The sentences of the six chapters hold for the numbers they stand beside."""

    def test_pictures_are_told_apart(self):
        assert teaching.explain(teaching.START, teaching.PICTURES).target.tolist() == [1] * 8 + [0] * 6

    def test_less_ink_at_the_top_changes_the_answer(self):
        top, middle, foot = teaching.START_INPUTS
        answers = teaching.explain(teaching.START, [[top, middle, foot], [0.0, middle, foot]]).target
        assert answers.tolist() == [1, 0]

    def test_less_ink_at_the_top_wakes_a3(self):
        top, middle, foot = teaching.START_INPUTS
        first = teaching.explain(teaching.START, [[top, middle, foot], [0.4, middle, foot]]).values[1]
        assert first[0, 2] == 0
        assert first[1, 2] == pytest.approx(0.1)

    def test_ink_at_the_foot_spoke_against(self):
        found = teaching.explain(teaching.START, [teaching.START_INPUTS])
        assert found.relevance[0][0, 2] < 0 < found.values[0][0, 2]
        assert found.flows[0][0, 2, 0] < 0 < found.flows[0][0, 2, 1]

    def test_the_busiest_neuron_is_the_least_important_and_can_become_the_most(self):
        found = teaching.explain(teaching.START, teaching.PICTURES)
        importance = found.relevance[1].sum(axis=0)
        assert found.values[1].mean(axis=0).argmax() == 1
        assert np.argsort(-importance).tolist() == [*teaching.WATCHED, 1]
        second = teaching.START[1].copy()
        second[1] = 1.5
        dragged = teaching.explain((teaching.START[0], second, teaching.START[2]), teaching.PICTURES)
        assert dragged.relevance[1].sum(axis=0).argmax() == 1

    def test_three_states_and_two(self):
        across, upwards = teaching.states()
        assert (across.k, upwards.k) == (3, 2)
        assert across.silhouettes[3] > across.silhouettes[4] + 0.04
        assert across.silhouettes[3] > across.silhouettes[2] + 0.04

    def test_four_tests_fill_three_cells(self):
        cells = teaching.cells(teaching.TESTS)
        assert [CellCounts((3, 2)).update(cells[:shown]).covered for shown in range(1, 5)] == [1, 2, 3, 3]
        assert cells[3].tolist() == cells[0].tolist() == [2, 0]
        assert teaching.explain(teaching.START, teaching.TESTS).target.tolist() == [1, 0, 1, 1]

    def test_one_cell_cannot_be_reached_and_the_other_two_empty_ones_can(self):
        reached = {tuple(cell) for cell in teaching.cells(GRID).tolist()}
        assert reached == set(itertools.product(range(3), range(2))) - {(2, 1)}
        assert teaching.cells([[0.0, 0.0, 0.0]]).tolist() == [[0, 0]]
        both = teaching.watched(GRID)
        speaking = (both > 0).all(axis=1)
        np.testing.assert_allclose(both[speaking].sum(axis=1), GRID[speaking] @ [0.0, 0.4, 0.7], atol=1e-12)
        across, upwards = teaching.states()
        assert across.boundaries[-1] + upwards.boundaries[-1] > 0.4 + 0.7


class TestFigures:
    @pytest.mark.parametrize("dark", [False, True])
    def test_cells_say_what_they_hold(self, dark):
        across, upwards = (found.boundaries for found in teaching.states())
        figure = figures.cells(
            teaching.watched(teaching.TESTS),
            teaching.cells(teaching.TESTS),
            (across, upwards),
            ("a1", "a3"),
            "Title",
            own=True,
            dark=dark,
        )
        words = {note.text for note in figure.layout.annotations}
        assert words == {
            "cell 0-0<br>empty",
            "cell 0-1<br>1 test",
            "cell 1-0<br>1 test",
            "cell 1-1<br>empty",
            "cell 2-0<br>2 tests",
            "cell 2-1<br>empty",
        }
        assert figure.data[0].text == ("test 1", "test 2", "test 3", "yours")

    @pytest.mark.parametrize("at", [0, 1, -1])
    def test_values_are_drawn_once_each_and_never_on_each_other(self, at):
        values = teaching.watched(teaching.PICTURES)[:, 0]
        figure = figures.kmeans(values, teaching.kmeans_steps(values, 3)[at], "Title", dark=False)
        marks = [point for trace in figure.data if trace.mode == "markers" for point in pairs(trace)]
        assert sorted(x for x, _ in marks) == sorted(values)
        assert len(set(marks)) == len(values)

    def test_importance_has_a_sign(self):
        signs = figures.relevance_signs(dark=False)
        figure = figures.importance(np.ones(2), np.array([1.0, -2.0]), ["x", "y"], "Title", dark=False)
        assert figure.data[1].marker.color == (signs["towards"], signs["against"])
        assert figure.data[1].text == ("1.00", "-2.00")
