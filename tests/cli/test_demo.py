"""``jobq demo``: odd files, killed runs, and totals that equal what hashlib says."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jobq
from jobq.cli import progress
from jobq.examples.filenames import sum_line, to_name, to_text
from tests.cli.conftest import Answer, finish, start, wait_for
from tests.conftest import ErrorLog

Cli = Callable[..., Answer]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A directory with files in a subdirectory."""
    directory = tmp_path / "tree"
    (directory / "sub").mkdir(parents=True)
    for number in range(40):
        (directory / ("sub" if number % 2 else ".") / f"file{number}").write_bytes(b"x" * number * 1000)
    return directory


def sums(directory: Path) -> dict[bytes, str]:
    """Return what hashlib says of each regular file, links followed."""
    found = {}
    for folder, _, names in os.walk(os.fsencode(directory)):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                found[path] = hashlib.sha256(Path(os.fsdecode(path)).read_bytes()).hexdigest()
    return found


def written(file: Path) -> dict[bytes, str]:
    """Read a file that --sums wrote."""
    found = {}
    for line in file.read_bytes().splitlines():
        escaped = line.startswith(b"\\")
        digest, name = line.lstrip(b"\\").split(b"  ", 1)
        if escaped:
            name = name.replace(b"\\\\", b"\0").replace(b"\\n", b"\n").replace(b"\\r", b"\r").replace(b"\0", b"\\")
        found[name] = digest.decode()
    return found


def finished(answer: Answer) -> dict[str, Any]:
    """Return the last line of a demo's JSON."""
    assert answer.code == 0, answer.err
    last: dict[str, Any] = answer.lines[-1]
    return last


def test_totals_and_sums_equal_those_of_hashlib(cli: Cli, tree: Path, tmp_path: Path) -> None:
    """Every file is hashed by one job; the parent's total is what the files add up to."""
    answer = finished(cli("demo", tree, "--json", "--sums", "sums"))

    assert (answer["files"], answer["failed"], answer["jobs"]) == (40, 0, 40)
    assert answer["bytes"] == sum(range(40)) * 1000
    assert written(tmp_path / "sums") == sums(tree)
    assert answer["database"] == str(tmp_path / "jobq-demo.db")


def test_second_run_hashes_nothing_again(cli: Cli, tree: Path) -> None:
    """What was settled stays settled; the totals are those of before."""
    first, second = finished(cli("demo", tree, "--json")), finished(cli("demo", tree, "--json"))

    assert (second["jobs"], second["settled_before"]) == (0, 40)
    assert [second[name] for name in ("files", "bytes")] == [first[name] for name in ("files", "bytes")]


def test_changed_new_and_removed_files_are_noticed(cli: Cli, tree: Path, tmp_path: Path) -> None:
    """A later run hashes only what changed, and its totals and sums are those of the directory as it is."""
    cli("demo", tree, "--json")
    (tree / "file2").write_bytes(b"changed")
    (tree / "new").write_bytes(b"new")
    (tree / "file4").unlink()

    answer = finished(cli("demo", tree, "--json", "--sums", "sums"))

    assert (answer["files"], answer["jobs"], answer["settled_before"]) == (40, 2, 38)
    assert answer["bytes"] == sum(path.stat().st_size for path in tree.rglob("*") if path.is_file())
    assert written(tmp_path / "sums") == sums(tree)


def test_table_and_suggestions_for_people(cli: Cli, tree: Path, errors: ErrorLog) -> None:
    """The table is data, the rest is not; each suggested command works as it is printed."""
    (tree / "dangling").symlink_to("nowhere")
    answer = cli("demo", tree)
    facts = dict(line.split("  ", 1) for line in answer.out.strip().splitlines())

    assert answer.code == 0
    assert (facts["files"].strip(), facts["not hashed"].strip()) == ("40", "1")
    assert f"{tree}/dangling: dangling_link" in answer.err
    commands = [line.strip() for line in answer.err.partition("try next:\n")[2].splitlines()]
    assert len(commands) == 5
    assert errors.take() == ["jobq.job.failed"]
    for command in commands:
        assert cli(*command.partition(" -m jobq ")[2].split()).code == 0, command


def test_odd_names_are_hashed(cli: Cli, tmp_path: Path) -> None:
    """Names of any bytes are hashed under their own name, and printed escaped."""
    directory = tmp_path / "odd"
    directory.mkdir()
    names = [b"new\nline", b"cr\r", b"bad\xff\xfe", b"back\\slash", b"lit\\xf", b"esc\x1b[31m", b" x ", b"\xe2\x80\xae"]
    for name in names:
        (directory / os.fsdecode(name)).write_bytes(name)

    answer = finished(cli("demo", directory, "--json", "--sums", "sums"))

    assert answer["files"] == len(names)
    assert written(tmp_path / "sums") == sums(directory)
    assert cli("job", "list", "--db", "jobq-demo.db").out.replace("\n", "").isprintable()


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="there is no sha256sum")
def test_sums_are_read_by_sha256sum(cli: Cli, tree: Path, tmp_path: Path) -> None:
    """``sha256sum -c`` accepts the file that --sums writes, also for names that it escapes."""
    (tree / "new\nline\\").write_bytes(b"odd")
    cli("demo", tree, "--sums", "sums")

    done = subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "sums"], cwd=tmp_path, capture_output=True)

    assert (done.returncode, done.stderr) == (0, b"")


def test_what_is_no_file_is_reported_and_not_fatal(cli: Cli, tree: Path, errors: ErrorLog) -> None:
    """Links to nowhere, FIFOs, and loops are reported; links to files are followed, links to directories are not."""
    (tree / "dangling").symlink_to("nowhere")
    (tree / "loop").symlink_to("loop")
    (tree / "link").symlink_to("file2")
    (tree / "up").symlink_to(tree)
    os.mkfifo(tree / "fifo")

    answer = finished(cli("demo", tree, "--json"))

    assert (answer["files"], answer["failed"]) == (41, 3)
    assert errors.take() == ["jobq.job.failed"] * 3
    assert {os.path.basename(problem["path"]): problem["why"] for problem in answer["problems"]} == {
        "dangling": "dangling_link", "loop": "dangling_link", "fifo": "not_a_file"
    }  # fmt: skip


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_files_and_directories_are_reported(cli: Cli, tree: Path, errors: ErrorLog) -> None:
    """A file without permission fails its job, a directory without permission is reported; mended, they are hashed."""
    (tree / "file2").chmod(0)
    (tree / "sub").chmod(0)
    try:
        answer = finished(cli("demo", tree, "--json"))
    finally:
        (tree / "sub").chmod(0o700)
    assert {os.path.basename(problem["path"]) for problem in answer["problems"]} == {"file2", "sub"}
    assert errors.take() == ["jobq.job.failed"]
    (tree / "file2").chmod(0o600)

    assert finished(cli("demo", tree, "--json"))["files"] == 40


def test_own_database_is_never_opened(cli: Cli, tree: Path) -> None:
    """A database within the directory, under this or another name, is left out: reading it would drop its locks."""
    database = tree / "demo.db"
    first = finished(cli("demo", tree, "--json", "--db", database))
    (tree / "alias").symlink_to(database)
    os.link(database, tree / "hard")
    second = finished(cli("demo", tree, "--json", "--db", database))

    assert (first["files"], second["files"], second["problems"]) == (40, 40, [])


def test_empty_directory_has_a_total(cli: Cli, tmp_path: Path) -> None:
    """Nothing to hash is a total of nothing."""
    (tmp_path / "empty").mkdir()

    answer = finished(cli("demo", "empty", "--json"))

    assert (answer["files"], answer["bytes"]) == (0, 0)


@pytest.mark.parametrize(("name", "code"), [("missing", 3), ("file", 3)])
def test_no_directory_is_not_found(cli: Cli, tmp_path: Path, name: str, code: int) -> None:
    """Without a directory nothing is made."""
    (tmp_path / "file").touch()

    assert cli("demo", name).code == code
    assert not (tmp_path / "jobq-demo.db").exists()


def test_help_says_what_is_hashed_without_a_directory(cli: Cli) -> None:
    """The directory is named, and what may surprise in it."""
    text = cli("demo", "--help").out

    assert f"\n{sysconfig.get_path('stdlib')}\n" in text
    assert "site-packages" in text


def test_two_directories_share_a_database(cli: Cli, tree: Path, tmp_path: Path) -> None:
    """Each directory has totals of its own."""
    shutil.copytree(tree, tmp_path / "copy")
    cli("demo", tree, "--json")

    answer = finished(cli("demo", tmp_path / "copy", "--json"))

    assert (answer["files"], answer["jobs"]) == (40, 40)


def test_killed_run_continues_and_repeats_nothing(tmp_path: Path) -> None:
    """kill -9 in the middle, several times: no file that was settled has a second job, and the totals are right."""
    directory = tmp_path / "many"
    for number in range(1_500):
        folder = directory / str(number % 10)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file{number}").write_bytes(os.urandom(64))
    settled: dict[int, str] = {}
    for _ in range(3):
        process = start("demo", directory, "--json", cwd=tmp_path, start_new_session=True)
        _wait_until_more_is_settled(tmp_path / "jobq-demo.db", len(settled), process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        with jobq.open(tmp_path / "jobq-demo.db") as jobs:
            now = {job.id: str(job.finished_at) for job in jobs.find(kind="hash_file", state="succeeded", limit=None)}
        # What had been settled was not run once more.
        assert settled.items() <= now.items()
        settled = now

    answer = finished(finish(start("demo", directory, "--json", "--sums", "sums", cwd=tmp_path)))

    with jobq.open(tmp_path / "jobq-demo.db") as jobs:
        hashed = jobs.find(kind="hash_file", limit=None)
    assert (answer["files"], answer["bytes"], answer["failed"]) == (1_500, 64 * 1_500, 0)
    assert len(hashed) == len({job.subject for job in hashed}) == 1_500
    assert settled.items() <= {job.id: str(job.finished_at) for job in hashed}.items()
    assert answer["settled_before"] + answer["jobs"] == 1_500
    assert written(tmp_path / "sums") == sums(directory)


def _wait_until_more_is_settled(database: Path, settled: int, process: "subprocess.Popen[str]") -> None:
    wait_for(database.exists)
    with jobq.open(database) as jobs:
        wait_for(
            lambda: jobs.counts(kind="hash_file")["succeeded"] >= settled + 100 or process.poll() is not None
        )


def test_interrupted_run_says_how_to_go_on(tmp_path: Path) -> None:
    """SIGINT stops gracefully with exit code 130, and nothing is left running."""
    directory = tmp_path / "tree"
    directory.mkdir()
    for number in range(5_000):
        (directory / f"file{number}").write_bytes(b"x")
    process = start("demo", directory, cwd=tmp_path)
    _wait_until_more_is_settled(tmp_path / "jobq-demo.db", 0, process)
    process.send_signal(signal.SIGINT)

    answer = finish(process)

    assert answer.code == 130
    assert "the same command continues" in answer.err
    with jobq.open(tmp_path / "jobq-demo.db") as jobs:
        assert jobs.counts()["running"] == 0


@pytest.mark.parametrize("name", ["plain", "back\\slash", "\\x41", "\udcff\udc80", "\\\udcff", "ä\n\x00"])
def test_names_survive_as_text(name: str) -> None:
    """Every name comes back, and its text can be stored as JSON in UTF-8."""
    text = to_text(name)

    assert to_name(text) == name
    assert json.loads(json.dumps(text, ensure_ascii=False).encode()) == text


def test_sum_line_escapes_as_coreutils_does() -> None:
    """A backslash in front of the line says that the name is escaped."""
    assert sum_line("aa", "a b") == b"aa  a b\n"
    assert sum_line("aa", "a\nb\\\r") == b"\\aa  a\\nb\\\\\\r\n"


def test_progress_in_lines_comes_each_second(capsys: pytest.CaptureFixture[str]) -> None:
    """Many updates write at most a line each second, and the last state at the end."""
    bar = progress.make_bar(json=False, unit="files")
    for done in range(1000):
        bar.update(done, 1000, "hashing")
    bar.close()

    assert capsys.readouterr().err.splitlines()[-1] == "hashing: 999 of 1,000 files"


def test_progress_bar_of_rich_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Where rich is installed its bar can be shown; it leaves standard output alone."""
    pytest.importorskip("rich")
    bar = progress.RichBar()
    bar.update(1, 2, "hashing")
    bar.close()

    captured = capsys.readouterr()
    assert captured.out == ""
    assert "hashing" in captured.err
