"""The list of verbs that the tests of kills and of failing files carry out is whole."""

import jobq
from jobq.jobqueue import JobQueue
from jobq.labels import Labels
from jobq.outbox.relay import Relay
from jobq.runtime.heartbeat import Heartbeat
from jobq.runtime.maintenance import Maintenance
from jobq.runtime.scheduler import Scheduler
from jobq.schedules import Schedules
from jobq.service import Service
from tests.crash.verbs import VERBS

#: Whose public names they are, by what stands before them in the list.
OWNERS = {
    "": JobQueue,
    "schedules.": Schedules,
    "labels.": Labels,
    "runner.": jobq.Runner,
    "runner.scheduler.": Scheduler,
    "runner.heartbeat.": Heartbeat,
    "runner.maintenance.": Maintenance,
    "leader.": jobq.LeaseLeader,
    "outbox.": jobq.Outbox,
    "outbox.relay.": Relay,
}
MEMORY = "touches no file"
PARTS = "is a part of verbs that are listed"
HOST = "touches the host's database alone"
OWN_FILE = "touches a file of its own, whose tests are in observe/"
THREADS = "starts or ends threads, which run what is listed"
#: Why a public name is not carried out by itself.
APART = {
    **dict.fromkeys(("attach", "job", "gate", "bus", "gates", "lines", "live", "blocks", "doorbell"), MEMORY),
    **dict.fromkeys(("path", "file_existed", "store", "schedules", "labels", "clean", "cap", "deliver"), MEMORY),
    **dict.fromkeys(("register", "policy", "max_attempts", "draft", "finish", "report", "sweep", "healing"), PARTS),
    **dict.fromkeys(("trace", "log_events"), OWN_FILE),
    "close": "is done at the end of each of them",
    **dict.fromkeys(("schedules.declare", "schedules.leave_declared"), PARTS),
    **dict.fromkeys(("runner.start", "runner.stop", "runner.wait", "runner.health"), THREADS),
    **dict.fromkeys(("runner.before_fork", "runner.after_fork_in_parent", "runner.after_fork_in_child"), MEMORY),
    **dict.fromkeys(("runner.heartbeat.begin", "runner.heartbeat.check", "runner.heartbeat.may_claim"), MEMORY),
    "leader.holder": MEMORY,
    "outbox.ddl": MEMORY,
    **dict.fromkeys(("outbox.create_table", "outbox.failing", "outbox.pending"), HOST),
    **dict.fromkeys(("outbox.relay.next_due", "outbox.relay.host_healthy"), HOST),
    **dict.fromkeys(("outbox.relay.before_fork", "outbox.relay.after_fork_in_parent"), MEMORY),
    "outbox.relay.after_fork_in_child": MEMORY,
}


def public_names() -> set[str]:
    """Return every public name of every owner, but the threads' own of a loop."""
    found = set()
    for prefix, owner in OWNERS.items():
        inherited = set(dir(Service)) - {"tick"} if issubclass(owner, Service) else set()
        found |= {prefix + name for name in set(dir(owner)) - inherited if not name.startswith("_")}
    return found


def listed() -> set[str]:
    """Return the names that are carried out; what comes behind a dash tells one way from another."""
    return {verb.partition("-")[0] for verb in VERBS}


def test_every_verb_is_listed_or_has_a_reason() -> None:
    """A new public name has to be carried out on failing files and under kills, or to say why not."""
    assert public_names() - listed() - APART.keys() == set()


def test_a_reason_is_for_a_name_that_there_is_and_that_is_not_listed() -> None:
    """What is carried out needs none, and what is gone has none."""
    assert APART.keys() & listed() == set()
    assert APART.keys() - public_names() == set()
