"""What may be said of a schedule when it is added, by hand or beside the handlers."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypedDict

import attrs

from jobq.arguments import check_int, check_priority, check_queue, check_text, check_word
from jobq.errors import ArgumentError
from jobq.handler import AnyHandler, Handler
from jobq.model.duration import Duration, to_seconds
from jobq.model.entries import MOST_ENTRIES, Entry
from jobq.model.instant import EPOCH, require_aware
from jobq.model.schedule import CatchUp
from jobq.model.scheduled import MOST_CATCH_UP, RuleOptions, timing_of
from jobq.model.zones import load_zone
from jobq.newjob import NewJob

#: The limit of a payload is a matter of the configuration, which a registry does not know.
_ANY_SIZE = 2**62

#: What one entry may be given as.
EntryLike = Entry | NewJob | Mapping[str, Any]


class ScheduleOptions(TypedDict, total=False):
    """The keywords of ``schedules.add`` and ``handlers.schedule``.

    ``every`` is a duration of at least 1 ms, ``cron`` an expression of five fields; exactly one of them is needed.
    ``kind`` (a name or a handler) and ``payload`` say which job each slot makes, or ``entries`` says it of several:
    :class:`jobq.Entry` or :class:`jobq.NewJob` values, or mappings with the fields of an Entry. ``queue`` and
    ``priority`` are for entries that name none; the kind's unless given. ``tz`` is the IANA zone of a cron expression.
    ``catch_up`` ("once", "skip" or "all") says what becomes of missed slots, and ``max_catch_up`` how many "all" runs
    at most. ``jitter`` is a duration by up to which a slot's jobs run later, always the same for a slot. ``anchor``, an
    aware datetime, is where an interval counts from; its first slot is one period after it.
    """

    every: Duration | None
    cron: str | None
    kind: str | AnyHandler | None
    payload: object
    entries: Iterable[EntryLike] | None
    queue: str | None
    priority: int | None
    tz: str
    catch_up: CatchUp | str
    max_catch_up: int
    jitter: Duration
    anchor: datetime | None


@attrs.frozen(kw_only=True)
class Declaration(RuleOptions):
    """A schedule as it was said; its entries are checked against the kinds when it is added."""

    #: What each slot enqueues, with the name of the entry where it has one.
    entries: tuple[tuple[NewJob, str | None], ...]


def declare_as(verb: str, name: str, options: Mapping[str, Any]) -> Declaration:
    """Check the options that a verb was called with; an unknown one raises TypeError, which names the verb."""
    unknown = sorted(options.keys() - ScheduleOptions.__annotations__.keys())
    if unknown:
        raise TypeError(f"{verb}() got an unexpected keyword argument {unknown[0]!r}")
    return declare(name, **options)


def refuse_misfits(declaration: Declaration, find: Callable[[str], AnyHandler | None]) -> None:
    """Raise PayloadError where a payload does not fit its kind; kinds that nobody finds yet are left for later."""
    for job, _ in declaration.entries:
        named = job.kind_or_payload
        handler = find(named) if isinstance(named, str) else named if isinstance(named, Handler) else None
        if handler is not None:
            handler.encode_payload(job.payload, limit=_ANY_SIZE)


def declare(
    name: str,
    *,
    every: Duration | None = None,
    cron: str | None = None,
    kind: str | AnyHandler | None = None,
    payload: object = None,
    entries: Iterable[EntryLike] | None = None,
    queue: str | None = None,
    priority: int | None = None,
    tz: str = "UTC",
    catch_up: CatchUp | str = CatchUp.ONCE,
    max_catch_up: int = 10,
    jitter: Duration = 0,
    anchor: datetime | None = None,
) -> Declaration:
    """Check what :class:`ScheduleOptions` may say.

    Raises:
        CronError: the expression is malformed or can never fire.
        ArgumentError: another option is malformed or out of its range.
    """
    if cron is not None and not isinstance(cron, str):
        raise ArgumentError("cron", f"an expression is text, not a {type(cron).__name__}")
    load_zone(tz)
    seconds = None if every is None else to_seconds(every, argument="every")
    since = None if anchor is None else require_aware(anchor, argument="anchor")
    timing_of(cron, seconds, tz, since or EPOCH)
    delay = to_seconds(jitter, argument="jitter")
    if delay < 0:
        raise ArgumentError("jitter", "it only ever makes jobs later")
    return Declaration(
        name=check_text(name, argument="name"),
        cron=cron,
        every=seconds,
        tz=tz,
        anchor=since,
        catch_up=check_word(catch_up, CatchUp, argument="catch_up"),
        max_catch_up=check_int(max_catch_up, argument="max_catch_up", least=1, most=MOST_CATCH_UP),
        jitter=delay,
        queue=None if queue is None else check_queue(queue),
        priority=None if priority is None else check_priority(priority),
        entries=_entries(kind, payload, entries),
    )


def _entries(
    kind: object, payload: object, entries: Iterable[EntryLike] | None
) -> tuple[tuple[NewJob, str | None], ...]:
    if entries is None:
        if kind is None and not attrs.has(type(payload)):
            raise ArgumentError("kind", "name a kind or entries")
        # A payload of a registered class names its kind.
        return ((NewJob(payload) if kind is None else NewJob(kind, payload), None),)
    if kind is not None or payload is not None:
        raise ArgumentError("entries", "name either a kind or entries, not both")
    if isinstance(entries, str | Mapping) or not isinstance(entries, Iterable):
        raise ArgumentError("entries", f"several entries are needed, not a {type(entries).__name__}")
    found = tuple(_entry(entry) for entry in entries)
    if not 1 <= len(found) <= MOST_ENTRIES:
        raise ArgumentError("entries", f"1 to {MOST_ENTRIES:,} entries are needed, not {len(found):,}")
    return found


def _entry(entry: object) -> tuple[NewJob, str | None]:
    if isinstance(entry, NewJob):
        if any(value is not None for value in (entry.delay, entry.run_at, entry.parent_id)):
            raise ArgumentError("entries", "delay, run_at and parent_id make no sense in a schedule")
        return entry, None
    if isinstance(entry, Mapping):
        unknown = sorted(set(map(str, entry)) - _FIELDS)
        if unknown or "kind" not in entry:
            raise ArgumentError("entries", f"unknown field {unknown[0]!r}" if unknown else "a kind is needed")
        fields = dict(entry)
    elif isinstance(entry, Entry):
        fields = attrs.asdict(entry, recurse=False)
    else:
        raise ArgumentError("entries", f"an Entry is needed, not a {type(entry).__name__}")
    name = fields.pop("name", None)
    return NewJob(fields.pop("kind"), **fields), None if name is None else check_text(name, argument="name")


_FIELDS = {field.name for field in attrs.fields(Entry)}
