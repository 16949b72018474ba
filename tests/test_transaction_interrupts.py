"""A KeyboardInterrupt may strike anywhere in a transaction; neither its lock nor its meaning is lost by it."""

from concurrent.futures import ThreadPoolExecutor

import jobq
from tests.interrupts import strikes


def test_an_interrupt_at_any_moment_leaves_the_writer_free(jobs: jobq.JobQueue) -> None:
    """And row and job together, or neither; another thread can write at once."""
    with jobs.transaction() as tx:
        tx.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    number = 0

    def order() -> None:
        struck = False
        try:
            with jobs.transaction() as tx:
                tx.execute("INSERT INTO orders VALUES (?)", (number,))
                jobs.enqueue("mail", number)
        except KeyboardInterrupt:
            struck = True
        # Python may strike as it calls __exit__; then the block ends when the exception, which leads to it, is gone.
        if struck:
            raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as pool:
        for number in strikes(order, every=2):
            assert jobs.blocks.mine() is None
            assert jobs.store.engine.mine is None  # type: ignore[attr-defined]
            assert pool.submit(jobs.enqueue, "other").result(20).created
            with jobs.read() as snapshot:
                rows = {row for (row,) in snapshot.execute("SELECT id FROM orders")}
            mails = {jobs.get(job.id).payload for job in jobs.find(kind="mail", limit=None)}
            assert rows == mails, f"struck at {number}"
            jobs.cancel([job.id for job in jobs.find(kind="other", state="queued", limit=None)])
    assert number > 50
