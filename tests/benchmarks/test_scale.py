"""The model of what many GPUs cost: its formulae, the merge tree, and the page that it writes."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import scale

MEASURED = scale.kept()


def test_the_page_says_what_the_model_says():
    page = scale.PAGE.read_text(encoding="utf-8")
    assert scale.written(page, scale.tables(MEASURED)) == page


def test_a_tree_gives_what_merging_one_after_the_other_gives():
    peak, held, size, merged = scale.simulate(100)
    whole = scale.worker(0)
    for seed in range(1, 100):
        whole.merge(scale.worker(seed))
    np.testing.assert_array_equal(merged.cells.codes, whole.cells.codes)
    np.testing.assert_array_equal(merged.cells.counts, whole.cells.counts)
    assert merged.cells.counts.sum() == 100 * (2_000 + 4**scale.M)
    np.testing.assert_allclose(merged.importance, whole.importance, rtol=0, atol=1e-9)
    np.testing.assert_allclose(merged.moments.scatter, whole.moments.scatter, rtol=1e-9)
    assert merged.moments.count == whole.moments.count == 200_000
    assert held <= scale.most_held(100) == 7
    assert size == scale.state_bytes(2048, scale.M)
    assert 0.8 < peak / scale.tree_bytes(100, size) < 1.1


@pytest.mark.parametrize(("workers", "most"), [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (1_000, 10)])
def test_the_tree_holds_no_more_states_than_it_says(workers, most):
    class Count(int):
        def merge(self, other):
            return Count(self + other)

    held = []
    assert scale.tree([Count(1)] * workers, held.append) == workers
    assert max(held) == scale.most_held(workers) == most


def test_the_simulation_that_is_kept_is_the_model():
    assert MEASURED.simulated_held == scale.most_held(1_000)
    model = scale.tree_bytes(1_000, MEASURED.simulated_bytes)
    assert 0.8 < MEASURED.simulated_peak / model < 1.1


def test_passes_and_sketches_shrink_with_the_gpus_and_joining_sketches_hardly_does():
    few, many = (scale.terms(MEASURED, "ResNet-50", "A100", gpus) for gpus in (8, 64))
    for name in ("learning", "tests", "reading"):
        assert few[name] == pytest.approx(8 * many[name])
    joining = 8 * 40 * 131_072 / 3.125e9 + 7 * MEASURED.merged_sketch  # of eight
    for gpus, rounds in ((8, 8 + 1 + 1), (64, 3), (512, 3)):  # 64 merges, 8 and 1
        rest = scale.terms(MEASURED, "ResNet-50", "A100", gpus)["clustering"] / 6 - 1e9 / gpus * MEASURED.sketched_value
        assert rest == pytest.approx(rounds * joining + MEASURED.parted_sketch)
    assert many["merging"] == pytest.approx(2 * few["merging"])
    assert many["merging by the driver"] == pytest.approx(8 * few["merging by the driver"])
    assert few["learning"] == pytest.approx(1e9 / (8 * scale.rate("ResNet-50", "A100") / 3))


def test_reading_counts_only_where_it_takes_longer_than_the_passes():
    parts = {"learning": 5.0, "tests": 3.0, "reading": 7.0, "clustering": 2.0, "merging": 1.0}
    assert scale.whole(parts) == 11.0
    assert scale.whole({**parts, "reading": 20.0}) == 23.0


def test_the_driver_is_full_when_messages_take_all_of_its_time():
    assert scale.most_workers(replace(MEASURED, message=1e-4)) == 10_000
    assert scale.most_workers(replace(MEASURED, message=1e-4), a_second=20) == 500
