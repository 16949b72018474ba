"""A handle that another copy of SQLite has on the file in this process is found and refused."""

import os
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from jobq.errors import ForeignHandle
from jobq.store.sqlite import foreign
from jobq.store.sqlite.engine import Engine
from tests.store.sqlite.enginekit import insert

pytestmark = pytest.mark.skipif(
    not os.path.isdir("/proc/self/fd") or not apsw.using_amalgamation, reason="the system does not tell"
)

Output = Callable[..., str]


def test_file_that_nobody_has_open_passes(tmp_path: Path) -> None:
    """Neither a missing nor an unused file is anybody's."""
    unused = tmp_path / "unused"
    unused.touch()

    assert not foreign.found(str(tmp_path / "missing"))
    assert not foreign.found(str(unused))


def test_connections_of_apsw_pass(engine: Engine, path: str, other: apsw.Connection) -> None:
    """A handle of the host's own apsw is the same library."""
    other.execute("SELECT count(*) FROM item").fetchall()
    engine.write(insert("x"), sync=False, busy_timeout=1)

    foreign.check(path)
    assert not engine.foreign_handles()


def test_descriptor_of_somebody_else_is_found(tmp_path: Path) -> None:
    """A plain descriptor on a file that apsw does not have open is foreign."""
    file = tmp_path / "plain"
    file.touch()

    with file.open("rb"), pytest.raises(ForeignHandle) as caught:
        foreign.check(str(file))
    assert caught.value.fix


def test_b67_foreign_handle_is_refused_when_opening(output: Output) -> None:
    """With the standard module's handle open, opening raises ForeignHandle and leaves the file alone."""
    printed = output(
        """
import sqlite3
host = sqlite3.connect(PATH)
host.execute("CREATE TABLE host (x)")
host.commit()
before = os.stat(PATH).st_size, os.stat(PATH).st_mtime_ns
try:
    Engine(PATH, feed=print, migrations=[FIRST])
except errors.ForeignHandle as error:
    print(error.path == PATH, "sqlite3" in error.fix, before == (os.stat(PATH).st_size, os.stat(PATH).st_mtime_ns))
"""
    )
    assert printed == "True True True"


def test_b67_foreign_handle_beside_ours_is_found(output: Output) -> None:
    """A handle that another SQLite opens later shows as a second descriptor on the -shm file."""
    printed = output(
        """
import sqlite3
engine = Engine(PATH, feed=lambda _: None, migrations=[FIRST])
print(engine.foreign_handles())
host = sqlite3.connect(PATH)
host.execute("SELECT count(*) FROM item").fetchall()
print(engine.foreign_handles())
try:
    Engine(PATH, feed=print, migrations=[FIRST])
except errors.ForeignHandle:
    print("refused")
os._exit(0 if sys.stdout.flush() is None else 1)
"""
    )
    assert printed.split() == ["False", "True", "refused"]


def test_b67_handle_on_another_file_is_nobodys_business(output: Output) -> None:
    """The standard module may have other files open."""
    printed = output(
        """
import sqlite3
host = sqlite3.connect(PATH + ".other")
host.execute("CREATE TABLE host (x)")
Engine(PATH, feed=print, migrations=[FIRST]).close()
print("opened")
"""
    )
    assert printed == "opened"


def test_b67_own_code_never_opens_the_files(output: Output) -> None:
    """Python opens none of the database's files in any call: closing them would drop the process's locks."""
    printed = output(
        """
opened = []
sys.addaudithook(lambda event, args: opened.append(args[0]) if event == "open" else None)
engine = Engine(PATH, feed=lambda _: None, migrations=[FIRST, SECOND])
def insert(connection, changes):
    connection.execute("INSERT INTO item (who) VALUES ('x')").fetchall()
engine.write(insert, sync=True, busy_timeout=1)
engine.read(lambda connection: connection.execute("SELECT 1").fetchall(), busy_timeout=1)
engine.data_version(), engine.checkpoint(), engine.status(), engine.foreign_handles()
pid = os.fork()
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
engine.write(lambda connection, changes: None, sync=False, busy_timeout=1)
engine.close()
Engine(PATH, feed=print, migrations=[FIRST, SECOND]).close()
print([name for name in opened if str(name).startswith(PATH)])
"""
    )
    assert printed == "[]"
