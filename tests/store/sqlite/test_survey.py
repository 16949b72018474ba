"""What goes on, read from one state of the file."""

from typing import Any

import apsw

from jobq.model.job import JobState
from jobq.model.stats import together
from jobq.store.sqlite.store import SqliteStore
from tests.store.bench import Workbench


def test_numbers_fit_together_whatever_others_commit_meanwhile(bench: Workbench, elsewhere: Workbench) -> None:
    """A job that starts after the first count is in none of the lists, and in all of them at the next look."""
    store = bench.store
    assert isinstance(store, SqliteStore)
    bench.start()
    began: list[int] = []

    def listen(event: dict[str, Any]) -> None:
        if "'succeeded'" in event["sql"] and not began:
            began.append(elsewhere.start().id)

    store.engine.read(lambda conn: conn.trace_v2(apsw.SQLITE_TRACE_STMT, listen), busy_timeout=1)
    first, second = (store.survey(failures=0) for _ in range(2))

    assert began
    for found, number in ((first, 1), (second, 2)):
        assert together(found.lanes).states[JobState.RUNNING] == len(found.running) == number
