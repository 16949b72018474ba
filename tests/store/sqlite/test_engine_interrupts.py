"""A KeyboardInterrupt may strike between any two bytecodes; neither a lock nor another thread's work is lost by it."""

import signal
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no interval timer")


def test_interrupts_at_any_moment_lose_no_lock_and_no_rider(output: Callable[..., str]) -> None:
    """Hundreds of interrupts at random moments of one thread's writes: the others' writes all arrive, once each."""
    printed = output(
        """
import random
fed = []
engine = Engine(PATH, feed=fed.extend, migrations=[FIRST])
def insert(who):
    def operation(connection, changes):
        connection.execute("INSERT INTO item (who) VALUES (?)", (who,)).fetchall()
        changes.append(who)
    return operation
class Struck(BaseException):
    pass
armed = False
def strike(*_):
    if armed:
        raise Struck
signal.signal(signal.SIGALRM, strike)
done, acknowledged, struck = [], [], 0
def run(name):
    for number in range(1500):
        engine.write(insert(f"{name}-{number}"), sync=False, busy_timeout=60)
    done.append(name)
threads = [threading.Thread(target=run, args=(name,), daemon=True) for name in "abc"]
for thread in threads:
    thread.start()
number = 0
while len(done) < 3 and number < 100_000:
    number += 1
    signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00001, 0.0005))
    try:
        armed = True
        engine.write(insert(f"main-{number}"), sync=False, busy_timeout=60)
        acknowledged.append(f"main-{number}")
        armed = False
    except Struck:
        armed = False
        struck += 1
signal.setitimer(signal.ITIMER_REAL, 0)
for thread in threads:
    thread.join(20)
query = "SELECT who FROM item ORDER BY id"
rows = [who for (who,) in engine.read(lambda c: c.execute(query).fetchall(), busy_timeout=1)]
mine = {who for who in rows if who.startswith("main")}
print(sorted(done) == ["a", "b", "c"], len(rows) - len(mine) == 4500, set(acknowledged) <= mine, struck > 20)
print(list(dict.fromkeys(fed)) == rows)
engine.close()
"""
    )
    assert printed.split() == ["True"] * 5


def test_interrupts_of_reads_leave_nothing_borrowed(output: Callable[..., str]) -> None:
    """After hundreds of interrupts of reads and watches every connection is back: a fork finds them all at rest."""
    printed = output(
        """
import random
engine = Engine(PATH, feed=lambda _: None, migrations=[FIRST], quiet_within=0.2)
class Struck(BaseException):
    pass
armed = False
def strike(*_):
    if armed:
        raise Struck
signal.signal(signal.SIGALRM, strike)
struck = 0
for _ in range(4000):
    signal.setitimer(signal.ITIMER_REAL, random.uniform(0.000005, 0.00005))
    try:
        armed = True
        engine.read(lambda c: c.execute("SELECT count(*) FROM item").fetchall(), busy_timeout=1)
        engine.data_version()
        armed = False
    except Struck:
        armed = False
        struck += 1
signal.setitimer(signal.ITIMER_REAL, 0)
pid = os.fork()
if pid == 0:
    engine.write(lambda connection, changes: None, sync=False, busy_timeout=1)
    os._exit(0)
print(struck > 100, os.waitpid(pid, 0)[1])
engine.close()
print(len(apsw.connections()))
"""
    )
    assert printed.split() == ["True", "0", "0"]
