"""The token through which a running handler learns that it should stop.

Stopping is cooperative: a token is asked for, never enforced. A token is made for every run, so making one is cheap:
its event is made by the first wait, and its run budget is noticed by whoever looks, without a timer.
"""

import threading
from collections.abc import Callable
from enum import StrEnum

from jobq.clock import Clock
from jobq.errors import JobCancelled
from jobq.log import get_logger
from jobq.model.duration import Duration, to_seconds

logger = get_logger(__name__)


class CancelReason(StrEnum):
    """Why a handler is asked to stop."""

    USER = "user"
    SHUTDOWN = "shutdown"
    TIMEOUT = "timeout"
    LEASE_LOST = "lease_lost"


class CancelToken:
    """Asks one run of a handler to stop; safe to use from any thread.

    ``time_limit`` is the run budget in seconds, counted on the monotonic clock from the making of the token. When it is
    over, the next look at the token finds it requested with the reason TIMEOUT; the runner looks too, so callbacks
    are called soon after.
    """

    __slots__ = ("_callbacks", "_clock", "_deadline", "_event", "_lock", "_reason", "started")

    def __init__(self, clock: Clock, *, time_limit: float | None = None) -> None:
        #: The monotonic time at which the token was made.
        self.started = started = clock.monotonic()
        self._clock = clock
        self._deadline = None if time_limit is None else started + time_limit
        self._reason: CancelReason | None = None
        self._event: threading.Event | None = None
        self._callbacks: list[Callable[[], object]] | None = None
        # Guards the three above; never held while anything outside this class is called.
        self._lock = threading.Lock()

    @property
    def requested(self) -> bool:
        """Whether the handler should stop."""
        return self.reason is not None

    @property
    def reason(self) -> CancelReason | None:
        """Why it should stop; None while it may go on."""
        if self._reason is None and self._deadline is not None and self._clock.monotonic() >= self._deadline:
            self._settle_on(CancelReason.TIMEOUT)
        return self._reason

    @property
    def time_left(self) -> float | None:
        """The rest of the run budget in seconds, 0 when it is over; None where there is none."""
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - self._clock.monotonic())

    def raise_if_requested(self) -> None:
        """Raise :class:`JobCancelled` when the handler should stop; do nothing otherwise."""
        reason = self.reason
        if reason is not None:
            raise JobCancelled(f"asked to stop: {reason}")

    def wait(self, seconds: Duration) -> bool:
        """Pause the handler for so long, and return whether it should stop.

        It returns early, with True, as soon as a stop is requested or the run budget is over.
        """
        limit, left = to_seconds(seconds, argument="seconds"), self.time_left
        if self.requested:
            return True
        over = left is not None and left <= limit
        self._clock.wait(self._waited_event(), left if over and left is not None else limit)
        if over:
            # Said rather than looked up: a rest lost in rounding must not send the handler around once more.
            self._settle_on(CancelReason.TIMEOUT)
        return self.requested

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Call back, on a thread of its own, when a stop is requested; at once if it already was.

        Each callback is called once. One that raises is logged and skipped. Where no thread can be started, as while
        the interpreter exits, it is called on the thread that requested the stop.
        """
        requested = self.requested
        with self._lock:
            requested = requested or self._reason is not None
            if not requested:
                self._callbacks = [*(self._callbacks or ()), callback]
        if requested:
            _start(callback)

    def request(self, reason: CancelReason) -> bool:
        """Ask the handler to stop; return whether ``reason`` is now the token's reason because of this call.

        The first reason stands, also a run budget that was over by then; but LEASE_LOST replaces any other, because
        whatever the handler does from then on is void.
        """
        if reason is not CancelReason.LEASE_LOST and self.requested:
            return False
        return self._settle_on(reason)

    def _settle_on(self, reason: CancelReason) -> bool:
        with self._lock:
            if self._reason is reason or (self._reason is not None and reason is not CancelReason.LEASE_LOST):
                return False
            self._reason = reason
            event, callbacks, self._callbacks = self._event, self._callbacks, None
        if event is not None:
            event.set()
        for callback in callbacks or ():
            _start(callback)
        return True

    def _waited_event(self) -> threading.Event:
        with self._lock:
            if self._event is None:
                self._event = threading.Event()
                if self._reason is not None:
                    self._event.set()
            return self._event


def _start(callback: Callable[[], object]) -> None:
    try:
        threading.Thread(target=_call, args=(callback,), name="jobq-on-cancel", daemon=True).start()
    except RuntimeError:  # no thread can be started: the interpreter exits, or the system has none left
        _call(callback)


def _call(callback: Callable[[], object]) -> None:
    try:
        callback()
    except BaseException as error:  # a callback has no caller that could catch even a SystemExit
        name = getattr(callback, "__qualname__", type(callback).__name__)
        logger.error("jobq.callback.failed", callback=name, error=type(error).__name__)
