"""From what is declared of schedules to the rules that are stored."""

import attrs

from jobq.core import Core
from jobq.declaring import Declaration
from jobq.drafting import draft_of
from jobq.errors import JobqError
from jobq.log import get_logger
from jobq.model.entries import Entry, write_entries
from jobq.model.payload import decode
from jobq.model.scheduled import Rule, timing_of
from jobq.newjob import NewJob

logger = get_logger(__name__)


def rule_of(core: Core, declaration: Declaration) -> Rule:
    """Return the rule of a declaration whose entries fit their kinds.

    Raises:
        ArgumentError: an option is out of its range.
        PayloadError, UnknownKind, RetiredKind: an entry does not fit its kind.
    """
    entries = [_entry(core, job, name) for job, name in declaration.entries]
    fields = attrs.asdict(declaration, recurse=False)
    return Rule(**{**fields, "entries": write_entries(entries)})


def store_all(core: Core) -> None:
    """Store every declared schedule; where one of them does not fit, raise and store none."""
    seen = version(core)
    declared = core.handlers.declared
    rules = [rule_of(core, declaration) for declaration in declared.schedules()]
    sweep = declared.swept()
    if rules or sweep:
        core.store.put_schedules(rules, sweep=sweep)
    _note(core, {}, seen)


def store_fitting(core: Core) -> None:
    """Store the declared schedules that fit, where something was declared since the last time.

    One that does not fit is logged, once for each different error, and tried again when a handler is registered.
    """
    seen = version(core)
    if core.declared_version == seen:
        return
    declared = core.handlers.declared
    rules: list[Rule] = []
    misfits: dict[str, str] = {}
    for declaration in declared.schedules():
        rule = _fitting(core, declaration, misfits)
        if rule is not None:
            rules.append(rule)
    # The row of one that does not fit now stays what it is: its module has not dropped it.
    sweep = frozenset() if misfits else declared.swept()
    if rules or sweep:
        core.store.put_schedules(rules, sweep=sweep)
    _note(core, misfits, seen)


def store_one(core: Core, name: str) -> None:
    """Store the declared schedule of this name, if there is one and it is not stored; leave the others as they are.

    Raises:
        ArgumentError, PayloadError, UnknownKind, RetiredKind: it does not fit.
    """
    wanted = [one for one in core.handlers.declared.schedules() if one.name == name]
    if wanted and not core.store.schedules([name]):
        core.store.put_schedules([rule_of(core, one) for one in wanted])


def version(core: Core) -> tuple[int, int]:
    """Return what changes when there may be something new to store."""
    return core.handlers.declared.version, core.handlers.version if core.misfits else 0


def _note(core: Core, misfits: dict[str, str], seen: tuple[int, int]) -> None:
    core.misfits = misfits
    if core.blocks.mine() is None:  # else it may be rolled back
        core.declared_version = seen


def _fitting(core: Core, declaration: Declaration, misfits: dict[str, str]) -> Rule | None:
    name = declaration.name
    try:
        rule = rule_of(core, declaration)
        now = core.clock.now()
        # What the store would refuse, and the others with it.
        timing_of(rule.cron, rule.every, rule.tz, rule.anchor or now).next_after(now)
    except JobqError as error:
        misfits[name] = f"{type(error).__name__}: {error}"
        if core.misfits.get(name) != misfits[name]:
            logger.error("jobq.schedule.failed", schedule=name, error=misfits[name])
        return None
    return rule


def _entry(core: Core, job: NewJob, name: str | None) -> Entry:
    draft = draft_of(core, job)
    return Entry(
        draft.kind,
        decode(draft.payload),
        name=name,
        # What the kind says is looked up by each tick: its next registration may say something else.
        queue=None if job.queue is None else draft.queue,
        priority=None if job.priority is None else draft.priority,
        max_attempts=None if job.max_attempts is None else draft.max_attempts,
        dedupe_key=draft.dedupe_key,
        actor=draft.actor,
        tenant_id=draft.tenant_id,
        subject=draft.subject,
        # Not the draft's, which carries the context of whoever adds the schedule.
        meta=None if job.meta is None else dict(job.meta),
    )
