"""The account of blocks and merges: every block counts once, in its order, whoever dies."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from idc_core.work.tree import _FAN_IN, Node, Tree


def merged(tree, node):
    return "(" + "".join(tree.states(node)) + ")"


def in_order(blocks):
    """What the tree gives when nothing goes wrong."""
    tree = Tree(blocks)
    while (node := tree.take(0, {0})) is not None:
        tree.done(node, merged(tree, node) if node.level else f"{node.index},")
    return tree.found[tree.top]


def test_the_tree_of_seventy_blocks_has_three_levels():
    assert Tree(70).sizes == [70, 9, 2, 1]
    assert in_order(_FAN_IN + 1) == "((0,1,2,3,4,5,6,7,)(8,))"
    assert in_order(1) == "0,"


@given(st.integers(1, 200), st.integers(0, 10_000))
def test_deaths_and_losses_change_nothing(blocks, seed):
    draw, tree = random.Random(seed), Tree(blocks)
    running, trouble = [], 30
    while not tree.finished or (trouble and draw.random() < 0.5):
        if tree.finished:
            trouble -= 1
            tree.redo(tree.top)
            continue
        node = tree.take(0, {0}) if len(running) < 3 else None
        if node is not None:
            running.append((node, tree.states(node) if node.level else None))
            continue
        node, states = running.pop(draw.randrange(len(running)))
        fate = draw.random() if trouble else 1.0
        trouble -= fate < 0.4
        if fate < 0.2:
            tree.put_back(node)
        elif fate < 0.4 and node.level:
            tree.redo(node)
        else:
            assert states is None or states == tree.states(node)
            tree.done(node, merged(tree, node) if node.level else f"{node.index},")
    assert tree.found == {tree.top: in_order(blocks)}


def test_a_block_waits_for_the_worker_that_had_it_unless_that_has_died():
    tree = Tree(3, {0: 7, 1: 8})
    assert tree.take(8, {7, 8}) == Node(0, 1)
    assert tree.take(8, {7, 8}) == Node(0, 2)
    assert tree.take(8, {7, 8}) is None
    assert tree.take(8, {8, 9}) == Node(0, 0)


@given(st.integers(1, 60), st.integers(1, 6), st.integers(0, 1_000))
def test_a_worker_that_joins_has_its_share_where_blocks_may_move(blocks, workers, seed):
    draw = random.Random(seed)
    homes = {index: draw.randrange(workers) for index in range(blocks)}
    alive, joins = {*homes.values(), workers}, workers
    assert Tree(blocks, homes).take(joins, alive) is None
    tree, taken = Tree(blocks, homes, moving=True), []
    while (node := tree.take(joins, alive)) is not None:
        taken.append(node.index)
    share, most = max(1, blocks // len(alive)), max(Counter(homes.values()).values())
    assert len(taken) <= share
    assert len(taken) == share or most == 1
    left = Counter(home for index, home in homes.items() if index not in taken)
    assert set(left) == set(homes.values())  # nobody is left without a block
    for worker in left:
        while (node := tree.take(worker, alive)) is not None:
            taken.append(node.index)
    assert sorted(taken) == list(range(blocks))
