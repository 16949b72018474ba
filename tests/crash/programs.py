"""The other processes of the crash tests: ``python -m tests.crash.programs NAME PATH [SETTINGS as JSON]``.

A program says what happens on stdout, a JSON value per line, and works until its stdin is closed.
"""

import atexit
import ctypes
import json
import os
import sys
import threading
import time
from datetime import datetime
from typing import Any

import jobq
import jobq.runtime.shutdown
from jobq.testing import FakeClock


def say(*words: Any) -> None:
    """Tell the test something; whole lines only, whatever thread says it."""
    os.write(1, (json.dumps(words) + "\n").encode())


def opened(path: str, settings: dict[str, Any]) -> jobq.JobQueue:
    """Open the file with the configuration of the test and register the handlers."""
    jobs = jobq.open(path, config=jobq.Config(**settings.get("config", {})))
    log = settings.get("log")

    @jobs.job
    def append(payload: Any, job: jobq.RunningJob) -> None:
        file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{job.id}\n".encode())
        os.close(file)

    @jobs.job(max_attempts=3)
    def die(payload: Any, job: jobq.RunningJob) -> None:
        say("started", job.id)
        os._exit(9)

    @jobs.job(concurrency=1)
    def capped(payload: Any, job: jobq.RunningJob) -> None:
        say("started", job.id)
        time.sleep(600)

    @jobs.job
    def hold(payload: Any, job: jobq.RunningJob) -> str:
        say("started", job.id)
        told = job.cancel_token.wait(30)
        say("stopped", told and job.cancel_token.reason)
        return "first"

    @jobs.job
    def keep_gil(payload: Any, job: jobq.RunningJob) -> str:
        say("started", job.id)
        # PyDLL, unlike CDLL, does not let go of the interpreter's lock.
        ctypes.PyDLL(None).usleep(int(payload * 1_000_000))
        say("stopped", job.cancel_token.wait(10) and job.cancel_token.reason)
        return "first"

    @jobs.job
    def ignore(payload: Any, job: jobq.RunningJob) -> None:
        say("started", job.id)
        time.sleep(600)

    @jobs.job
    def split(payload: Any, job: jobq.RunningJob) -> str:
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            say("reaped", status)
        return "parent" if child else "child"

    @jobs.job(queue="first")
    def ping(payload: Any) -> str:
        return "pong"

    return jobs


def work(path: str, settings: dict[str, Any]) -> None:
    """Run jobs with threads until stdin is closed."""
    jobs = opened(path, settings)
    runner = jobq.Runner(jobs, workers=settings.get("workers"))
    runner.start()
    say("working", os.getpid())
    sys.stdin.read()
    runner.stop(grace=settings.get("grace", 5))
    say("done")


def leave(path: str, settings: dict[str, Any]) -> None:
    """Start a runner, wait for its first job, and return from main without a stop, or with one at exit."""
    jobs = opened(path, settings)
    runner = jobq.Runner(jobs)
    if settings["at_exit"]:
        atexit.register(runner.stop, grace=0.2)
    runner.start()
    sys.stdin.read()


def stop_stubborn(path: str, settings: dict[str, Any]) -> None:
    """Stop a runner whose handler will not end, then return from main."""
    jobq.runtime.shutdown.NOTICE = 0.3
    jobs = opened(path, settings)
    runner = jobq.Runner(jobs)
    runner.start()
    sys.stdin.read()
    begun = time.monotonic()
    runner.stop(grace=0.2)
    runner.stop()
    say("stopped", time.monotonic() - begun)


def lease(path: str, settings: dict[str, Any]) -> None:
    """Take a lease under a name, tell its token, and hang."""
    jobs = opened(path, settings)
    (taken,) = jobs.lease(worker="A")
    say("leased", taken.id, taken.token)
    sys.stdin.read()


def lease_and_complete(path: str, settings: dict[str, Any]) -> None:
    """Take a lease under a name, wait for the word, complete it, and tell what came of it."""
    jobs = opened(path, settings)
    (taken,) = jobs.lease(worker="A")
    say("leased", taken.id)
    sys.stdin.readline()
    try:
        jobs.complete(taken, "first")
    except jobq.JobqError as error:
        say("ended", type(error).__name__)
    else:
        say("ended", None)


def write(path: str, settings: dict[str, Any]) -> None:
    """Write back to back until stdin is closed."""
    jobs = opened(path, settings)
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
    say("writing")
    while not stop.is_set():
        jobs.enqueue_many([jobq.NewJob("unserved", "x" * 100) for _ in range(100)])


def backup(path: str, settings: dict[str, Any]) -> None:
    """Make a backup and hang after so many steps of it."""
    jobs, steps = opened(path, settings), settings["steps"]

    def hang(done: int, total: int) -> None:
        nonlocal steps
        steps -= 1
        if steps == 0:
            say("copying", done, total)
            sys.stdin.read()

    jobs.backup(settings["target"], force=True, progress=hang)


def enqueue(path: str, settings: dict[str, Any]) -> None:
    """Enqueue one job."""
    say("enqueued", opened(path, settings).enqueue("ping", queue="default").id)


def tick(path: str, settings: dict[str, Any]) -> None:
    """Wait for the word, tick several times, so many seconds apart, and tell the slots and what failed."""
    clock = FakeClock(datetime.fromisoformat(settings["at"]))
    jobs = jobq.open(path, clock=clock)
    scheduler = jobq.Runner(jobs).scheduler
    jobs.queues()
    say("ready")
    sys.stdin.readline()
    made, failed = [], []
    for _ in range(settings["ticks"]):
        clock.advance(settings.get("step", 0))
        try:
            made += [(one.schedule, one.slot and one.slot.isoformat()) for one in scheduler.tick() if one.created]
        except Exception as error:
            failed.append(repr(error))
    say("ticked", made, failed)


def fork(path: str, settings: dict[str, Any]) -> None:
    """Fork beside a running runner; the child says how it is, enqueues, and works with threads of its own."""
    jobs = opened(path, settings)
    runner = jobq.Runner(jobs, workers={"first": 1})
    with runner:
        jobs.enqueue("ping").wait(10)
        child = os.fork()
        if not child:
            health = runner.health()
            say("child", health.running, health.forked, health.workers)
            made = jobs.enqueue("ping", queue="second")
            own = jobq.Runner(jobs, workers={"second": 1})
            with own:
                say("ran", made.wait(10).state, own.health().workers)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        say("parent", status, runner.health().workers, jobs.enqueue("ping").wait(10).state)


if __name__ == "__main__":
    name, path, *rest = sys.argv[1:]
    globals()[name](path, json.loads(rest[0]) if rest else {})
