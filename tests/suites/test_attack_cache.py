import numpy as np
import pytest

from idc_core.errors import DataError
from idc_core.suites import attacked
from idc_core.suites.attacked import cached_block


def block(value, shape=(4, 1, 8, 8)):
    return np.random.default_rng(value).random(shape).astype(np.float32)


def test_a_block_is_made_once(cache):
    made = []

    def make():
        made.append(1)
        return block(1)

    first, second = cached_block(block(0), "key", make), cached_block(block(0), "key", make)
    np.testing.assert_array_equal(first, second)
    assert len(made) == 1
    cached_block(block(0), "other key", make)
    cached_block(block(2), "key", make)
    assert len(made) == 3
    assert len(list(cache.iterdir())) == 3


def test_files_hold_no_pickles(cache):
    cached_block(block(0), "key", lambda: block(1))
    (path,) = cache.iterdir()
    with np.load(path, allow_pickle=False) as file:
        assert file.files == ["inputs"]


@pytest.mark.parametrize("damage", [b"", b"no zip file", None])
def test_a_damaged_file_is_made_again(cache, damage):
    cached_block(block(0), "key", lambda: block(1))
    (path,) = cache.iterdir()
    path.write_bytes(path.read_bytes()[:-40] if damage is None else damage)
    np.testing.assert_array_equal(cached_block(block(0), "key", lambda: block(2)), block(2))
    np.testing.assert_array_equal(cached_block(block(0), "key", lambda: block(3)), block(2))


def test_a_file_of_another_shape_is_made_again(cache):
    cached_block(block(0), "key", lambda: block(1))
    (path,) = cache.iterdir()
    np.savez(path, inputs=block(1, (2, 1, 8, 8)))
    np.testing.assert_array_equal(cached_block(block(0), "key", lambda: block(2)), block(2))


def test_what_fails_leaves_nothing_behind(cache):
    def fails():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached_block(block(0), "key", fails)
    assert not cache.exists()


def test_the_oldest_files_go_when_room_is_short(cache, monkeypatch):
    cached_block(block(0), "key", lambda: block(1))
    size = next(cache.iterdir()).stat().st_size
    monkeypatch.setattr(attacked, "LIMIT", int(4.5 * size))
    for number in range(1, 4):
        cached_block(block(0), number, lambda number=number: block(number))
    cached_block(block(0), "key", lambda: pytest.fail("the first block is gone already"))
    for number in range(4, 12):
        cached_block(block(0), number, lambda number=number: block(number))
        assert sum(path.stat().st_size for path in cache.iterdir()) <= attacked.LIMIT
    cached_block(block(0), 11, lambda: pytest.fail("the newest block is gone"))
    made = []
    cached_block(block(0), 1, lambda: made.append(1) or block(1))
    assert made


def test_a_folder_that_cannot_be_written_is_named(cache):
    cache.parent.mkdir(parents=True)
    cache.write_text("a file where the folder should be")
    with pytest.raises(DataError, match="IDC_HOME"):
        cached_block(block(0), "key", lambda: block(1))
