"""The herald: tells listeners what the other services did, which have no time to wait for a listener."""

import threading

from jobq.bus import Bus
from jobq.clock import Clock
from jobq.model.events import Event
from jobq.service import Service
from jobq.trouble import Trouble

_ASLEEP = 60.0


class Herald(Service):
    """Delivers on its own thread what was posted to it; the heartbeat and the overseer never run a listener."""

    name = "herald"

    def __init__(self, bus: Bus, *, clock: Clock, trouble: Trouble) -> None:
        super().__init__(clock=clock, trouble=trouble)
        self._bus = bus

    def tell(self, event: Event) -> None:
        """Have an event told soon, and return at once."""
        self._bus.post(event)
        self.call()

    def call(self) -> None:
        """Have everything told soon that was not yet; watchers are told here and now.

        Where the thread does not run, as in a drain of a deterministic clock, listeners are told here and now too.
        """
        self._bus.wake()
        if not self.alive or self.thread is threading.current_thread():
            self._bus.deliver()
        elif self._bus.behind:
            self.poke()

    def tick(self) -> None:
        """Tell what waits."""
        self._bus.deliver()

    def pause(self) -> float:
        """Return the seconds after which it looks by itself."""
        return _ASLEEP

    def end(self) -> None:
        """Tell what the last steps of a stop brought."""
        self._bus.deliver()
