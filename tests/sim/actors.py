"""Who does what in a simulated world. Each yields before each transaction, so that anybody may come in between."""

from datetime import timedelta

import attrs

from jobq.errors import DedupeConflict, InvalidTransition, JobNotFound, LeaseLost
from jobq.model.effects import Verdict
from jobq.model.job import FailureClass
from jobq.model.lease import Claim
from jobq.model.outcome import Cancelled, Failed, Outcome, Postponed, Released, Succeeded, Voided
from jobq.runtime.context import RunningJob
from jobq.runtime.hand import Ended, Hand
from tests.aborting import aborted
from tests.sim.world import KINDS, Actor, Process, World

#: Runs that end so are not counted.
UNCOUNTED = {Verdict.DEFERRED, Verdict.RELEASED}
KEYS = ("a", "b")
#: Seconds; short, so that an outside worker that dawdles loses its lease.
LEASE_OUTSIDE = 15.0


def worker(process: Process, name: str) -> Actor:
    """A worker thread: settles what ended and claims what is next in one transaction, and takes its time between."""
    world, exchange, held = process.world, process.parts.exchange, process.parts.held
    ended: list[Ended] = []
    while True:
        yield "settles and claims"
        exchange.observe()  # A clock that was set back moves due times first.
        world.check()
        claims: list[Claim] = []
        size = world.dice.choice((1, 1, 3))
        expected = world.claimable()[:1] if not (ended or world.has_expired()) else None
        settled = exchange.settle_and_claim(tuple(ended), claims, workers=(name,), queues=None, hand=size)
        if expected is not None:
            assert [claim.id for claim in claims[:1]] == [row.id for row in expected], "(8) another job was better"
        hand = Hand(claims, claimed_at=world.clock.monotonic())
        held.add(hand)
        for one, answer in zip(ended, settled, strict=True):
            note(world, one.claim.id, one.claim.token, answer.verdict)
            world.reached["a zombie settled late"] += answer.verdict == Verdict.SUPERSEDED
        world.reached["a cap was full"] += world.is_capped()
        exchange.note(ended, settled)
        ended = []
        while (job := hand.start_next(process.runs.begin)) is not None:
            for _ in range(world.dice.randrange(4)):
                yield "runs"
            outcome = end_of(world, job)
            follow_ups = job.follow_ups if isinstance(outcome, Succeeded) else ()
            hand.finish(job, Ended(job.claim, outcome, 0.0, follow_ups))
            if world.dice.random() < 0.5:
                break  # The handler was slow: the rest of the hand is given back.
        ended = exchange.take_back(hand)


def end_of(world: World, job: RunningJob) -> Outcome:
    """Choose how a run ends."""
    if job.cancel_token.requested and world.dice.random() < 0.7:
        return Cancelled()
    match world.dice.randrange(12):
        case 0 | 1:
            return Failed(error="no")
        case 2:
            return Failed(error="never", failure_class=FailureClass.UNRECOVERABLE, retryable=False)
        case 3:
            return Postponed(until=world.clock.now() + timedelta(seconds=world.dice.randrange(90)))
        case 4:
            return Released()
        case 5:
            return Voided()
        case 6:
            job.follow_up("plain", {})
            return Succeeded()
        case _:
            return Succeeded()


def note(world: World, job_id: int, token: str, verdict: str) -> None:
    """Enter the answer to a settle into the ledger."""
    world.ledger.settle(token, written=verdict != Verdict.SUPERSEDED)
    world.reached[f"a run was {verdict}"] += 1
    if verdict in UNCOUNTED:
        world.ledger.uncounted(job_id)


def maintenance(process: Process) -> Actor:
    """The maintenance loop of a process."""
    world = process.world
    while True:
        yield "maintains"
        waiting = world.has_expired()
        before = {row.token for row in world.ledger.rows.values() if row.token}
        process.parts.maintenance.tick()
        if waiting and process.parts.guard.holding:
            world.reached["a sleep guard held back a reclaim"] += 1
        world.check()
        if before - {row.token for row in world.ledger.rows.values()}:
            world.reached["an expired lease was taken back"] += 1


def scheduler(process: Process) -> Actor:
    """The scheduler of a process."""
    while True:
        yield "ticks the schedules"
        process.world.reached["a slot fired"] += len(process.parts.scheduler.tick())


def producer(world: World) -> Actor:
    """Enqueues jobs of all sorts, some under keys, some in a transaction that may be rolled back."""
    dice, jobs = world.dice, world.jobs
    while True:
        yield "enqueues"
        kind = dice.choice(sorted(KINDS))
        key = f"{kind}-{dice.choice(KEYS)}" if dice.random() < 0.4 else None
        priority, delay = dice.choice((10, 50, 50, 100)), dice.choice((0, 0, 0, 5, 30))
        if dice.random() < 0.15:
            roll_back(world, kind, key)
            continue
        holder = next((row for row in world.ledger.rows.values() if row.live and row.dedupe_key == key and key), None)
        made = jobs.enqueue(kind, {}, dedupe_key=key, priority=priority, delay=delay)
        assert made.created == (holder is None), "(6) a held key made a job, or a free one did not"
        assert holder is None or holder.id == made.id
        world.ledger.acknowledged.add(made.id)
        if holder is not None and holder.attempts and holder.state == "queued":
            world.reached["a key was held through a retry"] += 1


def roll_back(world: World, kind: str, key: str | None) -> None:
    """Enqueue in a transaction that comes to nothing."""
    with aborted(world.jobs.transaction()):
        world.jobs.enqueue(kind, {}, dedupe_key=key)
    world.reached["a transaction was rolled back"] += 1


def stager(world: World) -> Actor:
    """A program with a database of its own, which stages jobs there."""
    while True:
        yield "stages"
        subject = f"order {next(world.numbers)}"
        connection = world.host.connect()
        with world.outbox.joined(connection):
            world.jobs.enqueue("plain", {}, subject=subject)
        if world.dice.random() < 0.7:
            connection.commit()
            world.ledger.staged.add(subject)
        connection.close()


def relay(world: World) -> Actor:
    """A relay, whose marks are lost now and then, as when it dies between publishing and marking."""
    rows = world.host.rows
    while True:
        yield "publishes"
        before = {id: attrs.evolve(row) for id, row in rows.items()}
        count = world.outbox.relay.tick()
        world.reached["a staged job was published"] += count
        if count and world.dice.random() < 0.4:
            rows.update(before)
            world.reached["a relay died before its mark"] += 1


def canceller(world: World) -> Actor:
    """Cancels any job."""
    while True:
        yield "cancels"
        id = world.some_id()
        if id is None:
            continue
        state = world.ledger.rows[id].state
        assert world.jobs.cancel(id) is (state in {"queued", "running"})
        world.reached[f"a {state} job was asked to cancel"] += 1


def requeuer(world: World) -> Actor:
    """Requeues or moves any job."""
    while True:
        yield "requeues"
        id = world.some_id()
        if id is None:
            continue
        before = world.ledger.rows[id]
        try:
            world.jobs.requeue(id)
        except InvalidTransition:
            assert before.state in {"running", "succeeded"}
        except DedupeConflict:
            world.reached["a requeue met a newer holder of its key"] += 1
            assert before.dedupe_key is not None
        else:
            world.ledger.forget_attempts(id)
            world.reached[f"a {before.state} job was requeued"] += 1
        yield "reschedules"
        if (id := world.some_id()) is not None and id in world.ledger.rows:
            done = world.jobs.reschedule(id, priority=world.dice.choice((10, 100)))
            assert done is (world.ledger.rows[id].state == "queued")


def pauser(world: World) -> Actor:
    """Pauses queues and resumes them."""
    while True:
        yield "pauses or resumes"
        queue = world.dice.choice(sorted(set(KINDS.values())))
        if queue in world.paused_queues:
            world.jobs.resume(queue)
            world.paused_queues.discard(queue)
        elif world.dice.random() < 0.3:
            world.jobs.pause(queue)
            world.paused_queues.add(queue)
            world.reached["a queue was paused"] += 1


def pruner(world: World) -> Actor:
    """Removes ended jobs now and then."""
    while True:
        yield "prunes"
        if world.dice.random() < 0.3:
            world.reached["a job was pruned"] += world.jobs.prune(older_than=world.dice.choice((0, 120))).total


def outsider(world: World, name: str) -> Actor:
    """A worker outside: takes a lease, and ends it in any way, perhaps too late."""
    jobs, dice = world.jobs, world.dice
    ends = {
        "complete": lambda lease: jobs.complete(lease, {"ok": True}),
        "fail": lambda lease: jobs.fail(lease, "no"),
        "defer": lambda lease: jobs.defer(lease, delay=20),
        "release": jobs.release,
    }
    while True:
        yield "leases"
        for lease in jobs.lease(list(KINDS), worker=name, length=LEASE_OUTSIDE):
            for _ in range(dice.randrange(1, 6)):
                yield "works outside"
            if dice.random() < 0.3:
                try:
                    lease = jobs.extend(lease)
                except LeaseLost:
                    world.reached["an outside worker lost its lease"] += 1
                yield "works outside"
            try:
                verdict = ends[dice.choice(sorted(ends))](lease)
            except (LeaseLost, JobNotFound):
                verdict = Verdict.SUPERSEDED
            note(world, lease.id, lease.token, verdict)
