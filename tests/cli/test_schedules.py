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


def test_a_refused_add_makes_no_database(cli: Cli, tmp_path: Path) -> None:
    """Whatever is wrong with it: the options, an entry, or a payload that its handler does not take."""
    (tmp_path / "typed_app.py").write_text(
        "import jobq\nhandlers = jobq.Handlers()\n\n@handlers.job\ndef send(payload: int) -> None:\n    pass\n"
    )
    for arguments in (
        ("send", "1", "--cron", "61 * * * *"), ("send", "1"), ("send", '"x"', "--every", "5m"),
        ("--every", "5m", "--entries", '[{"kind": "send", "payload": 1, "actor": "nobody"}]'),
    ):  # fmt: skip
        answer = cli("schedule", "add", "s", *arguments, "-A", "typed_app:handlers", "--db", "new.db")
        assert answer.code != 0
        assert "new database" not in answer.err
        assert not (tmp_path / "new.db").exists()
    assert cli("schedule", "add", "s", "send", "1", "--every", "5m", "-A", "typed_app:handlers", "--db",
               "new.db").code == 0  # fmt: skip


def test_jobs_of_the_command_line_are_a_users(cli: Cli, jobs: jobq.JobQueue) -> None:
    """Those of ``run`` always, those of a stored schedule unless an entry says otherwise."""
    entries = '[{"kind": "a"}, {"kind": "b", "actor": "agent"}]'
    assert cli("schedule", "add", "one", "a", "1", "--every", "5m", "--db", jobs.path).code == 0
    assert cli("schedule", "add", "two", "--entries", entries, "--every", "5m", "--db", jobs.path).code == 0
    jobs.schedules.add("code", every=60, kind="c")
    assert cli("schedule", "run", "code", "--db", jobs.path).code == 0

    assert [[entry.actor for entry in one.entries] for one in jobs.schedules.list()] == [
        ["system"], ["user"], ["user", "agent"],
    ]  # fmt: skip
    assert [job.actor for job in jobs.find()] == ["user"]
    assert [jobs.get(one.job_id).actor for one in jobs.schedules.run_now("two")] == ["user", "agent"]


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
    assert cli("schedule", "run", "s", "-A", "shop_app:handlers", "--db", jobs.path).code == 0
    assert cli("schedule", "remove", "s", "-A", "shop_app:handlers", "--db", jobs.path).code == 0
    assert cli("schedule", "list", "-A", "shop_app:handlers", "--db", jobs.path, "--json").json == []
    assert cli("schedule", "remove", "s", "-A", "shop_app:handlers", "--db", jobs.path).code == 3


def test_a_verb_is_no_start(
    cli: Cli, jobs: jobq.JobQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the declared schedule that a verb names is stored by it, and removing brings none back."""
    lines = [f"handlers.schedule({name!r}, every=60, kind='a')" for name in ("p", "q", "r", "s", "t")]
    (tmp_path / "verbs_app.py").write_text("\n".join(["import jobq", "handlers = jobq.Handlers()", *lines]))
    monkeypatch.syspath_prepend(str(tmp_path))

    def after(verb: str, name: str, *more: str) -> list[str]:
        assert cli("schedule", verb, name, *more, "-A", "verbs_app:handlers", "--db", jobs.path).code == 0
        return [one.name for one in jobs.store.schedules()]

    assert after("pause", "p") == ["p"]
    assert after("resume", "q") == ["p", "q"]
    assert after("run", "r") == ["p", "q", "r"]
    assert after("add", "mine", "a", "--every", "5m") == ["mine", "p", "q", "r"]
    assert after("remove", "p") == ["mine", "q", "r"]
    assert after("remove", "q") == ["mine", "r"]


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


@pytest.mark.parametrize(
    ("arguments", "number"), [((), 5), (("2",), 2), (("--count", "3"), 3), (("2", "--count", "3"), 2)]
)
def test_next_takes_a_number(cli: Cli, jobs: jobq.JobQueue, arguments: tuple[str, ...], number: int) -> None:
    """Behind the name, or as an option."""
    jobs.schedules.add("s", every=60, kind="a")
    answer = cli("schedule", "next", "s", *arguments, "--db", jobs.path, "--json")
    assert len(answer.json["slots"]) == number


@pytest.mark.parametrize("verb", ["remove", "pause", "resume", "run", "next"])
def test_an_unknown_schedule_is_not_found(cli: Cli, jobs: jobq.JobQueue, verb: str) -> None:
    """The error names those that there are."""
    jobs.schedules.add("there", every=60, kind="a")
    answer = cli("schedule", verb, "s", "--db", jobs.path)

    assert answer.code == 3
    assert "there" in answer.err
