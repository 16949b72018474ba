"""From what an enqueue was told to a draft with every option resolved."""

from collections.abc import Mapping
from datetime import datetime

from jobq import installation
from jobq.arguments import (
    check_delay,
    check_id,
    check_int,
    check_key,
    check_kind,
    check_meta,
    check_one_time,
    check_priority,
    check_queue,
    check_run_at,
    check_text,
    check_word,
)
from jobq.core import Core
from jobq.errors import ArgumentError, RetiredKind, UnknownKind
from jobq.handler import AnyHandler, Handler
from jobq.model.instant import shift
from jobq.model.job import DEFAULT_ATTEMPTS, DEFAULT_QUEUE, Actor, Priority
from jobq.model.payload import encode
from jobq.newjob import NewJob
from jobq.store.base import Draft

#: JSON values name no kind.
_PLAIN = frozenset({dict, list, tuple, set, bytes, int, float, bool})
_SYSTEM = Actor.SYSTEM.value
_INGEST = Priority.INGEST.value


def draft_of(core: Core, item: NewJob) -> Draft:
    """Check what an enqueue was told and fill in what the handler says.

    What nobody here says is left open: the store knows the kind's row, and reads it in the inserting transaction. The
    configuration's ``max_attempts`` stands between the handler and the row.
    """
    if not isinstance(item, NewJob):
        raise ArgumentError("items", f"NewJob values are needed, not a {type(item).__name__}")
    kind, handler, payload = _target(core, item)
    limit = core.config.payload_max_bytes
    if handler is None:
        text, value = encode(payload, limit=limit), payload
    else:
        text, value = handler.encode_payload(payload, limit=limit)
    check_one_time(item.delay, item.run_at)
    queue = None if item.queue is None else check_queue(item.queue)
    priority = None if item.priority is None else check_priority(item.priority)
    attempts = None if item.max_attempts is None else check_int(item.max_attempts, argument="max_attempts", least=1)
    key = None if item.dedupe_key is None else check_key(item.dedupe_key)
    if handler is None:
        attempts = attempts or core.config.max_attempts
    else:
        queue = queue or handler.queue or DEFAULT_QUEUE
        priority = _priority(handler) if priority is None else priority
        attempts = attempts or _attempts(core, handler)
        key = handler.key_of(value) if key is None else key
    return Draft(
        kind,
        queue,
        text,
        priority,
        attempts,
        None if handler is None else handler.max_deferrals,
        0.0 if item.delay is None else check_delay(item.delay, core.clock.now()),
        None if item.run_at is None else check_run_at(item.run_at),
        key,
        None if item.parent_id is None else check_id(item.parent_id, argument="parent_id"),
        _SYSTEM if item.actor is None else check_word(item.actor, Actor, argument="actor").value,
        None if item.tenant_id is None else check_text(item.tenant_id, argument="tenant_id"),
        None if item.subject is None else check_text(item.subject, argument="subject"),
        _meta(core, item, limit),
        queue_of_kind=item.queue is None,
    )


def resolved(core: Core, draft: Draft, now: datetime) -> Draft:
    """Return a draft that leaves nothing open: what an insert at this instant would make of it."""
    timed = draft._replace(run_at=draft.run_at or shift(now, draft.delay, argument="delay"), delay=0.0)
    if draft.routable:
        timed = timed._replace(queue=core.store.route(draft.subject or "", draft.kind) or draft.queue)
    timed = timed._replace(queue_of_kind=False)
    if None not in (timed.queue, timed.priority, timed.max_attempts):
        return timed
    row = core.store.declared(draft.kind)
    if row is None:
        return timed.filled(DEFAULT_QUEUE, _INGEST, DEFAULT_ATTEMPTS, None)
    return timed.filled(row.queue, row.priority, row.max_attempts, row.max_deferrals)


def _target(core: Core, item: NewJob) -> tuple[str, AnyHandler | None, object]:
    """Return the kind, its handler where it is registered here, and the payload."""
    named = item.kind_or_payload
    handlers = core.handlers
    if isinstance(named, str):
        handler = handlers.find(named)
        kind = check_kind(named) if handler is None else named
        if handlers.is_retired(kind):
            raise RetiredKind(kind)
        return kind, handler, item.payload
    if isinstance(named, Handler):
        if handlers.is_retired(named.kind):
            raise RetiredKind(named.kind)
        # A handler that is attached nowhere enqueues on the installed job queue, with what it declares.
        at_home = handlers.find(named.kind) or (named if installation.get() is core else None)
        if at_home is not named:
            raise UnknownKind(named.kind, fix="Open the job queue with handlers= that hold it, or use its name.")
        return named.kind, named, item.payload
    found = _by_class(core, named, item.payload)
    return found.kind, found, named


def _by_class(core: Core, value: object, payload: object) -> AnyHandler:
    if value is None or type(value) in _PLAIN:
        problem = f"a kind, a handler or a payload value is needed, not a {type(value).__name__}"
        raise ArgumentError("kind_or_payload", problem, fix="Name the kind first, then its payload.")
    name = type(value).__qualname__
    found = core.handlers.for_payload(type(value))
    if not found:
        retired = core.handlers.retired_for(type(value))
        raise UnknownKind(name) if retired is None else RetiredKind(retired)
    if len(found) > 1:
        kinds = ", ".join(sorted(handler.kind for handler in found))
        raise ArgumentError("kind_or_payload", f"{name} is the payload of several kinds: {kinds}", fix="Name the kind.")
    if payload is not None:
        raise ArgumentError("payload", "it was given twice: the first argument is a payload already")
    return found[0]


def _priority(handler: AnyHandler) -> int:
    return _INGEST if handler.priority is None else handler.priority


def _attempts(core: Core, handler: AnyHandler) -> int:
    return core.max_attempts(handler.kind) if handler.max_attempts is None else handler.max_attempts


def _meta(core: Core, item: NewJob, limit: int) -> str | None:
    meta = item.meta
    carried = None if core.carry is None else core.carry()
    if carried and (meta is None or isinstance(meta, Mapping)):
        meta = {**carried, **(meta or {})}
    return None if meta is None else check_meta(meta, limit=limit)
