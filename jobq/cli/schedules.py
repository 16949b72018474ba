"""``jobq schedule list``, ``add``, ``remove``, ``pause``, ``resume``, ``run`` and ``next``."""

import argparse
from typing import Any

from jobq.cli.options import Options, duration, json_value, moment, one_of, priority, queue_name, whole_number
from jobq.cli.pausing import answer, who_and_why
from jobq.cli.verbs import Verbs, no_options

_ADD = """\
Store a schedule under its name; one that exists is changed. Adding the same again changes nothing.

Give --every or --cron. PAYLOAD is JSON text, or - to read it from standard input; none means null. Where one slot is
to make several jobs give --entries, a JSON list of objects with kind, payload and other fields, instead of KIND.
New timing takes effect with its first slot after now; an interval keeps its phase."""
_REMOVE = """\
Remove a schedule. Its jobs stay. One that the code declares comes back at the next start."""
_PAUSE = """\
Let no slot fire, in every process, until it is resumed. Slots that pass meanwhile count as missed. The pause outlives
restarts and re-adding."""
_RUN = "Enqueue the jobs of a schedule now, beside its slots: its next run stays."
_USER = {"actor": "user"}
_NEXT = "Print the next slots of a schedule, in UTC and on the clocks of its zone; jitter is not in them."


def add_to(schedule: Verbs) -> None:
    """Add the verbs to the tree."""
    schedule.verb("list", run_list, no_options, help="list the schedules with their next slots")
    schedule.verb("add", run_add, _fill_add, help="store a schedule", description=_ADD)
    schedule.verb("remove", run_remove, _fill_name, help="remove a schedule", description=_REMOVE)
    schedule.verb("pause", run_pause, _fill_pause, help="let no slot fire", description=_PAUSE)
    schedule.verb("resume", run_resume, _fill_name, help="let slots fire again")
    schedule.verb("run", run_run, _fill_name, help="enqueue its jobs now", description=_RUN)
    schedule.verb("next", run_next, _fill_next, help="print its next slots", description=_NEXT)


def _fill_name(options: Options) -> None:
    options.positional("schedule", metavar="NAME", help="the schedule's name")


def _fill_pause(options: Options) -> None:
    _fill_name(options)
    who_and_why(options)


def _fill_next(options: Options) -> None:
    _fill_name(options)
    options.positional("number", metavar="N", type=whole_number, nargs="?", help="how many; 5 unless told")
    options.add("--count", metavar="N", type=whole_number, help="the same")


def _fill_add(options: Options) -> None:
    _fill_name(options)
    options.positional("kind", metavar="KIND", nargs="?", help="the kind of its jobs")
    options.positional("payload", metavar="PAYLOAD", nargs="?", help="JSON, or - for standard input")
    options.add("--every", metavar="TIME", type=duration, help="a slot each: 90, 90s, 5m, 1h30m")
    options.add("--cron", metavar="EXPRESSION", help="five fields, such as '0 7 * * mon-fri'")
    options.add("--tz", metavar="ZONE", default="UTC", help="the IANA zone of the expression; UTC unless told")
    options.add("--anchor", metavar="WHEN", type=moment, help="where --every counts from, an ISO 8601 time with offset")
    options.add("--entries", metavar="JSON", type=json_value, help="several jobs a slot, as a list of objects")
    options.add("--queue", metavar="QUEUE", type=queue_name, help="instead of the kind's queue")
    options.add("--priority", metavar="N", type=priority, help="-1000 to 1000, or user, ingest, backfill")
    options.add("--catch-up", metavar="HOW", type=one_of("once", "skip", "all"), default="once",
                help="what becomes of missed slots: once (the default), skip or all")
    options.add("--max-catch-up", metavar="N", type=whole_number, default=10,
                help="how many missed slots 'all' runs; 10 unless told")
    options.add("--jitter", metavar="TIME", type=duration, default=0.0, help="run up to so much later than the slot")


def run_list(arguments: argparse.Namespace) -> int:
    """Print every schedule."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import say_json, table
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        # Looking must not bring back what the code declares and somebody removed.
        jobs.schedules.leave_declared()
        found = jobs.schedules.list()
    if arguments.json:
        say_json(found)
        return Exit.DONE
    columns = ("schedule", "timing", "next slot", "last slot", "catch up", "jobs", "paused since", "by", "why", "error")
    table(columns, map(_row, found), none="no schedule yet")
    return Exit.DONE


def _row(one: Any) -> tuple[object, ...]:
    from jobq.model.duration import to_text  # start-up cost

    timing = f"every {to_text(one.every)}" if one.cron is None and one.every is not None else one.cron
    zone = "" if one.tz == "UTC" or one.cron is None else f" {one.tz}"
    kinds = " ".join(dict.fromkeys(entry.kind for entry in one.entries))
    when = (one.next_run, one.last_slot)
    pause = (one.paused_at, one.paused_by, one.paused_why)
    return (one.name, f"{timing}{zone}", *when, one.catch_up, kinds, *pause, one.error)


def run_add(arguments: argparse.Namespace) -> int:
    """Store a schedule and print its next slot."""
    from jobq.cli.enqueue import is_known  # start-up cost
    from jobq.cli.exits import Exit
    from jobq.cli.output import note, say, say_json, shown
    from jobq.cli.payload import read_payload
    from jobq.cli.target import open_target

    settings = ("every", "cron", "tz", "anchor", "queue", "priority", "catch_up", "max_catch_up", "jitter", "entries")
    options = {name: getattr(arguments, name) for name in settings}
    options["kind"], options["payload"] = arguments.kind, read_payload(arguments.payload)

    def store(jobs: Any) -> Any:
        jobs.schedules.leave_declared()
        return jobs.schedules.add(arguments.schedule, **_by_a_user(options))

    with open_target(arguments, create=True, rehearse=store) as jobs:
        stored = store(jobs)
        strange = sorted(kind for kind in {entry.kind for entry in stored.entries} if not is_known(jobs, kind))
    if arguments.json:
        say_json(stored)
    else:
        say(f"schedule {stored.name} stored, next slot {shown(stored.next_run)}")
    for kind in strange:
        note(f"note: no handler or earlier job knows the kind {kind}; its jobs wait until a worker does")
    return Exit.DONE


def _by_a_user(options: dict[str, Any]) -> dict[str, Any]:
    """Name who is at the keyboard as the actor of each entry that names none; what is malformed stays as it is."""
    kind, payload, entries = options["kind"], options["payload"], options["entries"]
    if entries is None and kind is not None:
        return {**options, "kind": None, "payload": None, "entries": [{**_USER, "kind": kind, "payload": payload}]}
    if isinstance(entries, list):
        return {**options, "entries": [{**_USER, **one} if isinstance(one, dict) else one for one in entries]}
    return options


def run_remove(arguments: argparse.Namespace) -> int:
    """Remove a schedule; one that is not there is "not found"."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import say, say_json
    from jobq.cli.target import open_target
    from jobq.errors import ScheduleNotFound

    with open_target(arguments) as jobs:
        jobs.schedules.leave_declared()
        if not jobs.schedules.remove(arguments.schedule):
            raise ScheduleNotFound(arguments.schedule, known=tuple(one.name for one in jobs.store.schedules()))
    if arguments.json:
        say_json({"schedule": arguments.schedule, "removed": True})
    else:
        say(f"schedule {arguments.schedule} removed")
    return Exit.DONE


def run_pause(arguments: argparse.Namespace) -> int:
    """Pause a schedule; pausing a paused one changes nothing and is no error."""
    from jobq.cli.target import login_name, open_target  # start-up cost

    with open_target(arguments) as jobs:
        who = login_name() if arguments.who is None else arguments.who
        jobs.schedules.leave_declared(arguments.schedule)
        changed = jobs.schedules.pause(arguments.schedule, who=who, why=arguments.why)
    return answer(arguments, "schedule", changed=changed, paused=True)


def run_resume(arguments: argparse.Namespace) -> int:
    """Resume a schedule; resuming one that is not paused changes nothing and is no error."""
    from jobq.cli.target import open_target  # start-up cost

    with open_target(arguments) as jobs:
        jobs.schedules.leave_declared(arguments.schedule)
        changed = jobs.schedules.resume(arguments.schedule)
    return answer(arguments, "schedule", changed=changed, paused=False)


def run_run(arguments: argparse.Namespace) -> int:
    """Enqueue the jobs of a schedule now."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import say, say_json
    from jobq.cli.target import open_target

    with open_target(arguments) as jobs:
        jobs.schedules.leave_declared(arguments.schedule)
        made = jobs.schedules.run_now(arguments.schedule, **_USER)
    if arguments.json:
        say_json(made)
        return Exit.DONE
    for one in made:
        say(f"job {one.job_id} {'enqueued' if one.created else 'holds the key already'} for {one.entry}")
    return Exit.DONE


def run_next(arguments: argparse.Namespace) -> int:
    """Print the next slots in UTC and in the schedule's zone."""
    from jobq.cli.exits import Exit  # start-up cost
    from jobq.cli.output import say_json, table
    from jobq.cli.target import open_target
    from jobq.errors import ScheduleNotFound
    from jobq.model.zones import load_zone

    with open_target(arguments) as jobs:
        known = {one.name: one for one in jobs.store.schedules()}
        now = jobs.clock.now()
    if arguments.schedule not in known:
        raise ScheduleNotFound(arguments.schedule, known=tuple(known))
    found, count = known[arguments.schedule], arguments.number or arguments.count or 5
    zone = load_zone(found.tz)
    slots = [(slot, slot.astimezone(zone)) for slot in found.slots(count, after=now)]
    if arguments.json:
        say_json({"schedule": found.name, "tz": found.tz, "slots": [{"utc": utc, "local": own} for utc, own in slots]})
        return Exit.DONE
    rows = ((utc, f"{own:%a %Y-%m-%d %H:%M:%S %z}") for utc, own in slots)
    table(("utc", found.tz), rows, none="the calendar ends before the next slot")
    return Exit.DONE
