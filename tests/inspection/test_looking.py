"""What a unit does in each class: record by record, place by place, and where only the hypothesis has places."""

import numpy as np

from idc_core.inspection.single_records import RecordBehaviour


def groups(activations, behaviour, present):
    found = RecordBehaviour(np.array(activations, np.float32), np.array(behaviour, np.float32), np.array(present, bool))
    return [own.tolist() for own in found.by_class(3)]


def test_a_class_and_a_value_a_record():
    assert groups([1, 2, 4], [0, 2, 0], np.ones((3, 5))) == [[1, 4], [], [2]]


def test_a_class_a_record_and_a_value_a_place():
    assert groups([[1, 3], [5, 7]], [1, 0], np.ones((2, 2))) == [[6], [2], []]


def test_both_at_places_without_padding():
    assert groups([[1, 3], [5, 7]], [[1, 0], [1, 2]], [[1, 1], [1, 0]]) == [[3], [1, 5], []]


def test_a_class_a_place_and_a_value_a_record_is_told_by_where_the_class_occurs():
    assert groups([1, 2], [[1, 0], [1, 1]], np.ones((2, 2))) == [[1], [1, 2], []]
