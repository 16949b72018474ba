"""``jobq schedule``."""

from collections.abc import Callable
from pathlib import Path

import pytest

import jobq
from tests.cli.conftest import Answer

Cli = Callable[..., Answer]


def test_add_makes_the_database_and_says_the_next_slot(cli: Cli, tmp_path: Path) -> None:
    """Adding the same again changes nothing; every option is stored."""
    path = tmp_path / "new.db"
    command = (
        "schedule", "add", "digest", "send", '{"to": "a"}', "--cron", "0 7 * * mon-fri", "--tz", "Europe/Berlin",
        "--queue", "mail", "--priority", "user", "--catch-up", "all", "--max-catch-up", "3", "--jitter", "5s",
        "--db", path, "--json",
    )  # fmt: skip
    first, again = cli(*command), cli(*command)

    assert (first.code, first.json) == (0, again.json)
    stored = first.json
    assert (stored["cron"], stored["tz"], stored["queue"], stored["priority"]) == (
        "0 7 * * mon-fri", "Europe/Berlin", "mail", 100,
    )  # fmt: skip
    assert (stored["catch_up"], stored["max_catch_up"], stored["jitter"]) == ("all", 3, 5.0)
    assert (stored["entries"][0]["kind"], stored["entries"][0]["payload"]) == ("send", {"to": "a"})


def test_add_takes_an_interval_an_anchor_and_several_entries(cli: Cli, jobs: jobq.JobQueue) -> None:
    """Entries are a JSON list."""
    answer = cli(
        "schedule", "add", "s", "--every", "1h30m", "--anchor", "2024-01-01T00:00:00+01:00", "--entries",
        '[{"kind": "a"}, {"kind": "b", "queue": "q"}]', "--db", jobs.path,
    )  # fmt: skip
    stored = jobs.schedules.get("s")

    assert (answer.code, answer.out[:31]) == (0, "schedule s stored, next slot 20")
    assert [line.partition(";")[0][-6:] for line in answer.err.splitlines()] == ["kind a", "kind b"]
    assert (stored.every, stored.anchor.isoformat()) == (5_400, "2023-12-31T23:00:00+00:00")
    assert [(entry.kind, entry.queue) for entry in stored.entries] == [("a", None), ("b", "q")]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("send", "--cron", "99 * * * *"), id="expression"),
        pytest.param(("send", "--cron", "0 0 * * *", "--tz", "Mars/Olympus"), id="zone"),
        pytest.param(("send", "--every", "0"), id="period"),
        pytest.param(("send",), id="no-timing"),
        pytest.param(("--every", "5m"), id="no-kind"),
        pytest.param(("send", "{", "--every", "5m"), id="payload"),
        pytest.param(("send", "--every", "5m", "--catch-up", "twice"), id="catch-up"),
        pytest.param(("--every", "5m", "--entries", "[7]"), id="entries"),
    ],
)
def test_add_refuses_what_the_library_refuses(cli: Cli, jobs: jobq.JobQueue, arguments: tuple[str, ...]) -> None:
    """As a usage error; nothing is stored."""
    assert cli("schedule", "add", "s", *arguments, "--db", jobs.path).code == 2
    assert jobs.schedules.list() == []


def test_list_shows_timing_pause_and_error(cli: Cli, jobs: jobq.JobQueue) -> None:
    """One line each."""
    jobs.schedules.add("digest", cron="0 7 * * *", tz="Europe/Berlin", kind="send")
    jobs.schedules.add("sync", every="90s", kind="sync")
    jobs.schedules.pause("sync", who="ada", why="disk\nfull")
    shown = cli("schedule", "list", "--db", jobs.path)

    assert (shown.code, len(shown.out.splitlines())) == (0, 3)
    assert "0 7 * * * Europe/Berlin" in shown.out
    assert "every 1m30s" in shown.out
    assert "  ada  " in shown.out
    assert [one["name"] for one in cli("schedule", "list", "--db", jobs.path, "--json").json] == ["digest", "sync"]


def test_listing_does_not_bring_back_what_was_removed(
    cli: Cli, jobs: jobq.JobQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A schedule of the code comes back at a start, not when somebody looks."""
    (tmp_path / "shop_app.py").write_text(
        "import jobq\nhandlers = jobq.Handlers()\nhandlers.schedule('s', every=60, kind='a')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert cli("schedule", "remove", "s", "-A", "shop_app:handlers", "--db", jobs.path).code == 0
    assert cli("schedule", "list", "-A", "shop_app:handlers", "--db", jobs.path, "--json").json == []


def test_pause_resume_and_remove_say_what_changed(cli: Cli, jobs: jobq.JobQueue) -> None:
    """Doing it twice is no error, but for removing what is not there."""
    jobs.schedules.add("s", every=60, kind="a")
    verbs = [("pause", "--who", "ada"), ("pause",), ("resume",), ("resume",), ("remove",), ("remove",)]
    answers = [cli("schedule", verb, "s", *options, "--db", jobs.path) for verb, *options in verbs]

    assert [answer.code for answer in answers] == [0, 0, 0, 0, 0, 3]
    assert [answer.out.strip() for answer in answers[:5]] == [
        "schedule s paused", "schedule s was paused already", "schedule s resumed", "schedule s was not paused",
        "schedule s removed",
    ]  # fmt: skip
    jobs.schedules.add("s", every=60, kind="a")
    assert cli("schedule", "pause", "s", "--db", jobs.path, "--json").json == {
        "schedule": "s", "paused": True, "changed": True,
    }  # fmt: skip
    assert cli("schedule", "remove", "s", "--db", jobs.path, "--json").json == {"schedule": "s", "removed": True}


def test_run_enqueues_now(cli: Cli, jobs: jobq.JobQueue) -> None:
    """And names the jobs."""
    before = jobs.schedules.add("s", every=60, kind="a")
    answer = cli("schedule", "run", "s", "--db", jobs.path)

    assert (answer.code, answer.out) == (0, "job 1 enqueued for a\n")
    assert cli("schedule", "run", "s", "--db", jobs.path, "--json").json[0]["job_id"] == 2
    assert jobs.schedules.get("s") == before


def test_next_prints_utc_and_the_zone(cli: Cli, jobs: jobq.JobQueue) -> None:
    """As many as asked for; the local time is seven, whatever the offset."""
    jobs.schedules.add("s", cron="0 7 * * *", tz="Europe/Berlin", kind="a")
    shown = cli("schedule", "next", "s", "--count", "3", "--db", jobs.path)
    found = cli("schedule", "next", "s", "--db", jobs.path, "--json").json

    assert (shown.code, len(shown.out.splitlines())) == (0, 4)
    assert shown.out.splitlines()[0].split() == ["utc", "Europe/Berlin"]
    assert all(" 07:00:00 +0" in line for line in shown.out.splitlines()[1:])
    assert (found["tz"], len(found["slots"])) == ("Europe/Berlin", 5)
    assert {slot["local"][10:19] for slot in found["slots"]} == {"T07:00:00"}


@pytest.mark.parametrize("verb", ["remove", "pause", "resume", "run", "next"])
def test_an_unknown_schedule_is_not_found(cli: Cli, jobs: jobq.JobQueue, verb: str) -> None:
    """The error names those that there are."""
    jobs.schedules.add("there", every=60, kind="a")
    answer = cli("schedule", verb, "s", "--db", jobs.path)

    assert answer.code == 3
    assert "there" in answer.err
