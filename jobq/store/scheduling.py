"""What jobq needs of a database for its schedules; the part of :mod:`jobq.store.base` that is about them."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from jobq.model.scheduled import Dispatched, Rule, ScheduleInfo


class ScheduleOutlook(NamedTuple):
    """What a tick would find, seen without the write lock."""

    #: The schedules that a tick has something to do for.
    names: tuple[str, ...]
    #: The next slot of the others; None where there is none.
    next_due: datetime | None


class Remark(StrEnum):
    """What a tick has to say of a schedule besides what it dispatched."""

    FAILED = "failed"  #: it cannot fire; said once for each different error
    MENDED = "mended"  #: it can again
    COLLAPSED = "collapsed"  #: slots were missed that get no run of their own
    SKIPPED = "skipped"  #: slots passed without a run: they were missed, or had fired before
    RECOMPUTED = "recomputed"  #: its next run was too far ahead, as after a clock that came back


class Remarked(NamedTuple):
    """One remark."""

    remark: Remark
    schedule: str
    #: The error, the newest slot or the next run, in words; never anything of a payload.
    detail: str


class Ticked(NamedTuple):
    """What a tick did."""

    dispatched: tuple[Dispatched, ...] = ()
    remarks: tuple[Remarked, ...] = ()


#: How many attempts a job of a kind gets whose entry names no number; None leaves it to the kind's row.
Attempts = Callable[[str], int | None]


class ScheduleStore(Protocol):
    """The verbs about schedules. What is common to all verbs is said in :mod:`jobq.store.base`."""

    def put_schedules(self, rules: Sequence[Rule], *, sweep: Collection[str] = ()) -> list[ScheduleInfo]:
        """Write each rule under its name, all of them or none, and return them as they are stored.

        A new schedule has its first slot after now as its next run, and now as its anchor unless the rule names one.
        One that exists keeps its next run while its timing is the same; else that is the first slot after now, and
        the anchor stays. A pause stays. A rule that changes nothing writes nothing. Schedules whose rules came from a
        module in ``sweep``, and that are not among ``rules``, are removed.

        Raises:
            ArgumentError: a rule has no slot after now that a calendar can express.
        """

    def remove_schedule(self, name: str) -> bool:
        """Remove a schedule; False when there was none. Its jobs stay, and so do the guards of its slots."""

    def pause_schedule(self, name: str, *, who: str | None, why: str | None) -> bool:
        """Let no slot fire until it is resumed; False when it was paused already.

        Raises:
            ScheduleNotFound: no such schedule.
        """

    def resume_schedule(self, name: str) -> bool:
        """Let its slots fire again, those that were missed by its catch-up rule; False when it was not paused.

        Raises:
            ScheduleNotFound: no such schedule.
        """

    def schedules(self, names: Sequence[str] | None = None) -> list[ScheduleInfo]:
        """Return every schedule by name, or those named that exist."""

    def look_schedules(self) -> ScheduleOutlook:
        """Say, without the write lock, whether a tick would do anything, and when the next slot is due."""

    def tick_schedules(self, names: Sequence[str], *, attempts: Attempts) -> Ticked:
        """Enqueue the due slots of these schedules and move their next runs on, in one transaction.

        Each is looked at anew under the lock: one that another ticker has dealt with, was paused or removed makes
        nothing. A slot that was enqueued once is not enqueued again, also when its job has been pruned. A schedule
        that cannot fire is marked with its error, keeps its next run and does not touch the others.
        """

    def run_schedule(self, name: str, *, attempts: Attempts, actor: str | None = None) -> list[Dispatched]:
        """Enqueue the entries of a schedule now, as no slot; its next run, its pause and its guards do not matter.

        ``actor`` stands for those of the entries.

        Raises:
            ScheduleNotFound: no such schedule.
            ArgumentError: the row was broken by hand.
            RetiredKind, DedupeConflict: as an enqueue of the entry.
        """

    def lead(self, name: str, holder: str, *, length: float) -> bool:
        """Take or renew the lead under a name for so many seconds; False when somebody else has it.

        A lead that ends later than its own length from now counts as over: a clock was set back.
        """

    def resign(self, name: str, holder: str) -> None:
        """Give the lead up, if this holder has it."""
