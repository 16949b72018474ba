"""Schedules declared beside handlers, and modules that are registered as a whole."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import attrs
import pytest

import jobq
from jobq.testing import FakeClock
from tests.conftest import ErrorLog


@attrs.frozen
class Size:
    """A payload."""

    value: int


def measure(payload: Size) -> None:
    """Do nothing."""


def module(name: str, **exported: Any) -> ModuleType:
    """Return a module that exports these."""
    made = ModuleType(name)
    vars(made).update(exported)
    return made


def tasks(*schedules: str, name: str = "shop.tasks") -> ModuleType:
    """Return a module with one handler and these schedules."""
    handlers = jobq.Handlers()

    @handlers.job
    def sync(payload: Any) -> None:
        """Do nothing."""

    for schedule in schedules:
        handlers.schedule(schedule, every="5m", kind=sync)
    return module(name, handlers=handlers, sync=sync)


def names(jobs: jobq.JobQueue) -> list[str]:
    """Return the names of the stored schedules."""
    return [one.name for one in jobs.schedules.list()]


Again = Callable[..., jobq.JobQueue]


def test_a_module_brings_handlers_and_schedules(jobs: jobq.JobQueue, clock: FakeClock) -> None:
    """Its handlers run, and enqueue on the job queue that registered them."""
    shop = tasks("a", "b")
    jobs.handlers.register_module(shop)
    jobs.handlers.register_module(shop)

    assert jobs.handlers.kinds() == ("sync",)
    assert names(jobs) == ["a", "b"]
    assert {one.module for one in jobs.schedules.list()} == {"shop.tasks"}
    assert shop.sync.enqueue({}).job.kind == "sync"
    assert jobq.Runner(jobs).drain(until="5m").succeeded == 3


def test_a_runner_stores_them_at_its_start(jobs: jobq.JobQueue) -> None:
    """Before anybody asks for a schedule."""
    jobs.handlers.register_module(tasks("a"))
    assert jobs.store.schedules() == []
    jobq.Runner(jobs).bootstrap()
    assert [one.name for one in jobs.store.schedules()] == ["a"]


def test_schedules_of_a_registry_that_is_opened_are_stored(open_again: Again) -> None:
    """Without a module, too; they belong to none."""
    handlers = jobq.Handlers()
    handlers.schedule("a", every=60, kind="x")
    jobs = open_again(handlers=handlers)
    handlers.schedule("b", every=60, kind="x")

    assert [(one.name, one.module) for one in jobs.schedules.list()] == [("a", None), ("b", None)]


@pytest.mark.parametrize(("missing", "left"), [("keep", ["a", "b", "hand"]), ("remove", ["b", "hand"])])
def test_what_disappears_from_the_code_goes_or_stays(open_again: Again, missing: str, left: list[str]) -> None:
    """As the caller says; what was added by hand and what other modules declare stays."""
    first = open_again()
    first.handlers.register_module(tasks("a", "b"), missing_schedules=missing)
    first.schedules.add("hand", every=60, kind="x")
    second = open_again()
    second.handlers.register_module(tasks("b"), missing_schedules=missing)
    jobq.Runner(second).bootstrap()

    assert names(second) == left


def test_a_module_without_schedules_sweeps_its_old_ones(open_again: Again) -> None:
    """Also when it has no Handlers any more."""
    first = open_again()
    first.handlers.register_module(tasks("a"))
    assert names(first) == ["a"]
    second = open_again()
    second.handlers.register_module(module("shop.tasks"), missing_schedules="remove")
    assert names(second) == []


def test_one_removed_by_hand_comes_back_at_the_next_start(jobs: jobq.JobQueue) -> None:
    """Not before."""
    jobs.handlers.register_module(tasks("a"))
    runner = jobq.Runner(jobs)
    runner.bootstrap()
    jobs.schedules.remove("a")
    runner.scheduler.tick()
    assert names(jobs) == []
    runner.bootstrap()
    assert names(jobs) == ["a"]


def test_a_pause_and_a_next_run_survive_starts(jobs: jobq.JobQueue, open_again: Again, clock: FakeClock) -> None:
    """The code says what there is, the operator whether it runs."""
    jobs.handlers.register_module(tasks("a"))
    jobs.schedules.pause("a", who="ada")
    before = jobs.schedules.get("a")
    clock.advance("1h")
    again = open_again()
    again.handlers.register_module(tasks("a"))
    jobq.Runner(again).bootstrap()

    assert again.schedules.get("a") == before


def test_a_bad_declaration_is_refused_where_it_stands() -> None:
    """Timing at once; a payload when it meets its handler."""
    handlers = jobq.Handlers()
    with pytest.raises(jobq.CronError):
        handlers.schedule("a", cron="* * *", kind="x")
    with pytest.raises(jobq.ArgumentError):
        handlers.schedule("a", every=0, kind="x")


def test_a_payload_that_does_not_fit_stops_the_start(jobs: jobq.JobQueue) -> None:
    """Nothing was stored, and jobs can be enqueued all the same."""

    jobs.handlers.schedule("good", every=60, kind="count", payload=1)
    jobs.handlers.schedule("bad", every=60, kind="count", payload="one")

    @jobs.job
    def count(payload: int) -> None:
        """Do nothing."""

    with pytest.raises(jobq.PayloadError):
        jobq.Runner(jobs).bootstrap()

    assert jobs.store.schedules() == []
    assert jobs.enqueue("count", 1).created


@pytest.mark.parametrize("in_view", [False, True])
def test_a_payload_that_does_not_fit_a_registered_kind_is_refused_at_once(open_again: Again, in_view: bool) -> None:
    """Where it is declared, in the registry of the kind and in one that meets it in a job queue; it is not kept."""
    own, other = jobq.Handlers(), jobq.Handlers()
    jobs = open_again(handlers=[own, other])

    @own.job
    def count(payload: int) -> None:
        """Do nothing."""

    with pytest.raises(jobq.PayloadError):
        (other if in_view else own).schedule("bad", every=60, kind="count", payload="one")
    with pytest.raises(jobq.PayloadError):
        own.schedule("bad", every=60, kind=count, payload="one")

    assert (own.declared.schedules(), jobs.handlers.declared.schedules()) == ((), ())


def test_one_declared_late_that_does_not_fit_is_told_once_and_the_others_fire(
    jobs: jobq.JobQueue, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Ticks go on; when its handler is there it is stored as well."""
    runner = jobq.Runner(jobs)
    runner.bootstrap()
    jobs.handlers.schedule("good", every=60, kind="a")
    jobs.handlers.schedule("typed", every=60, payload=Size(7))
    jobs.handlers.schedule("endless", every=60, kind="a", anchor=datetime.max.replace(tzinfo=UTC))
    with caplog.at_level(logging.ERROR):
        fired: list[str] = []
        for _ in range(3):
            clock.advance("61s")
            fired.extend(one.schedule for one in runner.scheduler.tick())
        assert names(jobs) == ["good"]
    told = [record.getMessage() for record in caplog.records if "jobq.schedule.failed" in record.getMessage()]

    assert fired == ["good", "good"]
    assert [sum(name in text for text in told) for name in ("good", "typed", "endless")] == [0, 1, 1]
    jobs.job(name="measure")(measure)
    assert names(jobs) == ["good", "typed"]


def test_a_misfit_keeps_its_row(jobs: jobq.JobQueue, open_again: Again, errors: ErrorLog) -> None:
    """Its module has not dropped it, so the sweep leaves it alone."""
    jobs.handlers.register_module(tasks("a"), missing_schedules="remove")
    assert names(jobs) == ["a"]
    again = open_again()
    again.handlers.retire("sync")
    shop = module("shop.tasks", handlers=jobq.Handlers())
    shop.handlers.schedule("a", every="5m", kind="sync")
    again.handlers.register_module(shop, missing_schedules="remove")
    assert names(again) == ["a"]
    assert errors.take() == ["jobq.schedule.failed"]


def test_schedules_of_a_private_registry_come_too(jobs: jobq.JobQueue) -> None:
    """Of one with an underscore and of one that ``__all__`` leaves out; private handlers stay private."""
    for number, exported in enumerate(({}, {"__all__": ["sync"]})):
        shop = tasks(f"s{number}", name=f"shop.m{number}")
        registry, sync = shop.handlers, shop.sync
        key = "handlers" if exported else "_handlers"
        registry.job(name=f"hidden{number}")(lambda payload: None)
        if number:
            sync = jobq.Handlers().job(name="other")(lambda payload: None)
        jobs.handlers.register_module(module(shop.__name__, **{key: registry, "sync": sync}, **exported))

    assert [(one.name, one.module) for one in jobs.handlers.declared.schedules()] == [
        ("s0", "shop.m0"), ("s1", "shop.m1"),
    ]  # fmt: skip
    assert jobs.handlers.kinds() == ("other", "sync")


def test_an_unknown_option_names_the_verb(jobs: jobq.JobQueue) -> None:
    """Not a function that nobody called."""
    options: Any = {"evry": 60, "kind": "x"}
    with pytest.raises(TypeError, match=r"^schedule\(\) .*'evry'"):
        jobs.handlers.schedule("a", **options)
    with pytest.raises(TypeError, match=r"^add\(\) .*'evry'"):
        jobs.schedules.add("a", **options)


def test_two_schedules_of_one_name_are_refused(jobs: jobq.JobQueue, open_again: Again) -> None:
    """In one registry, and where two come together; the same twice is one."""
    one, other = jobq.Handlers(), jobq.Handlers()
    one.schedule("a", every=60, kind="x")
    one.schedule("a", every=60, kind="x")
    with pytest.raises(jobq.ConfigError):
        one.schedule("a", every=61, kind="x")
    other.schedule("a", every=61, kind="x")
    with pytest.raises(jobq.ConfigError):
        open_again(handlers=[one, other])


def test_a_handler_gets_the_name_that_it_is_exported_under(jobs: jobq.JobQueue) -> None:
    """Unless its registration names a kind; private ones are left out, ``__all__`` is obeyed."""
    handlers = jobq.Handlers()

    def function(payload: Any) -> None:
        """Do nothing."""

    exported = module(
        "m", send=handlers.job(function), renamed=handlers.job(name="explicit")(function), _hidden=jobq.Handlers().job(
            name="hidden")(function), unlisted=jobq.Handlers().job(name="unlisted")(function), number=7,
        __all__=["send", "renamed", "number"],
    )  # fmt: skip
    jobs.handlers.register_module(exported)

    assert jobs.handlers.kinds() == ("explicit", "send")
    assert exported.send.enqueue().job.kind == "send"
    assert jobs.enqueue(exported.renamed).job.kind == "explicit"


def test_two_handlers_of_one_name_are_refused(jobs: jobq.JobQueue) -> None:
    """In one module, or in two; nothing of the second is registered."""

    def function(payload: Any) -> None:
        """Do nothing."""

    jobs.handlers.register_module(module("m", send=jobq.Handlers().job(function)))
    twice = module("n", send=jobq.Handlers().job(function), other=jobq.Handlers().job(function))
    with pytest.raises(jobq.ConfigError):
        jobs.handlers.register_module(twice)
    assert jobs.handlers.kinds() == ("send",)
    clash = module("o", a=jobq.Handlers().job(name="k")(function), b=jobq.Handlers().job(name="k")(function))
    with pytest.raises(jobq.ConfigError):
        jobs.handlers.register_module(clash)
    alias = jobq.Handlers().job(function)
    with pytest.raises(jobq.ConfigError):
        jobs.handlers.register_module(module("p", a=alias, b=alias))
    assert jobs.handlers.kinds() == ("send",)


@pytest.mark.parametrize("bad", ["shop.tasks", None, 7])
def test_a_module_is_needed(jobs: jobq.JobQueue, bad: Any) -> None:
    """Not its name."""
    with pytest.raises(jobq.ArgumentError):
        jobs.handlers.register_module(bad)
    with pytest.raises(jobq.ArgumentError):
        jobs.handlers.register_module(module("m"), missing_schedules="drop")
