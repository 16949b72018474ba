"""Bells and what one thread does alone, under interrupts at every moment."""

import threading

import pytest

from jobq.threads import Alone, Bell
from tests.conftest import PATIENCE
from tests.interrupts import strikes


def test_bell_rung_before_the_wait_ends_it_once() -> None:
    """A ring is not lost, two are one, and the wait takes it away."""
    bell = Bell()
    assert not bell.wait(0)
    bell.ring()
    bell.ring()

    assert [bell.wait(PATIENCE), bell.wait(0)] == [True, False]


def test_bell_cleared_rings_no_more() -> None:
    """What nobody waited for can be forgotten."""
    bell = Bell()
    bell.ring()
    bell.clear()
    bell.clear()

    assert not bell.wait(0)


def test_bell_wakes_another_thread() -> None:
    """A thread that waits without a limit goes on."""
    bell = Bell()
    thread = threading.Thread(target=bell.wait, daemon=True)
    thread.start()
    bell.ring()
    thread.join(PATIENCE)

    assert not thread.is_alive()


def test_bell_interrupted_while_it_is_rung_can_be_rung_again() -> None:
    """No moment of the ringing leaves it broken."""
    bell = Bell()
    for _ in strikes(bell.ring):
        bell.clear()
        bell.ring()
        assert bell.wait(0)


def test_alone_sends_others_away_meanwhile() -> None:
    """A second call does nothing while the first is at work, on its own thread or another."""
    alone = Alone()
    answers: list[bool] = []

    def work() -> None:
        answers.append(alone.run(lambda: None))
        other = threading.Thread(target=lambda: answers.append(alone.run(lambda: None)))
        other.start()
        other.join(PATIENCE)

    assert alone.run(work)
    assert answers == [False, False]
    assert alone.run(lambda: None)


def test_alone_is_free_after_an_error() -> None:
    """What the work raises comes out, and the next one may work."""
    alone = Alone()

    def fail() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        alone.run(fail)
    assert not alone.busy


def test_alone_is_free_after_an_interrupt_at_any_moment() -> None:
    """Ctrl-C never leaves it taken."""
    alone, struck = Alone(), 0
    for _ in strikes(lambda: alone.run(lambda: None)):
        struck += 1
        assert not alone.busy
        assert alone.run(lambda: None)

    assert struck >= 3


def test_alone_after_a_fork_inside_is_the_childs() -> None:
    """The end of the parent's work, which the child inherits half way, takes nothing from the child."""
    alone = Alone()
    inner: list[bool] = []

    def fork() -> None:
        alone.after_fork()
        inner.append(alone.run(lambda: inner.append(alone.busy)))

    alone.run(fork)
    assert inner == [True, True]
    assert not alone.busy
