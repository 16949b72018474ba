"""``jobq kind list``, ``pause``, ``resume`` and ``retries``."""

import argparse
from typing import Any

from jobq.cli.options import Options, whole_number
from jobq.cli.pausing import answer, who_and_why
from jobq.cli.verbs import Verbs, no_options

_PAUSE = """\
Stop claims of a kind at once, in every process and every queue, until it is resumed. Running jobs finish; jobs may
still be enqueued. The pause outlives restarts and deploys."""
_RETRIES = """\
Print how long a job of a kind waits after each failed attempt, without jitter, and the time that has passed by then.
Jitter only ever shortens a delay, by up to the fraction that is shown."""


def add_to(kind: Verbs) -> None:
    """Add the verbs to the tree."""
    kind.verb("list", run_list, no_options, help="list the kinds that were registered or enqueued")
    kind.verb("pause", run_pause, _fill_pause, help="stop claims of a kind", description=_PAUSE)
    kind.verb("resume", run_resume, _fill_kind, help="let claims of a kind go on")
    kind.verb("retries", run_retries, _fill_retries, help="print the retry delays of a kind", description=_RETRIES)


def _fill_kind(options: Options) -> None:
    options.positional("kind", metavar="KIND", help="the kind's name")


def _fill_pause(options: Options) -> None:
    _fill_kind(options)
    who_and_why(options)


def _fill_retries(options: Options) -> None:
    _fill_kind(options)
    options.add("--max-attempts", metavar="N", type=whole_number, help="instead of the kind's number of attempts")


def run_list(arguments: argparse.Namespace) -> int:
    """Print every kind with its defaults."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import plain, say_json, table
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        kinds = jobs.kinds()
    if arguments.json:
        say_json([{**plain(kind), "paused": kind.paused} for kind in kinds])
        return Exit.DONE
    columns = ("kind", "queue", "priority", "max attempts", "cap", "retired", "queued", "running")
    table((*columns, "paused since", "by", "why"), map(_row, kinds), none="no kind yet")
    return Exit.DONE


def _row(kind: Any) -> tuple[object, ...]:
    defaults = (kind.queue, kind.priority, kind.max_attempts, kind.cap, kind.retired)
    pause = (kind.paused_at, kind.paused_by, kind.paused_why)
    return (kind.name, *defaults, kind.queued, kind.running, *pause)


def run_pause(arguments: argparse.Namespace) -> int:
    """Pause a kind; pausing a paused one changes nothing and is no error."""
    from jobq.cli.target import login_name, open_target  # start-up cost

    who = login_name() if arguments.who is None else arguments.who
    with open_target(arguments) as jobs:
        changed = jobs.pause(kind=arguments.kind, who=who, why=arguments.why)
    return answer(arguments, "kind", changed=changed, paused=True)


def run_resume(arguments: argparse.Namespace) -> int:
    """Resume a kind; resuming one that is not paused changes nothing and is no error."""
    from jobq.cli.target import open_target  # start-up cost

    with open_target(arguments) as jobs:
        changed = jobs.resume(kind=arguments.kind)
    return answer(arguments, "kind", changed=changed, paused=False)


def run_retries(arguments: argparse.Namespace) -> int:
    """Print the delays of a kind's retry policy."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import note, say_json, shown, table
    from jobq.cli.target import open_target
    from jobq.errors import UnknownKind
    from jobq.model.duration import to_text
    from jobq.model.nearest import suggestion

    with open_target(arguments) as jobs:
        known = {kind.name: kind for kind in jobs.kinds()}
        handler = jobs.handlers.find(arguments.kind)
        if handler is None and arguments.kind not in known:
            raise UnknownKind(arguments.kind, fix=suggestion(arguments.kind, known))
        policy = jobs.policy(arguments.kind)
        attempts = arguments.max_attempts or jobs.max_attempts(arguments.kind)
    delays = policy.schedule(attempts)
    totals = [sum(delays[: index + 1]) for index in range(len(delays))]
    if arguments.json:
        steps = [{"attempt": n, "delay": d, "total": t} for n, (d, t) in enumerate(zip(delays, totals, strict=True), 1)]
        say_json({"kind": arguments.kind, "max_attempts": attempts, "policy": policy, "delays": steps})
        return Exit.DONE
    rows = ((n, to_text(d), to_text(t)) for n, (d, t) in enumerate(zip(delays, totals, strict=True), 1))
    table(("failed attempt", "waits", "in all"), rows, none=f"{arguments.kind} is tried once")
    jitter = shown(policy.jitter * 100)
    note(f"{policy.strategy}, {attempts} attempts, each delay shortened at random by up to {jitter} %")
    return Exit.DONE
