"""The fair lock: order, riders, withdrawal."""

import threading
from typing import Any

import apsw
import pytest

from jobq.store.sqlite.turn import Overdue, State, Ticket, Turn
from tests.store.sqlite.enginekit import join, start, until


def _nothing(connection: apsw.Connection, changes: list[Any]) -> None:
    """Do nothing."""


def _ticket(*, sync: bool = False, alone: bool = False, seconds: float = 20) -> Ticket:
    return Ticket(None if alone else _nothing, sync=sync, patience=seconds)


def _queue(turn: Turn, *tickets: Ticket) -> list[tuple[int, str]]:
    """Let a thread wait for each ticket, in this order; they note who leads and who was served."""
    noted: list[tuple[int, str]] = []

    def wait(ticket: Ticket) -> None:
        try:
            noted.append((tickets.index(ticket), "leads" if turn.enter(ticket) else "served"))
        except Overdue:
            noted.append((tickets.index(ticket), "overdue"))
        finally:
            turn.leave(ticket)

    for number, ticket in enumerate(tickets):
        start(lambda ticket=ticket: wait(ticket))  # type: ignore[misc]
        until(lambda number=number: turn.waiting == number + 1)  # type: ignore[misc]
    return noted


@pytest.fixture
def turn() -> Turn:
    """A lock that nobody holds."""
    return Turn()


@pytest.fixture
def holder(turn: Turn) -> Ticket:
    """The ticket that holds it."""
    ticket = _ticket()
    assert turn.enter(ticket)
    return ticket


def test_free_lock_is_taken_at_once_and_again(turn: Turn) -> None:
    """Nobody waits for a free lock, and leaving it frees it."""
    for _ in range(2):
        ticket = _ticket()
        assert turn.enter(ticket)
        turn.leave(ticket)


def test_waiters_lead_in_the_order_of_their_arrival(turn: Turn, holder: Ticket) -> None:
    """The lock is handed to the thread that has waited longest."""
    noted = _queue(turn, *[_ticket() for _ in range(6)])

    turn.leave(holder)
    until(lambda: len(noted) == 6)

    assert noted == [(number, "leads") for number in range(6)]


def test_riders_board_in_order(turn: Turn, holder: Ticket) -> None:
    """The holder takes riders from the front and wakes each with its answer."""
    first, second = _ticket(), _ticket()
    noted = _queue(turn, first, second)
    riders: list[Ticket] = []

    assert [turn.board(riders, synced=False) for _ in range(3)] == [first, second, None]
    assert riders == [first, second]
    turn.answer(second)
    until(lambda: noted == [(1, "served")])
    turn.answer(first)
    until(lambda: noted == [(1, "served"), (0, "served")])
    turn.leave(holder)


def test_sync_rider_never_boards_an_unsynced_group(turn: Turn, holder: Ticket) -> None:
    """A rider that needs a sync waits for its own group, and so does everybody behind it."""
    noted = _queue(turn, _ticket(sync=True), _ticket())
    riders: list[Ticket] = []

    assert turn.needs_sync(10)
    assert turn.board(riders, synced=False) is None
    assert turn.board(riders, synced=True) is not None
    turn.answer(riders[0])
    turn.leave(holder)
    until(lambda: sorted(noted) == [(0, "served"), (1, "leads")])


def test_who_wants_the_lock_alone_never_rides(turn: Turn, holder: Ticket) -> None:
    """A ticket without an operation gets the lock and nothing less."""
    noted = _queue(turn, _ticket(alone=True))

    assert turn.board([], synced=True) is None
    turn.leave(holder)
    until(lambda: noted == [(0, "leads")])


def test_put_back_riders_are_the_next_in_their_order(turn: Turn, holder: Ticket) -> None:
    """Riders that were not served wait again in front of those who came later."""
    noted = _queue(turn, *[_ticket() for _ in range(3)])
    riders: list[Ticket] = []
    turn.board(riders, synced=False)
    turn.board(riders, synced=False)

    turn.put_back(riders)
    turn.leave(holder)
    until(lambda: len(noted) == 3)

    assert noted == [(0, "leads"), (1, "leads"), (2, "leads")]


def test_waiter_gives_up_at_its_deadline(turn: Turn, holder: Ticket) -> None:
    """A thread whose time is over leaves the queue, and the lock never goes to it."""
    ticket = _ticket(seconds=0.01)
    with pytest.raises(Overdue):
        turn.enter(ticket)

    assert ticket.state is State.DONE
    assert turn.waiting == 0
    turn.leave(ticket)
    turn.leave(holder)
    assert turn.enter(_ticket())


def test_withdrawn_waiter_is_passed_over(turn: Turn, holder: Ticket) -> None:
    """A waiter that leaves before its turn does not receive the lock."""
    withdrawn, patient = _ticket(), _ticket()
    noted = _queue(turn, withdrawn, patient)

    turn.leave(withdrawn)
    turn.leave(holder)
    until(lambda: noted == [(1, "leads")])
    withdrawn.wake.release()


def test_leaving_twice_is_leaving_once(turn: Turn, holder: Ticket) -> None:
    """The second call does not take the lock from who has it now."""
    turn.leave(holder)
    successor = _ticket()
    assert turn.enter(successor)

    turn.leave(holder)

    with pytest.raises(Overdue):
        turn.enter(_ticket(seconds=0))


def test_rider_that_leaves_waits_for_its_answer(turn: Turn, holder: Ticket) -> None:
    """While the holder works on a ticket, its thread may not go on as if nothing happened."""
    ticket = _ticket()
    woken = threading.Event()

    def ride() -> None:
        turn.enter(ticket)
        woken.set()
        turn.leave(ticket)

    thread = start(ride)
    until(lambda: turn.waiting == 1)
    turn.board([], synced=False)
    ticket.wake.release()  # brings the thread out of its sleep, as an interrupt does
    assert woken.wait(10)
    assert thread.is_alive()

    turn.answer(ticket)
    join(thread)
