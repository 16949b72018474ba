"""Cancel tokens."""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from jobq.cancellation import CancelReason, CancelToken
from jobq.clock import SystemClock
from jobq.errors import ArgumentError, JobCancelled
from jobq.testing import FakeClock

PATIENCE = 10.0


@pytest.fixture
def clock() -> FakeClock:
    """A clock that stands still."""
    return FakeClock()


def test_a_new_token_asks_for_nothing(clock: FakeClock) -> None:
    """Until somebody asks, the handler may go on."""
    token = CancelToken(clock)

    token.raise_if_requested()
    assert (token.requested, token.reason, token.time_left) == (False, None, None)
    assert token.started == clock.monotonic()


@pytest.mark.parametrize("reason", CancelReason)
def test_request_is_seen(clock: FakeClock, reason: CancelReason) -> None:
    """A request shows at once in each of the ways to look."""
    token = CancelToken(clock)

    assert token.request(reason)
    assert token.requested
    assert token.reason is reason
    with pytest.raises(JobCancelled, match=reason.value):
        token.raise_if_requested()


def test_first_reason_stands(clock: FakeClock) -> None:
    """A second request changes nothing and says so."""
    token = CancelToken(clock)
    token.request(CancelReason.USER)

    assert not token.request(CancelReason.SHUTDOWN)
    assert not token.request(CancelReason.USER)
    assert token.reason is CancelReason.USER


def test_lease_lost_replaces_any_other_reason(clock: FakeClock) -> None:
    """A lost lease is the last word, whatever was asked before, and nothing replaces it."""
    token = CancelToken(clock)
    token.request(CancelReason.USER)

    assert token.request(CancelReason.LEASE_LOST)
    assert not token.request(CancelReason.LEASE_LOST)
    assert not token.request(CancelReason.USER)
    assert token.reason is CancelReason.LEASE_LOST


def test_time_limit_is_noticed_by_looking(clock: FakeClock) -> None:
    """The token turns to TIMEOUT when its budget is over, without anybody asking."""
    token = CancelToken(clock, time_limit=10)

    clock.advance("9.999s")
    assert not token.requested
    clock.advance("1ms")
    assert token.requested
    assert token.reason is CancelReason.TIMEOUT


def test_time_limit_ignores_the_wall_clock(clock: FakeClock) -> None:
    """Setting the wall clock neither spends nor refunds the budget."""
    token = CancelToken(clock, time_limit=10)

    clock.jump("1h")

    assert not token.requested
    assert token.time_left == 10


def test_time_left_counts_down_to_zero(clock: FakeClock) -> None:
    """The rest of the budget is never negative."""
    token = CancelToken(clock, time_limit=10)

    clock.advance(4)
    assert token.time_left == 6
    clock.advance(60)
    assert token.time_left == 0


def test_request_after_the_time_limit_comes_too_late(clock: FakeClock) -> None:
    """A budget that was over before a cancel was asked is the first reason, noticed or not."""
    token = CancelToken(clock, time_limit=10)
    clock.advance(11)

    assert not token.request(CancelReason.USER)
    assert token.reason is CancelReason.TIMEOUT


def test_wait_lets_its_time_pass(clock: FakeClock) -> None:
    """A wait takes any duration and tells that nobody asked."""
    assert not CancelToken(clock).wait("1m")
    assert clock.now() == datetime(2024, 1, 1, 0, 1, tzinfo=UTC)


def test_wait_returns_at_once_when_already_requested(clock: FakeClock) -> None:
    """No time passes in a wait after the request."""
    token = CancelToken(clock)
    token.request(CancelReason.USER)

    assert token.wait(60)
    assert clock.now() == datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("limit", [5.0, 0.3, 1e-7, 1 / 3])
def test_wait_ends_at_the_time_limit(clock: FakeClock, limit: float) -> None:
    """A wait beyond the budget ends with it, to the microsecond, and one is enough."""
    token = CancelToken(clock, time_limit=limit)

    assert token.wait("1h")
    assert token.reason is CancelReason.TIMEOUT
    assert clock.now() - datetime(2024, 1, 1, tzinfo=UTC) <= timedelta(seconds=limit, microseconds=1)


def test_wait_refuses_what_is_no_duration(clock: FakeClock) -> None:
    """A malformed duration is an ArgumentError."""
    with pytest.raises(ArgumentError):
        CancelToken(clock).wait("soon")


def test_wait_is_woken_by_a_request_from_another_thread() -> None:
    """A real wait of an hour ends when somebody asks."""
    token = CancelToken(SystemClock())
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(token.wait(3_600)), daemon=True)
    waiter.start()

    token.request(CancelReason.SHUTDOWN)
    waiter.join(PATIENCE)

    assert answers == [True]


class _LockThatLosesTheRace:
    """A lock at which a request comes in first, once."""

    def __init__(self, token: CancelToken) -> None:
        self._token = token
        self._lock = threading.Lock()
        self._armed = True

    def __enter__(self) -> None:
        if self._armed:
            self._armed = False
            assert self._token.request(CancelReason.USER)
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_request_between_the_look_and_the_wait_is_not_missed(clock: FakeClock) -> None:
    """A request that comes in after a wait looked and before it waits ends it without a pause."""
    token = CancelToken(clock)
    token._lock = _LockThatLosesTheRace(token)  # type: ignore[assignment]

    assert token.wait("1h")
    assert clock.now() == datetime(2024, 1, 1, tzinfo=UTC)


def test_request_between_the_look_and_on_cancel_is_not_missed(clock: FakeClock) -> None:
    """A request that comes in while a callback is added calls it back once."""
    token = CancelToken(clock)
    callback, wait = _callback_thread(token)
    token._lock = _LockThatLosesTheRace(token)  # type: ignore[assignment]

    token.on_cancel(callback)

    wait()


def test_request_racing_with_wait_and_on_cancel() -> None:
    """Threads that wait and add callbacks while others ask all come to an end, each callback called once."""
    clock = SystemClock()
    for _ in range(200):
        token = CancelToken(clock)
        barrier = threading.Barrier(3)
        calls: list[int] = []
        called = threading.Event()

        def callback(calls: list[int] = calls, called: threading.Event = called) -> None:
            calls.append(1)
            called.set()

        def run(step: Callable[[], object], barrier: threading.Barrier = barrier) -> None:
            barrier.wait(PATIENCE)
            step()

        steps: list[Callable[[], object]] = [
            lambda token=token: token.wait(3_600),  # type: ignore[misc]
            lambda token=token, callback=callback: token.on_cancel(callback),  # type: ignore[misc]
            lambda token=token: token.request(CancelReason.USER),  # type: ignore[misc]
        ]
        threads = [threading.Thread(target=run, args=(step,), daemon=True) for step in steps]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)

        assert not any(thread.is_alive() for thread in threads)
        assert called.wait(PATIENCE)
        assert calls == [1]


def test_only_one_of_many_requests_wins() -> None:
    """Of threads that ask at the same time one is told that its reason stands."""
    token = CancelToken(SystemClock())
    barrier = threading.Barrier(8)
    answers: list[bool] = []

    def ask() -> None:
        barrier.wait(PATIENCE)
        answers.append(token.request(CancelReason.USER))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert sorted(answers) == [False] * 7 + [True]


def _callback_thread(token: CancelToken) -> tuple[Callable[[], None], Callable[[], threading.Thread]]:
    """Return a callback for the token and a function that waits for the thread it is called on."""
    called = threading.Event()
    threads: list[threading.Thread] = []

    def callback() -> None:
        threads.append(threading.current_thread())
        called.set()

    def wait() -> threading.Thread:
        assert called.wait(PATIENCE)
        threads[0].join(PATIENCE)
        assert len(threads) == 1
        return threads[0]

    return callback, wait


def test_on_cancel_calls_back_on_a_daemon_thread_of_its_own(clock: FakeClock) -> None:
    """The callback neither holds up who asks nor keeps the interpreter alive."""
    token = CancelToken(clock)
    callback, wait = _callback_thread(token)
    token.on_cancel(callback)

    token.request(CancelReason.USER)

    assert wait() is not threading.current_thread()
    assert wait().daemon


def test_on_cancel_after_the_request_calls_back_at_once(clock: FakeClock) -> None:
    """A late callback is not forgotten."""
    token = CancelToken(clock)
    token.request(CancelReason.USER)
    callback, wait = _callback_thread(token)

    token.on_cancel(callback)

    wait()


def test_on_cancel_is_called_at_the_time_limit(clock: FakeClock) -> None:
    """Whoever notices that the budget is over sets off the callbacks."""
    token = CancelToken(clock, time_limit=1)
    callback, wait = _callback_thread(token)
    token.on_cancel(callback)
    clock.advance(1)

    assert token.requested

    wait()


def test_on_cancel_is_not_called_again_when_the_lease_is_lost(clock: FakeClock) -> None:
    """The change of reason is no second request."""
    token = CancelToken(clock)
    callback, wait = _callback_thread(token)
    token.on_cancel(callback)

    token.request(CancelReason.USER)
    wait()
    token.request(CancelReason.LEASE_LOST)

    wait()


@pytest.mark.parametrize("error", [RuntimeError, JobCancelled, SystemExit])
def test_on_cancel_callback_that_raises_is_logged_and_skipped(
    clock: FakeClock, caplog: pytest.LogCaptureFixture, error: type[BaseException]
) -> None:
    """The other callbacks are called, and the log names the type but not the text of what was raised."""
    token = CancelToken(clock)
    callback, wait = _callback_thread(token)
    raised = threading.Event()

    def broken() -> None:
        threading.current_thread().name = "broken"
        raised.set()
        raise error("hunter2")

    token.on_cancel(broken)
    token.on_cancel(callback)
    with caplog.at_level(logging.ERROR, logger="jobq"):
        token.request(CancelReason.USER)
        wait()
        assert raised.wait(PATIENCE)
        for thread in threading.enumerate():
            if thread.name == "broken":
                thread.join(PATIENCE)

    assert "jobq.callback.failed" in caplog.text
    assert error.__name__ in caplog.text
    assert "hunter2" not in caplog.text
    caplog.clear()


def test_on_cancel_calls_inline_where_no_thread_can_be_started(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the interpreter exits the callback runs on the thread that asks."""
    token = CancelToken(clock)
    called_on: list[threading.Thread] = []
    token.on_cancel(lambda: called_on.append(threading.current_thread()))

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    # The interpreter's exit cannot be injected.
    monkeypatch.setattr(threading.Thread, "start", refuse)
    token.request(CancelReason.SHUTDOWN)

    assert called_on == [threading.current_thread()]


def test_a_token_nobody_waits_on_makes_no_event(clock: FakeClock) -> None:
    """The costly part of a token is made by the first wait only."""
    token = CancelToken(clock)
    token.request(CancelReason.USER)

    assert token.wait(1)
    assert token._event is None
