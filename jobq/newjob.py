"""What may be said of a job when it is enqueued: the options, and one item of a batch."""

from collections.abc import Mapping
from datetime import datetime
from typing import TypedDict

import attrs

from jobq.model.duration import Duration
from jobq.model.job import JSON, Actor


class ChildOptions(TypedDict, total=False):
    """The keywords of ``follow_up``; one that is missing or None is left to the kind and the configuration."""

    queue: str | None
    priority: int | str | None
    delay: Duration | None
    run_at: datetime | None
    dedupe_key: str | None
    max_attempts: int | None
    actor: Actor | str | None
    tenant_id: str | None
    subject: str | None
    meta: Mapping[str, JSON] | None


class EnqueueOptions(ChildOptions, total=False):
    """The keywords of ``enqueue``: those, the parent, and whether the job is a part of the thread's transaction."""

    parent_id: int | None
    join: bool


# Without slots: a frozen value with them takes twice as long to build, and batches are made of these.
@attrs.frozen(slots=False)
class NewJob:
    """One job of an ``enqueue_many``: what to run, with which payload, and the options of ``enqueue``.

    It holds what it is given; ``enqueue_many`` checks it.
    """

    kind_or_payload: object
    payload: object = None
    queue: str | None = attrs.field(default=None, kw_only=True)
    priority: int | str | None = attrs.field(default=None, kw_only=True)
    delay: Duration | None = attrs.field(default=None, kw_only=True)
    run_at: datetime | None = attrs.field(default=None, kw_only=True)
    dedupe_key: str | None = attrs.field(default=None, kw_only=True)
    max_attempts: int | None = attrs.field(default=None, kw_only=True)
    parent_id: int | None = attrs.field(default=None, kw_only=True)
    actor: Actor | str | None = attrs.field(default=None, kw_only=True)
    tenant_id: str | None = attrs.field(default=None, kw_only=True)
    subject: str | None = attrs.field(default=None, kw_only=True)
    meta: Mapping[str, JSON] | None = attrs.field(default=None, kw_only=True)
