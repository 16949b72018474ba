"""Rows that are committed behind others with higher numbers, as PostgreSQL lets them be."""

import psycopg

import jobq


def test_rows_that_become_visible_late_are_not_passed_over(jobs: jobq.JobQueue, postgres_dsn: str) -> None:
    """What waits is told by its mark, not by the last number that was seen; a row under way holds up nobody."""
    outbox = jobq.Outbox(jobs, connect=lambda: psycopg.connect(postgres_dsn))
    outbox.create_table()
    with psycopg.connect(postgres_dsn) as early, psycopg.connect(postgres_dsn) as late:
        with outbox.joined(early):
            first = jobs.enqueue("first")
        with outbox.joined(late):
            second = jobs.enqueue("second")
        late.commit()
        assert (first.outbox_id, second.outbox_id, outbox.relay.tick()) == (1, 2, 1)
        early.commit()
        assert outbox.relay.tick() == 1

    assert [job.kind for job in reversed(jobs.find())] == ["second", "first"]


def test_the_relay_waits_for_no_transaction_of_the_hosts(jobs: jobq.JobQueue, postgres_dsn: str) -> None:
    """One that is open, and has staged, hinders neither the publishing nor the marking of others."""
    outbox = jobq.Outbox(jobs, connect=lambda: psycopg.connect(postgres_dsn, options="-c lock_timeout=2s"))
    outbox.create_table()
    with psycopg.connect(postgres_dsn) as host, psycopg.connect(postgres_dsn) as open_one:
        with outbox.joined(open_one):
            jobs.enqueue("open")
        with outbox.joined(host):
            jobs.enqueue_many([jobq.NewJob("done") for _ in range(3)])
        host.commit()

        assert outbox.relay.tick() == 3
        open_one.rollback()
    assert outbox.pending().count == 0
