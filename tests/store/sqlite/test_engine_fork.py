"""A fork never leaves a child that writes without locks: it reopens, or it is refused."""

import os
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

Output = Callable[..., str]

_HELPERS = """
def insert(who):
    def operation(connection, changes):
        connection.execute("INSERT INTO item (who) VALUES (?)", (who,)).fetchall()
    return operation
def write(engine, who, timeout=10):
    engine.write(insert(who), sync=False, busy_timeout=timeout)
def names(engine):
    query = "SELECT who FROM item ORDER BY id"
    return [who for (who,) in engine.read(lambda c: c.execute(query).fetchall(), busy_timeout=10)]
def check():
    connection = apsw.Connection(PATH)
    print(connection.execute("PRAGMA integrity_check").fetchall()[0][0])
    connection.close()
def child(function):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = function() or 0
        except errors.ForkedHandle:
            code = 42
        finally:
            sys.stdout.flush()
            os._exit(code)
    return pid
def wait(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
def open_here():
    return [c.filename for c in apsw.connections() if c.filename == PATH]
engine = Engine(PATH, feed=lambda _: None, migrations=[FIRST], quiet_within=0.2)
"""


def test_b48_child_and_parent_both_reopen_and_lose_nothing(output: Output) -> None:
    """After a fork with used handles both sides write; the child's end harms none of the parent's commits."""
    printed = output(
        _HELPERS
        + """
write(engine, "before"), names(engine), engine.data_version()
def work():
    for number in range(50):
        write(engine, f"child-{number}")
    names(engine), engine.data_version()
    engine.close()
pid = child(work)
for number in range(200):
    write(engine, f"parent-{number}")
print(wait(pid))
for number in range(50):
    write(engine, f"late-{number}")
print(len(names(engine)))
engine.close()
check()
"""
    )
    assert printed.split() == ["0", "301", "ok"]


def test_b48_no_handle_is_open_over_a_fork(output: Output) -> None:
    """At the moment of the fork, and in the child, no connection is open; the version watched looks new after it."""
    printed = output(
        _HELPERS
        + """
write(engine, "a"), names(engine)
before = engine.data_version()
print(len(open_here()))
pid = child(lambda: print(len(open_here())))
wait(pid)
print(len(open_here()))
print(engine.data_version() != before)
"""
    )
    assert printed.split() == ["3", "0", "0", "True"]


def test_b48_child_takes_real_locks(output: Output) -> None:
    """While the child holds the write lock the parent is refused, and the other way round."""
    printed = output(
        _HELPERS
        + """
write(engine, "before")
ready, proceed = os.pipe(), os.pipe()
def hold():
    def operation(connection, changes):
        insert("child")(connection, changes)
        os.write(ready[1], b"x")
        os.read(proceed[0], 1)
    engine.write(operation, sync=False, busy_timeout=10)
pid = child(hold)
os.read(ready[0], 1)
try:
    write(engine, "parent", 0.05)
except errors.StoreBusy:
    print("busy")
os.write(proceed[1], b"x")
print(wait(pid))
write(engine, "parent")
print(names(engine))
"""
    )
    assert printed.split("\n") == ["busy", "0", "['before', 'child', 'parent']"]


def test_b48_fork_waits_for_a_running_transaction(output: Output) -> None:
    """A transaction that another thread has open when the fork comes is finished first; the child may write."""
    printed = output(
        _HELPERS
        + """
running, proceed = threading.Event(), threading.Event()
engine = Engine(PATH, feed=lambda _: None, migrations=[FIRST], quiet_within=20)
def slow(connection, changes):
    insert("slow")(connection, changes)
    running.set()
    proceed.wait(10)
thread = threading.Thread(target=lambda: engine.write(slow, sync=False, busy_timeout=10))
thread.start()
running.wait(10)
threading.Timer(0.05, proceed.set).start()
pid = child(lambda: print(names(engine)) or write(engine, "child"))
print(wait(pid))
thread.join()
print(names(engine))
"""
    )
    assert printed.split("\n") == ["['slow']", "0", "['slow', 'child']"]


@pytest.mark.parametrize("verb", ["write", "read"])
def test_b48_fork_inside_a_transaction_refuses_the_child(output: Output, verb: str) -> None:
    """Forked inside its own transaction or read, the child is refused, also a new open; the parent goes on."""
    printed = output(
        _HELPERS
        + """
write(engine, "before")
pids = []
def reopen():
    Engine(PATH, feed=print, migrations=[FIRST])
def forking(connection, *changes):
    connection.execute("SELECT count(*) FROM item").fetchall()
    for function in (lambda: write(engine, "child"), lambda: names(engine), engine.data_version, reopen):
        pids.append(child(function))
    pids.append(child(lambda: engine.is_usable() or engine.close()))
if sys.argv[1] == "write":
    engine.write(forking, sync=False, busy_timeout=10)
else:
    engine.read(forking, busy_timeout=10)
print([wait(pid) for pid in pids])
write(engine, "after")
print(names(engine))
engine.close()
check()
""",
        verb,
    )
    assert printed.split("\n") == ["[42, 42, 42, 42, 0]", "['before', 'after']", "ok"]


@pytest.mark.parametrize("verb", ["write", "read"])
def test_b48_child_that_leaves_the_block_commits_nothing(output: Output, verb: str) -> None:
    """A child that comes out of the operation it was forked in gets ForkedHandle, and ends without harm."""
    printed = output(
        _HELPERS
        + """
write(engine, "before")
parent = os.getpid()
pids = []
def forking(connection, *changes):
    if changes:
        insert("inside")(connection, [])
    sys.stdout.flush()
    pids.append(os.fork())
try:
    if sys.argv[1] == "write":
        engine.write(forking, sync=False, busy_timeout=10)
    else:
        engine.read(forking, busy_timeout=10)
except errors.ForkedHandle:
    sys.exit(42)
if os.getpid() != parent:
    os._exit(1)
for number in range(50):
    write(engine, f"after-{number}")
print(wait(pids[0]))
for number in range(50):
    write(engine, f"late-{number}")
print(len(names(engine)))
engine.close()
check()
""",
        verb,
    )
    assert printed.split() == ["42", "102" if verb == "write" else "101", "ok"]


def test_b48_other_threads_transaction_that_will_not_end_refuses_the_child(output: Output) -> None:
    """When the bounded wait runs out, the fork goes on, the child is refused, and the parent's thread commits."""
    printed = output(
        _HELPERS
        + """
running, proceed = threading.Event(), threading.Event()
def slow(connection, changes):
    insert("slow")(connection, changes)
    running.set()
    proceed.wait(10)
thread = threading.Thread(target=lambda: engine.write(slow, sync=False, busy_timeout=10))
thread.start()
running.wait(10)
pid = child(lambda: write(engine, "child"))
proceed.set()
print(wait(pid))
thread.join()
write(engine, "after")
print(names(engine))
"""
    )
    assert printed.split("\n") == ["42", "['slow', 'after']"]


def test_b48_connection_of_the_host_that_is_inherited_refuses_the_child(output: Output) -> None:
    """The host's own apsw connection, open over the fork, would make our locks in the child void."""
    printed = output(
        _HELPERS
        + """
host = apsw.Connection(PATH)
host.execute("SELECT count(*) FROM item").fetchall()
print(wait(child(lambda: write(engine, "child"))))
write(engine, "parent")
print(names(engine))
"""
    )
    assert printed.split("\n") == ["42", "['parent']"]


def test_b48_preloaded_engine_serves_several_children(output: Output) -> None:
    """A server that opens before it forks has children, and grandchildren, that all write."""
    printed = output(
        _HELPERS
        + """
def serve(name):
    for number in range(20):
        write(engine, f"{name}-{number}")
    if name == "child-0":
        return wait(child(lambda: serve("grandchild")))
pids = [child(lambda name=name: serve(name)) for name in ("child-0", "child-1", "child-2")]
print([wait(pid) for pid in pids])
print(len(names(engine)))
engine.close()
check()
"""
    )
    assert printed.split("\n") == ["[0, 0, 0]", "80", "ok"]


def test_b48_fork_with_busy_threads_never_hangs_a_child(output: Output) -> None:
    """Twenty forks while four threads write, read and watch: every child writes, and nothing is lost."""
    printed = output(
        _HELPERS
        + """
engine = Engine(PATH, feed=lambda _: None, migrations=[FIRST], quiet_within=20)
stop = threading.Event()
written = [0, 0]
def busy(slot):
    while not stop.is_set():
        write(engine, f"thread-{slot}-{written[slot]}")
        written[slot] += 1
def look():
    while not stop.is_set():
        names(engine), engine.data_version()
threads = [threading.Thread(target=busy, args=(0,)), threading.Thread(target=busy, args=(1,))]
threads += [threading.Thread(target=look) for _ in range(2)]
for thread in threads:
    thread.start()
codes = []
for number in range(20):
    codes.append(wait(child(lambda: write(engine, f"child-{number}"))))
stop.set()
for thread in threads:
    thread.join()
print(set(codes), len(names(engine)) == sum(written) + 20)
engine.close()
check()
"""
    )
    assert printed.split("\n") == ["{0} True", "ok"]
