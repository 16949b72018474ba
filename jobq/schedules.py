"""Schedules: rules that are stored in the database and make jobs, once for each slot."""

from collections.abc import Iterable
from datetime import datetime
from typing import Unpack

import attrs

from jobq.arguments import check_int, check_text, check_word
from jobq.core import Core
from jobq.declaring import ScheduleOptions, declare_as
from jobq.errors import ScheduleNotFound
from jobq.log import get_logger
from jobq.model.events import ScheduleFired, ScheduleStateChanged
from jobq.model.job import Actor
from jobq.model.scheduled import Dispatched, ScheduleInfo
from jobq.rules import rule_of, store_all, store_fitting, store_one, version
from jobq.store.scheduling import Remark, Remarked, ScheduleOutlook

logger = get_logger(__name__)

# Written out here, because inside the class ``list`` is a verb.
Infos = list[ScheduleInfo]
Dispatches = list[Dispatched]
Instants = list[datetime]

#: Schedules that one transaction of a tick deals with; a due one behind them waits for the next, a moment later.
CHUNK = 500


class Schedules:
    """The schedules of a job queue, as ``jobs.schedules``."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def add(self, name: str, **options: Unpack[ScheduleOptions]) -> ScheduleInfo:
        """Store a schedule under its name and return it; :class:`jobq.declaring.ScheduleOptions` lists the keywords.

        A program may do this at each start: what says nothing new changes nothing. New timing takes effect with its
        first slot after now; an interval keeps its anchor, so its phase, unless another is given. A pause stays.

        Raises:
            CronError: the expression is malformed or can never fire.
            ArgumentError: another option is malformed or out of its range.
            PayloadError: a payload is no JSON, or does not fit its kind.
            UnknownKind: nobody registered the payload's class or the handler here.
            RetiredKind: a kind is retired.
        """
        store_fitting(self._core)
        rule = rule_of(self._core, declare_as("add", name, options))
        (stored,) = self._core.store.put_schedules([rule])
        logger.info("jobq.schedule.added", schedule=name, next_run=stored.next_run.isoformat())
        return stored

    def remove(self, name: str) -> bool:
        """Remove a schedule; False when there was none. Its jobs stay.

        One that the code declares comes back at the next start.
        """
        store_fitting(self._core)
        removed = self._core.store.remove_schedule(check_text(name, argument="name"))
        if removed:
            logger.info("jobq.schedule.removed", schedule=name)
        return removed

    def list(self) -> Infos:
        """Return every schedule by name, each with the next run that a tick gives it after a clock that came back."""
        store_fitting(self._core)
        now = self._core.clock.now()
        return [one.sane(now) for one in self._core.store.schedules()]

    def get(self, name: str) -> ScheduleInfo:
        """Return a schedule.

        Raises:
            ScheduleNotFound: there is none of this name.
        """
        store_fitting(self._core)
        found = self._core.store.schedules([check_text(name, argument="name")])
        if not found:
            raise ScheduleNotFound(name, known=tuple(one.name for one in self._core.store.schedules()))
        return found[0]

    def pause(self, name: str, *, who: str | None = None, why: str | None = None) -> bool:
        """Let no slot fire, in every process, until it is resumed; False when it was paused already.

        The pause is stored with who and why, which are redacted, and survives restarts and re-adding.

        Raises:
            ScheduleNotFound: there is none of this name.
        """
        store_fitting(self._core)
        changed = self._core.store.pause_schedule(
            check_text(name, argument="name"),
            who=None if who is None else self._core.clean(who, argument="who"),
            why=None if why is None else self._core.clean(why, argument="why"),
        )
        if changed:
            logger.info("jobq.schedule.paused", schedule=name)
            self._tell(name, paused=True)
        return changed

    def resume(self, name: str) -> bool:
        """Let its slots fire again; those that passed meanwhile count as missed. False when it was not paused.

        Raises:
            ScheduleNotFound: there is none of this name.
        """
        store_fitting(self._core)
        changed = self._core.store.resume_schedule(check_text(name, argument="name"))
        if changed:
            logger.info("jobq.schedule.resumed", schedule=name)
            self._tell(name, paused=False)
        return changed

    def run_now(self, name: str, *, actor: Actor | str | None = None) -> Dispatches:
        """Enqueue its jobs now, paused or not, beside its slots: they have none, and its next run stays.

        ``actor`` says who asked for it, instead of what the entries say.

        Raises:
            ScheduleNotFound: there is none of this name.
            RetiredKind, DedupeConflict: as an enqueue of the entry.
        """
        store_fitting(self._core)
        self._core.register()
        who = None if actor is None else check_word(actor, Actor, argument="actor").value
        made = self._core.store.run_schedule(check_text(name, argument="name"), attempts=self._attempts, actor=who)
        self._core.deliver()
        self._announce(made)
        return made

    def next_runs(self, name: str, n: int = 5) -> Instants:
        """Return its next ``n`` slots, in UTC and without jitter, paused or not; fewer where the calendar ends.

        Raises:
            ScheduleNotFound: there is none of this name.
            ArgumentError: its row was broken by hand.
        """
        count = check_int(n, argument="n", least=0, most=100_000)
        return self.get(name).slots(count, after=self._core.clock.now())

    def look(self) -> ScheduleOutlook:
        """Say, without the write lock, what a tick would find."""
        store_fitting(self._core)
        return self._core.store.look_schedules()

    def tick(self) -> Dispatches:
        """Enqueue every slot that is due and return what was dispatched; nothing due is an empty list.

        The jobs and the next runs are committed together, so that no slot is repeated or left out, whoever else ticks.
        """
        names = self.look().names
        if not names:
            return []
        self._core.register()
        made: Dispatches = []
        for start in range(0, len(names), CHUNK):
            ticked = self._core.store.tick_schedules(names[start : start + CHUNK], attempts=self._attempts)
            self._core.deliver()
            self._announce(ticked.dispatched)
            _remark(ticked.remarks)
            made.extend(ticked.dispatched)
        return made

    def leave_declared(self, name: str | None = None) -> None:
        """Write none of the declared schedules from here on, but the one of this name where it is not stored.

        For a tool that is no start of a program: what somebody removed must not come back by looking after another.
        """
        if name is not None:
            store_one(self._core, name)
        self._core.declared_version = version(self._core)

    def declare(self) -> None:
        """Write the schedules that are declared beside handlers, as each start does.

        One that was removed by hand comes back. What a module no longer declares goes, if it was registered with
        ``missing_schedules="remove"``.

        Raises:
            PayloadError, UnknownKind, RetiredKind: an entry does not fit its kind; nothing was written.
        """
        store_all(self._core)

    def _attempts(self, kind: str) -> int | None:
        if self._core.handlers.find(kind) is None:
            return self._core.config.max_attempts
        return self._core.max_attempts(kind)

    def _tell(self, name: str, *, paused: bool) -> None:
        self._core.bus.publish(ScheduleStateChanged(schedule=name, paused=paused, at=self._core.clock.now()))

    def _announce(self, made: Iterable[Dispatched]) -> None:
        at = self._core.clock.now()
        for one in made:
            fields = attrs.asdict(one, recurse=False)
            logger.info(
                "jobq.schedule.fired",
                schedule=one.schedule,
                slot=None if one.slot is None else one.slot.isoformat(),
                entry=one.entry,
                job_id=one.job_id,
                created=one.created,
            )
            self._core.bus.publish(ScheduleFired(**fields, at=at))


def _remark(remarks: Iterable[Remarked]) -> None:
    for remark, name, detail in remarks:
        if remark is Remark.FAILED:
            logger.error("jobq.schedule.failed", schedule=name, error=detail)
        elif remark is Remark.MENDED:
            logger.info("jobq.schedule.mended", schedule=name)
        elif remark is Remark.COLLAPSED:
            logger.warning("jobq.schedule.collapsed", schedule=name, newest=detail)
        elif remark is Remark.SKIPPED:
            logger.debug("jobq.schedule.skipped", schedule=name, slot=detail)
        else:
            logger.warning("jobq.schedule.recomputed", schedule=name, next_run=detail)
