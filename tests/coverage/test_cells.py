"""Cells against slow, obvious versions, hand-worked examples and the measured reference values."""

import json
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idc_core.coverage.cells import CellCounts, assign, decode, encode, total
from idc_core.errors import DataError, SettingError

few_sizes = st.lists(st.integers(1, 4), min_size=1, max_size=8)
many_sizes = st.lists(st.integers(1, 5), min_size=1, max_size=60)  # the product passes 2**63 with most draws


@st.composite
def assignments_and_sizes(draw, sizes=few_sizes):
    chosen = draw(sizes)
    seed, n = draw(st.integers(0, 10_000)), draw(st.integers(0, 40))
    random = np.random.default_rng(seed)
    return random.integers(0, chosen, size=(n, len(chosen)), dtype=np.uint8), chosen


def nearest(value, centroids):
    """The first centroid at the smallest distance."""
    return min(range(len(centroids)), key=lambda i: (abs(float(value) - float(centroids[i])), i))


class TestAssign:
    def test_worked_by_hand(self):
        activations = np.array([[0.0, 5.0], [0.6, 1.0], [9.0, -3.0]], dtype=np.float32)
        found = assign(activations, [np.array([0.0, 1.0, 4.0]), np.array([1.0])])
        assert found.tolist() == [[0, 0], [1, 0], [2, 0]]
        assert found.dtype == np.uint8

    @pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
    def test_ties_go_to_the_lower_centroid(self, kind):
        values = np.array([[0.5], [1.5], [1.0], [2.5]], dtype=kind)
        assert assign(values, [[0.0, 1.0, 2.0]])[:, 0].tolist() == [0, 1, 1, 2]

    @given(
        st.lists(st.integers(-40, 40), min_size=1, max_size=6),
        st.lists(st.integers(-100, 100), min_size=1, max_size=30),
    )
    def test_equals_the_search_for_the_nearest(self, centroids, values):
        # Halves and quarters are exact, so that ties are ties; centroids may repeat, as rounded ones can.
        centroids, values = np.sort(centroids) / 2, np.array(values) / 4
        found = assign(values[:, None].astype(np.float32), [centroids])[:, 0]
        assert found.tolist() == [nearest(value, centroids) for value in values]

    @given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=4, unique=True).map(sorted))
    def test_float32_is_compared_with_the_exact_boundary(self, centroids):
        boundaries = (np.array(centroids[:-1]) + np.array(centroids[1:])) / 2
        near = boundaries.astype(np.float32)
        up, down = np.float32(np.inf), np.float32(-np.inf)
        values = np.concatenate([near, np.nextafter(near, up), np.nextafter(near, down)])
        expected = (values.astype(np.float64)[:, None] > boundaries).sum(axis=1)
        assert assign(values[:, None], [centroids])[:, 0].tolist() == expected.tolist()

    def test_midpoint_just_beside_a_float32(self):
        value = np.float32(0.1)
        # In float32 either midpoint would round to the value itself.
        above = [float(value) - 1, float(value) + 1 + 1e-9]
        below = [float(value) - 1, float(value) + 1 - 1e-9]
        assert assign(np.array([[value]]), [above]).item() == 0
        assert assign(np.array([[value]]), [below]).item() == 1

    def test_repeated_centroids_are_never_reached_twice(self):
        values = np.array([[-1.0], [0.06], [0.07], [5.0]])
        assert assign(values, [[0.06, 0.06, 0.1]])[:, 0].tolist() == [0, 0, 0, 2]
        assert assign(values, [[0.0, 0.06, 0.06]])[:, 0].tolist() == [0, 1, 1, 1]

    @pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
    def test_activations_that_are_not_finite_are_in_no_cluster(self, bad):
        values = np.zeros((20_000, 2), np.float32)
        values[17_000, 1] = bad
        with pytest.raises(DataError, match=f"got {bad} for input 17000 in column 1"):
            assign(values, [[0.0, 1.0], [0.0, 1.0]])

    def test_integers_and_other_memory_orders(self):
        values = np.arange(200).reshape(20, 10)
        centroids = [[0.0, 50.0 + i, 100.0] for i in range(10)]
        expected = assign(values.astype(float), centroids)
        np.testing.assert_array_equal(assign(values, centroids), expected)
        columns = np.asfortranarray(values, dtype=np.float32)
        np.testing.assert_array_equal(assign(columns, centroids), expected)
        np.testing.assert_array_equal(assign(values[::-2], centroids), expected[::-2])

    def test_more_rows_than_a_block(self):
        random = np.random.default_rng(0)
        values = random.normal(size=(40_000, 3)).astype(np.float32)
        centroids = [[-1.0, 0.0, 1.0], [0.0], [-0.5, 0.5]]
        expected = np.abs(values[:, 0:1].astype(float) - centroids[0]).argmin(axis=1)
        np.testing.assert_array_equal(assign(values, centroids)[:, 0], expected)
        np.testing.assert_array_equal(assign(values, centroids)[:, 2], values[:, 2] > 0)

    def test_no_rows(self):
        assert assign(np.zeros((0, 2)), [[0.0], [1.0, 2.0]]).shape == (0, 2)

    @pytest.mark.parametrize(
        ("activations", "centroids", "reason"),
        [
            (np.zeros(3), [[0.0]], r"shape \(3,\)"),
            (np.zeros((3, 2)), [[0.0]], r"shape \(inputs, 1\)"),
            (np.zeros((1, 1), dtype=complex), [[0.0]], "complex"),
            (np.zeros((1, 1)), [[1.0, 0.0]], "ascending"),
            (np.zeros((1, 1)), [[0.0, np.nan]], "finite"),
            (np.zeros((1, 1)), [[]], "1 to 256 centroids"),
        ],
    )
    def test_refused(self, activations, centroids, reason):
        with pytest.raises(SettingError, match=reason):
            assign(activations, centroids)


class TestCodes:
    def test_worked_by_hand(self):
        found = encode(np.array([[0, 0, 0], [0, 1, 2], [1, 0, 0], [1, 1, 3]], dtype=np.uint8), (2, 2, 4))
        assert found.tolist() == [0, 6, 8, 15]
        assert found.dtype == np.int64

    def test_every_cell_has_its_own_code(self):
        sizes = (3, 1, 4, 2)
        cells = np.array(list(product(*map(range, sizes))), dtype=np.uint8)
        np.testing.assert_array_equal(encode(cells, sizes), np.arange(total(sizes)))
        np.testing.assert_array_equal(decode(np.arange(total(sizes)), sizes), cells)

    @given(assignments_and_sizes(sizes=many_sizes))
    def test_decode_is_the_inverse(self, drawn):
        assignments, sizes = drawn
        np.testing.assert_array_equal(decode(encode(assignments, sizes), sizes), assignments)

    @given(assignments_and_sizes(sizes=many_sizes))
    def test_equals_python_integers(self, drawn):
        assignments, sizes = drawn
        expected = []
        for row in assignments.tolist():
            code = 0
            for digit, size in zip(row, sizes, strict=True):
                code = code * size + digit
            expected.append(code)
        codes = encode(assignments, sizes)
        assert codes.tolist() == expected
        assert codes.dtype == (np.int64 if total(sizes) < 2**63 else object)

    def test_past_64_bits(self):
        sizes = (4,) * 40
        assert total(sizes) == 2**80
        cells = np.full((2, 40), 3, dtype=np.uint8)
        cells[1, -1] = 0
        assert encode(cells, sizes).tolist() == [2**80 - 1, 2**80 - 4]
        assert decode([2**80 - 1, 2**80 - 4], sizes).tolist() == cells.tolist()

    def test_just_below_63_bits(self):
        sizes = (4,) * 31
        found = encode(np.full((1, 31), 3, dtype=np.uint8), sizes)
        assert found.tolist() == [2**62 - 1]
        assert found.dtype == np.int64

    @pytest.mark.parametrize("sizes", [(), (0, 2), (2.0,), (257,), ("2",)])
    def test_refused_sizes(self, sizes):
        with pytest.raises(SettingError):
            total(sizes)

    @pytest.mark.parametrize(
        ("assignments", "reason"),
        [
            (np.zeros((2, 3), dtype=np.uint8), r"shape \(2, 3\)"),
            (np.zeros((2, 2), dtype=np.int64), "int64"),
            (np.zeros(2, dtype=np.uint8), r"shape \(2,\)"),
            (np.array([[0, 3]], dtype=np.uint8), "below 3 in column 1, got 3"),
        ],
    )
    def test_refused_assignments(self, assignments, reason):
        with pytest.raises(SettingError, match=reason):
            encode(assignments, (2, 3))

    @pytest.mark.parametrize("codes", [[6], [-1], [0.5], [[0]]])
    def test_refused_codes(self, codes):
        with pytest.raises(SettingError):
            decode(codes, (2, 3))


def table(counts):
    return dict(zip(counts.codes.tolist(), counts.counts.tolist(), strict=True))


class TestCellCounts:
    @given(assignments_and_sizes(sizes=many_sizes))
    def test_equals_counting_tuples(self, drawn):
        assignments, sizes = drawn
        expected = Counter(map(tuple, assignments.tolist()))
        counts = CellCounts(sizes).update(assignments)
        cells = decode(counts.codes, sizes)
        assert dict(zip(map(tuple, cells.tolist()), counts.counts.tolist(), strict=True)) == expected
        assert (counts.covered, counts.total) == (len(expected), total(sizes))
        assert counts.codes.tolist() == sorted(counts.codes.tolist())

    @given(assignments_and_sizes(), st.integers(0, 40), st.integers(0, 40))
    def test_batches_order_and_merging_do_not_matter(self, drawn, first, second):
        assignments, sizes = drawn
        first, second = sorted((first, second))
        parts = [assignments[:first], assignments[first:second], assignments[second:]]
        whole = table(CellCounts(sizes).update(assignments))
        a, b, c = (CellCounts(sizes).update(part) for part in parts)
        batched = CellCounts(sizes).update(parts[2]).update(parts[0]).update(parts[1])
        left = CellCounts(sizes).merge(a).merge(b).merge(c)
        right = c.merge(b.merge(a))
        assert table(batched) == table(left) == table(right) == whole

    def test_merging_leaves_the_other_as_it_was(self):
        one, other = (CellCounts((2, 2)).update(np.array([[i, 1]], dtype=np.uint8)) for i in (0, 1))
        one.merge(other).merge(other)
        assert (table(one), table(other)) == ({1: 1, 3: 2}, {3: 1})

    def test_counts_can_be_merged_into_themselves(self):
        counts = CellCounts((2,)).update(np.array([[1]], dtype=np.uint8))
        assert table(counts.merge(counts)) == {1: 2}

    def test_many_small_batches(self):
        random = np.random.default_rng(0)
        cells = random.integers(0, 4, size=(150_000, 6), dtype=np.uint8)
        counts = CellCounts((4,) * 6)
        for start in range(0, len(cells), 1000):
            counts.update(cells[start : start + 1000])
        assert table(counts) == Counter(encode(cells, (4,) * 6).tolist())

    @given(assignments_and_sizes())
    def test_coverage_only_grows(self, drawn):
        assignments, sizes = drawn
        counts, before = CellCounts(sizes), 0
        for row in assignments:
            covered = counts.update(row[None]).covered
            assert before <= covered <= min(before + 1, counts.total)
            before = covered

    def test_nothing_seen(self):
        counts = CellCounts((3, 4))
        assert (counts.covered, counts.total, table(counts.merge(CellCounts((3, 4))))) == (0, 12, {})

    def test_different_cells_are_not_merged(self):
        with pytest.raises(SettingError, match=r"\(2, 3\) and \(3, 2\)"):
            CellCounts((2, 3)).merge(CellCounts((3, 2)))


def centroids_of(entry, source, rounded):
    if source == "golden" or "exact" not in entry:
        return entry["centroids_rounded" if rounded else "centroids_unrounded"]
    best = np.array(entry["exact"]["centroids"][str(entry["exact"]["k"])])
    return best.round(2) if rounded else best


@pytest.mark.parametrize("network", ["LeNet1", "LeNet5"])
class TestReference:
    def test_assignments(self, reference_folder, network):
        folder = reference_folder / "deepimportance"
        layer, zeros = {"LeNet1": ("conv2", "kept"), "LeNet5": ("fc2", "dropped")}[network]
        stored = np.load(folder / f"{network}_assignments.npz")
        activations = np.load(folder / f"{network}_activations.npz")[f"test.{layer}"][:, stored["neurons"]]
        clusters = json.loads((folder / f"{network}_clusters.json").read_text())["clusters"]
        entries = [clusters[layer][f"correct/{zeros}"][str(neuron)] for neuron in stored["neurons"]]
        for source in ("golden", "exact"):
            for rounded in (True, False):
                centroids = [centroids_of(entry, source, rounded) for entry in entries]
                expected = stored[f"{source}_{'rounded' if rounded else 'unrounded'}"]
                np.testing.assert_array_equal(assign(activations, centroids), expected)

    def test_covered_and_total(self, reference_folder, network):
        folder = reference_folder / "deepimportance"
        clusters = json.loads((folder / f"{network}_clusters.json").read_text())["clusters"]
        activations = np.load(folder / f"{network}_activations.npz")
        rows = json.loads((folder / f"{network}_idc.json").read_text())["rows"]
        assert rows
        for row in rows:
            by_neuron = clusters[row["layer"]][f"{row['train_set']}/{row['zeros']}"]
            entries = [by_neuron[str(neuron)] for neuron in row["neurons"]]
            values = activations[f"test.{row['layer']}"][:, row["neurons"]]
            for source, prefix in (("golden", ""), ("exact", "exact_")):
                if f"{prefix}covered" not in row:
                    continue
                centroids = [centroids_of(entry, source, row["rounded"]) for entry in entries]
                counts = CellCounts([len(c) for c in centroids]).update(assign(values, centroids))
                assert (counts.covered, counts.total) == (row[f"{prefix}covered"], row[f"{prefix}max"]), row
