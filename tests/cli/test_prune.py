"""``jobq prune``."""

from collections.abc import Callable
from io import StringIO

import pytest

import jobq
from tests.cli.conftest import Answer, Terminal

Cli = Callable[..., Answer]


@pytest.fixture
def ended(jobs: jobq.JobQueue) -> jobq.JobQueue:
    """A job queue with one queued job, two cancelled ones, and a cancelled parent of the queued one."""
    parent, *others = (jobs.enqueue("k").id for _ in range(3))
    jobs.enqueue("k", parent_id=parent)
    jobs.cancel([parent, *others])
    return jobs


def test_prune_counts_with_dry_run(cli: Cli, ended: jobq.JobQueue) -> None:
    """Nothing goes; people read what would."""
    answer = cli("prune", "--db", ended.path, "--older-than", "0", "--dry-run")

    assert (answer.code, answer.out) == (
        0, "2 jobs (2 cancelled) would be removed\n1 kept because of their children\n",
    )  # fmt: skip
    assert len(ended.find()) == 4


def test_prune_removes_with_yes(cli: Cli, ended: jobq.JobQueue) -> None:
    """And says so."""
    answer = cli("prune", "--db", ended.path, "--state", "cancelled", "--older-than", "0", "--yes")

    assert (answer.code, answer.out.splitlines()[0]) == (0, "2 jobs (2 cancelled) removed")
    assert len(ended.find()) == 2


def test_prune_speaks_json(cli: Cli, ended: jobq.JobQueue) -> None:
    """One document."""
    answer = cli("prune", "--db", ended.path, "--older-than", "0", "--yes", "--json")

    assert answer.json == {
        "counts": {"succeeded": 0, "failed": 0, "cancelled": 2}, "total": 2, "kept": 1, "dry_run": False,
    }  # fmt: skip


def test_prune_off_a_terminal_needs_yes(
    cli: Cli, ended: jobq.JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can be asked, so nothing goes; where there is nothing to remove there is nothing to ask."""
    monkeypatch.setattr("sys.stdin", StringIO("y\n"))
    answer = cli("prune", "--db", ended.path, "--older-than", "0")

    assert (answer.code, answer.out, len(ended.find())) == (2, "", 4)
    assert "--yes" in answer.err
    assert cli("prune", "--db", ended.path).code == 0


@pytest.mark.parametrize(("said", "left"), [("y\n", 2), ("n\n", 4), ("\n", 4), ("", 4)])
def test_prune_asks_at_a_terminal(
    cli: Cli, ended: jobq.JobQueue, monkeypatch: pytest.MonkeyPatch, said: str, left: int
) -> None:
    """Only a yes counts."""
    monkeypatch.setattr("sys.stdin", Terminal(said))
    answer = cli("prune", "--db", ended.path, "--older-than", "0")

    assert "Remove 2 jobs (2 cancelled)? [y/N]" in answer.err
    assert len(ended.find()) == left
    assert answer.code == (0 if left == 2 else 1)


def test_prune_uses_the_retention_of_the_configuration(cli: Cli, ended: jobq.JobQueue) -> None:
    """What ended just now is younger than a week."""
    answer = cli("prune", "--db", ended.path, "--yes")

    assert (answer.code, answer.out) == (0, "0 jobs removed\n")


def test_prune_refuses_what_has_not_ended(cli: Cli, ended: jobq.JobQueue) -> None:
    """A usage error that names the states."""
    answer = cli("prune", "--db", ended.path, "--state", "running", "--yes")

    assert answer.code == 2
    assert "succeeded, failed, cancelled" in answer.err
