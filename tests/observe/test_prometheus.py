"""The metrics for Prometheus."""

from collections.abc import Iterator

import attrs
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import jobq
from jobq.observe.prometheus import JobqCollector
from jobq.store.sqlite.engine import Engine
from jobq.store.sqlite.store import SqliteStore
from jobq.testing import FakeClock


@attrs.frozen
class Scraper:
    """A registry with the collector alone."""

    registry: CollectorRegistry
    collector: JobqCollector

    def value(self, name: str, **labels: str) -> float | None:
        """Return one sample of a scrape."""
        return self.registry.get_sample_value(name, labels)


@pytest.fixture
def scraper(jobs: jobq.JobQueue) -> Iterator[Scraper]:
    """A collector of the job queue."""
    collector = JobqCollector(jobs)
    registry = CollectorRegistry(auto_describe=True)
    registry.register(collector)
    yield Scraper(registry, collector)
    collector.close()


LANE = {"queue": "default", "kind": "a"}


def test_empty_job_queue_has_metrics(scraper: Scraper) -> None:
    """It is up, and nobody serves its queue; the text is what a scraper reads."""
    assert scraper.value("jobq_up") == 1
    assert scraper.value("jobq_runners", queue="default") == 0
    text = generate_latest(scraper.registry).decode()
    assert {family.name for family in text_string_to_metric_families(text)} >= {"jobq_up", "jobq_jobs", "jobq_attempts"}


def test_jobs_are_counted_at_the_scrape(jobs: jobq.JobQueue, scraper: Scraper, clock: FakeClock) -> None:
    """By queue, kind and state; the oldest runnable one by its age."""
    jobs.enqueue("a")
    jobs.enqueue("a", delay="1h")
    jobs.cancel(jobs.enqueue("a").id)
    clock.advance("7s")
    assert scraper.value("jobq_jobs", **LANE, state="queued") == 2
    assert scraper.value("jobq_jobs", **LANE, state="cancelled") == 1
    assert scraper.value("jobq_jobs", **LANE, state="running") == 0
    assert scraper.value("jobq_oldest_runnable_seconds", **LANE) == 7

    jobs.pause("default")

    assert scraper.value("jobq_oldest_runnable_seconds", **LANE) == 0
    assert scraper.value("jobq_queue_paused", queue="default") == 1


def test_attempts_and_their_durations_are_those_of_this_process(
    jobs: jobq.JobQueue, scraper: Scraper, clock: FakeClock
) -> None:
    """Each by what it ended as; what was given back has another word."""
    plan = ["fail", "defer", "succeed"]

    @jobs.job(retry=jobq.RetryPolicy(base=0))
    def a(payload: None) -> None:
        clock.advance("2s")
        match plan.pop(0):
            case "fail":
                raise ValueError
            case "defer":
                raise jobq.Deferred("later", delay=0)

    a.enqueue()
    jobq.Runner(jobs).drain()

    outcomes = {one: scraper.value("jobq_attempts_total", **LANE, outcome=one) for one in ("retried", "given_back")}
    assert outcomes == {"retried": 1, "given_back": 1}
    assert scraper.value("jobq_attempts_total", **LANE, outcome="succeeded") == 1
    assert scraper.value("jobq_attempt_duration_seconds_count", **LANE) == 3
    assert scraper.value("jobq_attempt_duration_seconds_sum", **LANE) == 6
    assert scraper.collector._started == {}


def test_run_that_was_lost_to_another_process_is_forgotten(
    jobs: jobq.JobQueue, scraper: Scraper, clock: FakeClock
) -> None:
    """Its end is not told here, and nothing of it stays in memory after the next scrape."""
    jobs.enqueue("a")
    kept = jobs.lease(kinds=[jobs.enqueue("b").job.kind], worker="w", length="1h")[0]  # type: ignore[union-attr]
    jobs.lease(kinds=["a"], worker="w", length="1s")
    engine = Engine(jobs.path, feed=lambda changes: None)
    other = SqliteStore(
        engine, now=clock.now, roll=lambda: 0.0, durability=jobq.Durability.BALANCED, busy_timeout=5, close=engine.close
    )
    clock.advance("2s")
    assert other.reclaim(hold_expired=False) == 1
    other.close()
    assert len(scraper.collector._started) == 2

    scraper.value("jobq_up")

    assert set(scraper.collector._started) == {kept.job.id}


def test_runner_that_is_alive_is_counted(jobs: jobq.JobQueue, scraper: Scraper) -> None:
    """For each queue that it serves, with its threads."""
    with jobq.Runner(jobs, workers={"default": 1, "mail": 3}):
        jobs.enqueue("a", queue="mail")
        assert scraper.value("jobq_runners", queue="mail") == 1
        assert scraper.value("jobq_workers", queue="mail") == 3


def test_scrape_of_a_closed_job_queue_says_so(jobs: jobq.JobQueue, scraper: Scraper) -> None:
    """The other metrics of the program come all the same."""
    jobs.close()

    assert scraper.value("jobq_up") == 0


def test_database_in_trouble_leaves_a_scrape_that_says_so(
    jobs: jobq.JobQueue, scraper: Scraper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What this process has counted is still there."""

    def broken(**_: object) -> None:
        raise jobq.StoreUnavailable(jobs.path, "gone")

    monkeypatch.setattr(jobs, "stats", broken)

    assert scraper.value("jobq_up") == 0
    assert scraper.value("jobq_jobs", **LANE, state="queued") is None


def test_closed_collector_takes_no_note(jobs: jobq.JobQueue, scraper: Scraper) -> None:
    """It leaves the bus."""
    scraper.collector.close()
    jobs.enqueue("a")
    jobs.lease(kinds=["a"], worker="w")

    assert scraper.collector._started == {}
