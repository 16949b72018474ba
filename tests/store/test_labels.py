"""Labels of a subject: two layers, routing, retriage; each change is a line of the log."""

import pytest

from jobq.model.job import Actor, FailureClass, JobState, LoggedChange, Requeued
from jobq.model.label import Label, LabelLayer
from jobq.model.outcome import Failed, Succeeded
from jobq.store.base import KindRow, QueueRow
from tests.store.bench import Workbench, draft, ids

MACHINE, HUMAN = LabelLayer.MACHINE, LabelLayer.HUMAN


def put(bench: Workbench, value: str, layer: LabelLayer = MACHINE, *, subject: str = "s", name: str = "queue") -> bool:
    """Set a label."""
    return bench.store.put_label(subject, name, value, layer=layer, actor=Actor.AGENT)


def placed_in(bench: Workbench, **options: object) -> str:
    """Enqueue a job and return the queue that it went to."""
    return bench.get(bench.enqueue(**options)).queue


def lines(bench: Workbench) -> list[LoggedChange]:
    """Return the change log of the subject, oldest first."""
    return bench.store.changes(job_id=None, subject="s", limit=99)[::-1]


def test_the_human_layer_wins_whichever_was_set_first(bench: Workbench) -> None:
    """A machine that sets its word later changes nothing; without a human word the machine's counts."""
    bench.register("a", queue="default")
    put(bench, "mill")
    assert placed_in(bench, queue=None, subject="s") == "mill"
    put(bench, "desk", HUMAN)
    put(bench, "forge")
    assert placed_in(bench, queue=None, subject="s") == "desk"
    bench.store.clear_labels("s", "queue", layers=[HUMAN], actor=Actor.USER)
    assert placed_in(bench, queue=None, subject="s") == "forge"


@pytest.mark.parametrize(
    ("options", "queue"),
    [
        pytest.param({"queue": "asked", "subject": "s"}, "asked", id="argument"),
        pytest.param({"queue": "kinds", "queue_of_kind": True, "subject": "s"}, "label", id="label before handler"),
        pytest.param({"queue": None, "subject": "s"}, "label", id="label before the kind's row"),
        pytest.param({"queue": None, "subject": "other"}, "kinds", id="kind's row"),
        pytest.param({"queue": "kinds", "queue_of_kind": True, "subject": "other"}, "kinds", id="handler"),
        pytest.param({"queue": None}, "kinds", id="no subject"),
        pytest.param({"queue": None, "kind": "b", "subject": "other"}, "default", id="default"),
    ],
)
def test_the_queue_of_a_job(bench: Workbench, options: dict[str, object], queue: str) -> None:
    """The argument, else the subject's label, else the kind's queue, else default; a new one is made."""
    bench.register("a", queue="kinds")
    put(bench, "label")
    assert placed_in(bench, **options) == queue
    assert queue in {info.name for info in bench.store.queues()}


def test_each_job_of_a_batch_goes_where_its_subject_says(bench: Workbench) -> None:
    """Routed and unrouted ones side by side, in order."""
    put(bench, "mill")
    made = bench.store.enqueue([draft(queue=None, subject=subject) for subject in ("s", None, "t", "s")])
    assert [bench.get(one.id).queue for one in made] == ["mill", "default", "default", "mill"]
    assert [one.queue for one in made] == ["mill", "default", "default", "mill"]


def test_changing_the_label_moves_no_queued_job(bench: Workbench) -> None:
    """Only a requeue moves one."""
    waiting = bench.enqueue(queue=None, subject="s")
    put(bench, "mill", HUMAN)
    assert bench.get(waiting).queue == "default"
    assert ids(bench.claim(queues=("mill",))) == []


def test_setting_and_clearing_labels_is_logged(bench: Workbench) -> None:
    """What it was and what it is; what changes nothing leaves no line."""
    assert put(bench, "x", name="tone") is True
    assert put(bench, "x", name="tone") is False
    assert put(bench, "y", name="tone") is True
    put(bench, "z", HUMAN, name="tone")
    assert bench.store.labels("s") == [Label("tone", HUMAN, "z"), Label("tone", MACHINE, "y")]
    assert bench.store.labels("t") == []
    assert bench.store.clear_labels("s", None, layers=list(LabelLayer), actor=Actor.USER) == 2
    assert bench.store.clear_labels("s", None, layers=list(LabelLayer), actor=Actor.USER) == 0
    assert [(line.what, line.actor, line.before, line.after) for line in lines(bench)] == [
        ("labelled", "agent", {}, {"machine:tone": "x"}),
        ("labelled", "agent", {"machine:tone": "x"}, {"machine:tone": "y"}),
        ("labelled", "agent", {}, {"human:tone": "z"}),
        ("unlabelled", "user", {"human:tone": "z", "machine:tone": "y"}, {}),
    ]
    assert {(line.subject, line.job_id) for line in lines(bench)} == {("s", None)}


def test_retriage_forgets_machine_labels_and_requeues_intake_jobs(bench: Workbench) -> None:
    """Of that subject alone; other kinds, other subjects and what people said stay."""
    bench.store.register([KindRow("sort", "default", 50, 5, None, None, {}, intake=True)], [QueueRow("default")], [])
    failed, done, other = (bench.start(kind, subject="s") for kind in ("sort", "sort", "a"))
    strange = bench.start("sort", subject="t")
    fatal = Failed(error="x", failure_class=FailureClass.UNRECOVERABLE, retryable=False)
    for claim in (failed, other, strange):
        bench.settle(claim, fatal)
    bench.settle(done, Succeeded())
    put(bench, "mill")
    put(bench, "x", name="tone")
    put(bench, "desk", HUMAN)
    told = len(lines(bench))

    answer = bench.store.retriage("s", actor=Actor.USER)

    assert answer == (Requeued((failed.id,), ((done.id, "succeeded"),)), 2)
    assert bench.store.labels("s") == [Label("queue", HUMAN, "desk")]
    assert [bench.state(claim.id) for claim in (other, strange)] == [JobState.FAILED] * 2
    (line,) = lines(bench)[told:]
    assert (line.what, line.before) == ("retriaged", {"machine:queue": "mill", "machine:tone": "x"})
    assert [one.what for one in bench.store.changes(job_id=failed.id, limit=9)] == ["requeued"]


def test_retriage_of_an_unknown_subject_does_nothing(bench: Workbench) -> None:
    """Nor does it leave a line."""
    assert bench.store.retriage("s", actor=Actor.USER) == (Requeued(()), 0)
    assert lines(bench) == []


def test_the_last_registration_says_whether_a_kind_is_intake(bench: Workbench) -> None:
    """As of all that a kind declares."""
    for intake in (True, False):
        bench.store.register([KindRow("sort", "default", 50, 5, None, None, {}, intake)], [QueueRow("default")], [])
        assert bench.store.kinds(["sort"])[0].intake is intake
        declared = bench.store.declared("sort")
        assert declared is not None
        assert declared.intake is intake


def test_a_label_to_a_queue_that_does_not_accept_the_kind_is_passed_over(bench: Workbench) -> None:
    """The kind's own queue takes the job; other kinds follow the label."""
    bench.register("a", queue="kinds")
    bench.store.register([], [QueueRow("mill", configured=True, kinds=("b",))], [])
    put(bench, "mill", HUMAN)
    assert placed_in(bench, queue=None, subject="s") == "kinds"
    assert placed_in(bench, queue="own", queue_of_kind=True, subject="s") == "own"
    assert placed_in(bench, kind="b", queue=None, subject="s") == "mill"
