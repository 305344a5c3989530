"""Fair order: sessions in turn, and a place that long work leaves to the others."""

import threading

from studio.jobs.turns import Turns


def done_by(turns, asked):
    """Have work done while the only free place is held, and return in which order it was."""
    held, order = threading.Event(), []
    begun = threading.Event()
    first = turns.submit("first", False, lambda place: (begun.set(), held.wait(20)))
    begun.wait(20)
    found = [turns.submit(*one, lambda place, one=one: order.append(one)) for one in asked]
    held.set()
    for one in [first, *found]:
        one.result(20)
    return order


def test_sessions_are_served_in_turn():
    asked = [("a", False)] * 3 + [("b", False)] * 2 + [("c", False)]
    assert "".join(session for session, _ in done_by(Turns(["one"], 1), asked)) == "abcaba"


def test_long_work_leaves_a_place_and_quick_work_passes_it():
    turns = Turns(["one", "two"], 1)
    held, begun, running = threading.Event(), threading.Event(), []
    training = turns.submit("a", True, lambda place: (begun.set(), held.wait(20)))
    begun.wait(20)
    later = turns.submit("a", True, lambda place: running.append("second training"))
    assert turns.submit("a", False, lambda place: "quick").result(20) == "quick"
    assert not running, "two trainings took both places"
    assert turns.held("a") == 2
    held.set()
    training.result(20)
    later.result(20)
    assert turns.held("a") == 0


def test_work_that_was_given_up_is_passed_over():
    turns = Turns(["one"], 1)
    held, begun = threading.Event(), threading.Event()
    turns.submit("a", True, lambda place: (begun.set(), held.wait(20)))
    begun.wait(20)
    gone, here = (turns.submit("a", True, lambda place, number=number: number) for number in range(2))
    assert gone.cancel()
    held.set()
    assert here.result(20) == 1


def test_a_mistake_frees_its_place():
    turns = Turns(["one"], 1)
    wrong = turns.submit("a", True, lambda place: 1 / 0)
    assert isinstance(wrong.exception(20), ZeroDivisionError)
    assert turns.submit("a", True, lambda place: place).result(20) == "one"


def test_a_place_that_is_not_ready_is_used_where_the_others_do_not_suffice():
    held, begun, patience = threading.Event(), threading.Event(), [60.0]
    turns = Turns(["one", "two"], 1, {"one"}.__contains__, lambda: patience[0])
    first = turns.submit("a", False, lambda place: (begun.set(), held.wait(20), place))
    begun.wait(20)
    later = turns.submit("a", False, lambda place: place)
    held.set()
    assert first.result(20)[-1] == "one"
    assert later.result(20) == "one", "it waited for a place that is ready"
    patience[0] = 0.01
    held.clear()
    begun.clear()
    first = turns.submit("a", False, lambda place: (begun.set(), held.wait(20), place))
    begun.wait(20)
    other = turns.submit("a", False, lambda place: place).result(20)
    held.set()
    assert {other, first.result(20)[-1]} == {"one", "two"}


def test_work_does_not_wait_for_what_takes_long():
    held, begun = threading.Event(), threading.Event()
    turns = Turns(["one", "two"], 1, {"two"}.__contains__, lambda: 60.0)
    training = turns.submit("a", True, lambda place: (begun.set(), held.wait(60)))
    begun.wait(20)
    assert turns.submit("b", False, lambda place: place).result(20) == "one"
    held.set()
    training.result(20)
