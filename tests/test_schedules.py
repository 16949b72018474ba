"""``jobs.schedules``: adding with every kind of input, refusals that write nothing, events and log lines."""

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest

import jobq
from jobq.testing import FakeClock
from tests.conftest import ErrorLog

START = datetime(2024, 1, 1, tzinfo=UTC)


@attrs.frozen
class Mail:
    """A typed payload."""

    to: str


def events_of(jobs: jobq.JobQueue, kind: type[jobq.Event]) -> list[Any]:
    """Return a list that fills with the events of a type."""
    told: list[Any] = []
    jobs.bus.subscribe(kind, told.append)
    return told


def test_a_schedule_runs_handlers_that_see_their_slot(jobs: jobq.JobQueue, runner: jobq.Runner) -> None:
    """Slot and catch_up are on the running job; the drain with until visits each slot exactly."""
    seen: list[Any] = []

    @jobs.job
    def sync(payload: Any, job: jobq.RunningJob) -> None:
        seen.append((payload, job.slot, job.catch_up, jobs.clock.now()))

    jobs.schedules.add("sync", every="5m", kind="sync", payload={"n": 1})
    assert runner.drain().claimed == 0
    assert runner.drain(until="11m").succeeded == 2

    slots = [START + timedelta(minutes=5), START + timedelta(minutes=10)]
    assert seen == [({"n": 1}, slot, False, slot) for slot in slots]


def test_without_until_no_schedule_ticks(jobs: jobq.JobQueue, runner: jobq.Runner, clock: FakeClock) -> None:
    """A test that drains sees only what it enqueued."""
    jobs.job(name="sync")(lambda payload: None)
    jobs.schedules.add("sync", every="5m", kind="sync")
    clock.advance("6m")

    assert (runner.drain().claimed, runner.run_once()) == (0, False)
    assert [one.schedule for one in runner.scheduler.tick()] == ["sync"]
    assert runner.drain().claimed == 1


def test_kinds_are_named_as_for_an_enqueue(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """By name, by handler, or by a payload of a registered class; entries are values, mappings or new jobs."""

    @jobs.job(dedupe_key=lambda payload: f"mail:{payload.to}")
    def send(payload: Mail) -> None:
        """Do nothing."""

    jobs.schedules.add("by-name", every=60, kind="send", payload={"to": "a"})
    jobs.schedules.add("by-handler", every=60, kind=send, payload=Mail("b"))
    jobs.schedules.add("by-payload", every=60, payload=Mail("c"))
    jobs.schedules.add(
        "entries",
        every=60,
        entries=[jobq.Entry("send", {"to": "d"}), {"kind": "other", "name": "x"}, jobq.NewJob(send, Mail("e"))],
    )
    clock.advance(60)
    made = [(one.schedule, one.entry, jobs.get(one.job_id)) for one in jobs.schedules.tick()]

    assert sorted((name, entry, job.kind, str(job.payload), job.dedupe_key) for name, entry, job in made) == [
        ("by-handler", "send", "send", "{'to': 'b'}", "mail:b"),
        ("by-name", "send", "send", "{'to': 'a'}", "mail:a"),
        ("by-payload", "send", "send", "{'to': 'c'}", "mail:c"),
        ("entries", "send:1", "send", "{'to': 'd'}", "mail:d"),
        ("entries", "send:2", "send", "{'to': 'e'}", "mail:e"),
        ("entries", "x", "other", "None", "schedule:entries:2024-01-01T00:01:00Z:x"),
    ]


REFUSED = [
    pytest.param({"cron": "61 * * * *"}, jobq.CronError, id="expression"),
    pytest.param({"cron": "0 0 31 2 *"}, jobq.CronError, id="b38-never-fires"),
    pytest.param({"cron": 5}, jobq.ArgumentError, id="no-text"),
    pytest.param({"cron": ["* * * * *"]}, jobq.ArgumentError, id="a-list"),
    pytest.param({"cron": "0 0 * * *", "tz": "Mars/Olympus"}, jobq.ArgumentError, id="zone"),
    pytest.param({"every": 60, "tz": "Mars/Olympus"}, jobq.ArgumentError, id="zone-of-an-interval"),
    pytest.param({"every": 60, "tz": None}, jobq.ArgumentError, id="no-zone"),
    pytest.param({"every": 0}, jobq.ArgumentError, id="period-zero"),
    pytest.param({"every": "-5m"}, jobq.ArgumentError, id="period-below-zero"),
    pytest.param({"every": float("nan")}, jobq.ArgumentError, id="period-nan"),
    pytest.param({"every": True}, jobq.ArgumentError, id="period-bool"),
    pytest.param({"every": "3000000d"}, jobq.ArgumentError, id="no-slot-in-the-calendar"),
    pytest.param({}, jobq.ArgumentError, id="no-timing"),
    pytest.param({"every": 60, "cron": "* * * * *"}, jobq.ArgumentError, id="two-timings"),
    pytest.param({"every": 60, "payload": {"to": 7}}, jobq.PayloadError, id="payload-does-not-fit"),
    pytest.param({"every": 60, "payload": {"to": float("nan")}}, jobq.PayloadError, id="payload-no-json"),
    pytest.param({"every": 60, "payload": Mail("x" * 2_000_000)}, jobq.PayloadTooLarge, id="payload-too-large"),
    pytest.param({"every": 60, "kind": "gone"}, jobq.RetiredKind, id="retired"),
    pytest.param({"every": 60, "kind": ""}, jobq.ArgumentError, id="empty-kind"),
    pytest.param({"every": 60, "kind": None}, jobq.ArgumentError, id="no-kind"),
    pytest.param({"every": 60, "entries": []}, jobq.ArgumentError, id="kind-and-entries"),
    pytest.param({"every": 60, "kind": None, "entries": []}, jobq.ArgumentError, id="no-entries"),
    pytest.param({"every": 60, "kind": None, "entries": "send"}, jobq.ArgumentError, id="entries-text"),
    pytest.param({"every": 60, "kind": None, "entries": [7]}, jobq.ArgumentError, id="entry-number"),
    pytest.param({"every": 60, "kind": None, "entries": [{"kind": "a", "x": 1}]}, jobq.ArgumentError, id="entry-field"),
    pytest.param({"every": 60, "kind": None, "entries": [{}]}, jobq.ArgumentError, id="entry-without-kind"),
    pytest.param(
        {"every": 60, "kind": None, "entries": [jobq.Entry("a", name="n"), jobq.Entry("b", name="n")]},
        jobq.ArgumentError,
        id="entries-of-one-name",
    ),
    pytest.param(
        {"every": 60, "kind": None, "entries": [jobq.Entry("a", dedupe_key="k"), jobq.Entry("b", dedupe_key="k")]},
        jobq.ArgumentError,
        id="entries-of-one-key",
    ),
    pytest.param(
        {"every": 60, "kind": None, "entries": [jobq.NewJob("a", delay=1)]}, jobq.ArgumentError, id="entry-with-a-delay"
    ),
    pytest.param({"every": 60, "queue": "No"}, jobq.ArgumentError, id="queue"),
    pytest.param({"every": 60, "priority": 1001}, jobq.ArgumentError, id="priority"),
    pytest.param({"every": 60, "catch_up": "twice"}, jobq.ArgumentError, id="catch-up"),
    pytest.param({"every": 60, "max_catch_up": 0}, jobq.ArgumentError, id="max-catch-up"),
    pytest.param({"every": 60, "jitter": -1}, jobq.ArgumentError, id="jitter"),
    pytest.param({"every": 60, "anchor": datetime(2024, 1, 1)}, jobq.ArgumentError, id="naive"),  # noqa: DTZ001
]


@pytest.mark.parametrize(("options", "error"), REFUSED)
def test_what_is_refused_writes_nothing(
    jobs: jobq.JobQueue, options: dict[str, Any], error: type[jobq.JobqError]
) -> None:
    """A new name makes no row, and an existing one stays as it was."""

    @jobs.job
    def send(payload: Mail) -> None:
        """Do nothing."""

    jobs.handlers.retire("gone")
    before = jobs.schedules.add("there", every=60, kind="send", payload={"to": "a"})
    for name in ("new", "there"):
        with pytest.raises(error):
            jobs.schedules.add(name, **{"kind": "send", "payload": {"to": "b"}, **options})  # type: ignore[arg-type]

    assert jobs.schedules.list() == [before]


@pytest.mark.parametrize("name", ["", 7, None])
def test_a_name_is_text(jobs: jobq.JobQueue, name: Any) -> None:
    """Of at least one character."""
    with pytest.raises(jobq.ArgumentError):
        jobs.schedules.add(name, every=60, kind="a")


def test_get_and_remove(jobs: jobq.JobQueue) -> None:
    """An unknown name is an error for one and no news for the other."""
    stored = jobs.schedules.add("s", every=60, kind="a")
    assert jobs.schedules.get("s") == stored
    assert (jobs.schedules.remove("s"), jobs.schedules.remove("s")) == (True, False)
    with pytest.raises(jobq.ScheduleNotFound):
        jobs.schedules.get("s")


def test_pauses_are_told_once_and_redacted(jobs: jobq.JobQueue) -> None:
    """Each change is an event; who and why are free of secrets."""
    told = events_of(jobs, jobq.ScheduleStateChanged)
    jobs.schedules.add("s", every=60, kind="a")
    changed = [
        jobs.schedules.pause("s", who="ada", why="password=hunter2"),
        jobs.schedules.pause("s"),
        jobs.schedules.resume("s"),
        jobs.schedules.resume("s"),
    ]

    assert changed == [True, False, True, False]
    assert [(event.schedule, event.paused) for event in told] == [("s", True), ("s", False)]
    jobs.schedules.pause("s", why="password=hunter2")
    assert "hunter2" not in str(jobs.schedules.get("s"))


def test_firing_is_told_after_the_job_is_there(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """One event for each entry; the job's own event comes first."""
    order: list[Any] = []
    jobs.bus.subscribe(jobq.JobStateChanged, lambda event: order.append(event.job_id))
    told = events_of(jobs, jobq.ScheduleFired)
    jobs.bus.subscribe(jobq.ScheduleFired, lambda event: order.append(jobs.get(event.job_id).slot))
    jobs.schedules.add("s", every=60, kind="a")
    clock.advance(61)
    (made,) = jobs.schedules.tick()

    assert order == [made.job_id, made.slot]
    assert told == [
        jobq.ScheduleFired(
            schedule="s", slot=made.slot, entry="a", job_id=made.job_id, created=True, catch_up=False, at=clock.now()
        )
    ]


def test_run_now_leaves_the_next_run_alone(jobs: jobq.JobQueue) -> None:
    """It is told as well, without a slot."""
    told = events_of(jobs, jobq.ScheduleFired)
    stored = jobs.schedules.add("s", every=60, kind="a")
    (made,) = jobs.schedules.run_now("s")

    assert jobs.schedules.get("s") == stored
    assert (jobs.get(made.job_id).schedule, made.slot, told[0].slot) == ("s", None, None)


def test_next_runs_are_slots_from_now(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """As many as asked for, due ones left out; a paused schedule has them too."""
    jobs.schedules.add("s", cron="0 7 * * *", tz="America/New_York", kind="a")
    jobs.schedules.pause("s")
    clock.advance("35h")
    at_noon = [datetime(2024, 1, day, 12, tzinfo=UTC) for day in (2, 3, 4)]
    assert jobs.schedules.next_runs("s", 2) == at_noon[:2]
    clock.advance("1h")
    assert jobs.schedules.next_runs("s", 2) == at_noon[1:]
    assert jobs.schedules.next_runs("s", 0) == []
    with pytest.raises(jobq.ArgumentError):
        jobs.schedules.next_runs("s", -1)


def test_next_runs_end_with_the_calendar(jobs: jobq.JobQueue) -> None:
    """Fewer than asked for is no error."""
    jobs.schedules.add("s", every=timedelta(days=365 * 5_000), kind="a")
    assert len(jobs.schedules.next_runs("s", 3)) == 1


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [pytest.param(None, 5, id="default"), pytest.param(7, 7, id="configured")],
)
def test_attempts_come_from_the_configuration(
    clock: FakeClock, attempts: int | None, expected: int
) -> None:
    """As for an enqueue by a process without the handler; a handler's own number wins."""
    with jobq.open(clock=clock, config=jobq.Config(max_attempts=attempts)) as jobs:
        jobs.job(name="own", max_attempts=2)(lambda payload: None)
        jobs.schedules.add("s", every=60, entries=[jobq.Entry("own"), jobq.Entry("unknown")])
        clock.advance(60)
        made = [jobs.get(one.job_id).max_attempts for one in jobs.schedules.tick()]

    assert made == [2, expected]


def test_trouble_is_logged_once(
    jobs: jobq.JobQueue, clock: FakeClock, errors: ErrorLog, caplog: pytest.LogCaptureFixture
) -> None:
    """An error when a schedule cannot fire, a warning for slots that collapsed, a line when it is mended."""
    caplog.set_level(logging.INFO, "jobq.schedules")
    jobs.schedules.add("s", every=60, kind="a")
    jobs.handlers.retire("a")
    clock.advance(600)
    assert (jobs.schedules.tick(), jobs.schedules.tick()) == ([], [])
    assert errors.take() == ["jobq.schedule.failed"]
    jobs.job(name="a")(lambda payload: None)
    jobs.register()
    assert len(jobs.schedules.tick()) == 1

    told = [record.getMessage().split()[0] for record in caplog.records]
    assert told == [f"jobq.schedule.{what}" for what in ("added", "failed", "fired", "mended", "collapsed")]


def test_schedules_survive_reopening(jobs: jobq.JobQueue, open_again: Any, clock: FakeClock) -> None:
    """They live in the file; another opener ticks them."""
    jobs.schedules.add("s", every=60, kind="a")
    other = open_again()
    clock.advance(60)

    assert [one.schedule for one in other.schedules.tick()] == ["s"]
    assert jobs.schedules.tick() == []


def test_a_job_takes_the_deferrals_of_its_kind_whatever_the_schedule_names(
    jobs: jobq.JobQueue, clock: FakeClock
) -> None:
    """By a slot and by hand, with and without a queue and a priority of the schedule; no bound stays none."""
    jobs.job(name="bounded", max_deferrals=2)(lambda payload: None)
    jobs.job(name="free")(lambda payload: None)
    entries = [jobq.Entry("bounded"), jobq.Entry("free")]
    jobs.schedules.add("named", every=60, entries=entries, queue="q", priority=3)
    jobs.schedules.add("plain", every=60, entries=entries)
    clock.advance(60)
    made = [*jobs.schedules.tick(), *jobs.schedules.run_now("named")]

    assert [jobs.get(one.job_id).max_deferrals for one in made] == [2, None] * 3
    assert jobs.enqueue("free", queue="q", priority=3).job.max_deferrals is None


def test_list_and_next_runs_know_that_a_clock_came_back(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """They say what the next tick will write, for an interval with its phase."""
    clock.jump("1000d")
    jobs.schedules.add("cron", cron="0 7 * * *", kind="a")
    jobs.schedules.add("every", every="5m", kind="a")
    clock.jump("-1000d")
    listed = [one.next_run for one in jobs.schedules.list()]

    assert listed == [START + timedelta(hours=7), START + timedelta(minutes=5)]
    assert [jobs.schedules.next_runs(name, 1)[0] for name in ("cron", "every")] == listed
    jobs.schedules.tick()
    assert [one.next_run for one in jobs.store.schedules()] == listed


def test_run_now_may_say_who_asked(jobs: jobq.JobQueue) -> None:
    """Instead of the entries; nobody else is let in."""
    jobs.schedules.add("s", every=60, entries=[jobq.Entry("a", actor="agent")])
    made = [jobs.schedules.run_now("s", actor=actor)[0] for actor in ("user", None)]

    assert [jobs.get(one.job_id).actor for one in made] == ["user", "agent"]
    with pytest.raises(jobq.ArgumentError):
        jobs.schedules.run_now("s", actor="nobody")


def test_an_unknown_name_is_answered_with_ten_others(jobs: jobq.JobQueue) -> None:
    """The rest are counted; the error has them all."""
    for number in range(12):
        jobs.schedules.add(f"s{number:02}", every=60, kind="a")
    for refused in (jobs.schedules.get, jobs.schedules.pause):
        with pytest.raises(jobq.ScheduleNotFound) as caught:
            refused("t")
        assert str(caught.value.fix).endswith("s08, s09 and 2 more.")
        assert len(caught.value.known) == 12
