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
from jobq.model.duration import Duration
from jobq.model.instant import shift
from jobq.model.job import DEFAULT_ATTEMPTS, DEFAULT_QUEUE, JSON, Actor, Priority
from jobq.model.payload import encode
from jobq.newjob import NewJob
from jobq.store.base import Draft

#: JSON values name no kind.
_PLAIN = frozenset({dict, list, tuple, set, bytes, int, float, bool})
_SYSTEM = Actor.SYSTEM.value
_INGEST = Priority.INGEST.value


def draft_of(core: Core, item: NewJob) -> Draft:
    """Check one job of a batch and return what is to be stored, as :func:`make_draft` does."""
    if not isinstance(item, NewJob):
        raise ArgumentError("items", f"NewJob values are needed, not a {type(item).__name__}")
    return make_draft(
        core,
        item.kind_or_payload,
        item.payload,
        queue=item.queue,
        priority=item.priority,
        delay=item.delay,
        run_at=item.run_at,
        dedupe_key=item.dedupe_key,
        max_attempts=item.max_attempts,
        parent_id=item.parent_id,
        actor=item.actor,
        tenant_id=item.tenant_id,
        subject=item.subject,
        meta=item.meta,
    )


def make_draft(
    core: Core, kind_or_payload: object, payload: object, *, queue: str | None, priority: int | str | None,
    delay: Duration | None, run_at: datetime | None, dedupe_key: str | None, max_attempts: int | None,
    parent_id: int | None, actor: Actor | str | None, tenant_id: str | None, subject: str | None,
    meta: Mapping[str, JSON] | None,
) -> Draft:  # fmt: skip
    """Check what an enqueue was told and fill in what the handler says.

    What nobody here says is left open: the store knows the kind's row, and reads it in the inserting transaction. The
    configuration's ``max_attempts`` stands between the handler and the row.
    """
    kind, handler, value = _target(core, kind_or_payload, payload)
    limit = core.config.payload_max_bytes
    text, value = (encode(value, limit=limit), value) if handler is None else handler.encode_payload(value, limit=limit)
    if delay is not None:
        check_one_time(delay, run_at)
    own_queue = None if queue is None else check_queue(queue)
    rank = None if priority is None else check_priority(priority)
    attempts = None if max_attempts is None else check_int(max_attempts, argument="max_attempts", least=1)
    key = None if dedupe_key is None else check_key(dedupe_key)
    if handler is None:
        attempts = attempts or core.config.max_attempts
    else:
        own_queue = own_queue or handler.queue or DEFAULT_QUEUE
        rank = _priority(handler) if rank is None else rank
        attempts = attempts or _attempts(core, handler)
        key = handler.key_of(value) if key is None else key
    return Draft(
        kind,
        own_queue,
        text,
        rank,
        attempts,
        None if handler is None else handler.max_deferrals,
        0.0 if delay is None else check_delay(delay, core.clock.now()),
        None if run_at is None else check_run_at(run_at),
        key,
        None if parent_id is None else check_id(parent_id, argument="parent_id"),
        _SYSTEM if actor is None else check_word(actor, Actor, argument="actor").value,
        None if tenant_id is None else check_text(tenant_id, argument="tenant_id"),
        None if subject is None else check_text(subject, argument="subject"),
        None if meta is None and core.carry is None else _meta(core, meta, limit),
        queue_of_kind=queue is None,
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


def _target(core: Core, named: object, payload: object) -> tuple[str, AnyHandler | None, object]:
    """Return the kind, its handler where it is registered here, and the payload."""
    handlers = core.handlers
    if isinstance(named, str):
        handler = handlers.find(named)
        kind = check_kind(named) if handler is None else named
        if handlers.is_retired(kind):
            raise RetiredKind(kind)
        return kind, handler, payload
    if isinstance(named, Handler):
        if handlers.is_retired(named.kind):
            raise RetiredKind(named.kind)
        # A handler that is attached nowhere enqueues on the installed job queue, with what it declares.
        at_home = handlers.find(named.kind) or (named if installation.get() is core else None)
        if at_home is not named:
            raise UnknownKind(named.kind, fix="Open the job queue with handlers= that hold it, or use its name.")
        return named.kind, named, payload
    found = _by_class(core, named, payload)
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


def _meta(core: Core, meta: Mapping[str, JSON] | None, limit: int) -> str | None:
    carried = None if core.carry is None else core.carry()
    if carried and (meta is None or isinstance(meta, Mapping)):
        meta = {**carried, **(meta or {})}
    return None if meta is None else check_meta(meta, limit=limit)
