"""Handlers and their registries."""

import functools
import gc
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import attrs
import pytest

import jobq
from jobq import ArgumentError, ConfigError, Handlers, JobQueue, NoQueueInstalled, PayloadError, ResultError


@attrs.frozen
class Mail:
    """A payload."""

    to: str
    subject: str = "hello"


@attrs.frozen
class Receipt:
    """A result."""

    message_id: str


class Service:
    """An object whose method is a handler."""

    def deliver(self, payload: Mail) -> None:
        """Do nothing."""


@pytest.fixture
def handlers() -> Handlers:
    """A registry without a job queue."""
    return Handlers()


def test_job_leaves_the_function_callable(handlers: Handlers) -> None:
    """A decorated function is called in unit tests as if it were not decorated."""

    @handlers.job
    def double(payload: int) -> int:
        """Twice."""
        return 2 * payload

    assert double(4) == 8
    assert (double.__name__, double.__doc__) == ("double", "Twice.")  # type: ignore[attr-defined]


def test_job_is_written_in_three_ways(handlers: Handlers) -> None:
    """Bare, with empty parentheses, with options; the kind is the function's name unless said otherwise."""

    @handlers.job
    def one(payload: Any) -> None: ...

    @handlers.job()
    def two(payload: Any) -> None: ...

    @handlers.job(name="mail.three", queue="mail")
    def three(payload: Any) -> None: ...

    assert handlers.kinds() == ("mail.three", "one", "two")
    assert handlers.find("mail.three") is three
    assert (three.kind, three.queue) == ("mail.three", "mail")
    assert handlers.find("three") is None


def test_job_keeps_what_was_declared(handlers: Handlers) -> None:
    """Each option is found on the handler; what was not declared is None."""
    policy = jobq.RetryPolicy(base=1)

    @handlers.job(priority=-7, max_attempts=3, max_deferrals=0, concurrency=2, timeout="2m", retry=policy, gate="llm")
    def busy(payload: Any) -> None: ...

    @handlers.job
    def plain(payload: Any) -> None: ...

    assert (busy.priority, busy.max_attempts, busy.max_deferrals, busy.concurrency) == (-7, 3, 0, 2)
    assert (busy.timeout, busy.retry, busy.gate) == (120.0, policy, "llm")
    assert (plain.queue, plain.priority, plain.timeout, plain.retry, plain.gate) == (None,) * 5


def test_job_reads_the_types_from_the_annotations(handlers: Handlers) -> None:
    """The payload's and the result's; the job's own type is never looked at."""

    @handlers.job
    def send(payload: Mail, job: "NotThere") -> Receipt:  # type: ignore[name-defined]  # noqa: F821
        return Receipt("1")

    @handlers.job
    def loose(payload) -> None: ...  # type: ignore[no-untyped-def]

    assert (send.payload_type, send.result_type, send.wants_job) == (Mail, Receipt, True)
    assert (loose.payload_type, loose.result_type, loose.wants_job) == (None, None, False)


def test_job_resolves_annotations_that_are_text(handlers: Handlers) -> None:
    """As they are in a module with postponed annotations."""

    @handlers.job
    def send(payload: "Mail") -> "Receipt | None": ...

    assert (send.payload_type, send.result_type) == (Mail, Receipt | None)


def test_job_refuses_an_annotation_that_cannot_be_resolved(handlers: Handlers) -> None:
    """The error names it; payload= is the way out."""

    def send(payload: "NotThere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ConfigError, match="NotThere") as raised:
        handlers.job(send)

    assert "payload=" in str(raised.value.fix)
    assert handlers.job(payload=Mail)(send).payload_type is Mail


def test_job_takes_bound_methods_and_partials(handlers: Handlers) -> None:
    """Anything that is called with a payload is a handler."""

    def add(amount: int, payload: int) -> int:
        return amount + payload

    method = handlers.job(Service().deliver)
    partial = handlers.job(name="add")(functools.partial(add, 2))

    assert (method.kind, method.payload_type, method.wants_job) == ("deliver", Mail, False)
    assert (partial(3), partial.payload_type) == (5, int)


async def _coroutine(payload: Any) -> None: ...


async def _async_generator(payload: Any) -> AsyncIterator[int]:
    yield 1


def _generator(payload: Any) -> Iterator[int]:
    yield 1


def _nothing() -> None: ...


def _three(payload: Any, job: Any, more: Any) -> None: ...


def _keyword(payload: Any, *, needed: int) -> None: ...


def _set(payload: set[int]) -> None: ...


class _AsyncCallable:
    async def __call__(self, payload: Any) -> None: ...


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(_coroutine, id="coroutine"),
        pytest.param(functools.partial(_coroutine), id="partial of a coroutine"),
        pytest.param(_AsyncCallable(), id="object with a coroutine"),
        pytest.param(_async_generator, id="async generator"),
        pytest.param(_generator, id="generator"),
        pytest.param(_nothing, id="no argument"),
        pytest.param(_three, id="three arguments"),
        pytest.param(_keyword, id="a needed keyword"),
        pytest.param(_set, id="a type the codec does not know"),
        pytest.param(Mail, id="a class"),
        pytest.param("text", id="text"),
    ],
)
def test_job_refuses_what_cannot_be_a_handler(handlers: Handlers, function: Any) -> None:
    """Refused when it is decorated, not when the first job runs."""
    with pytest.raises(ConfigError):
        handlers.job(name="it")(function)

    assert handlers.kinds() == ()


def test_job_refuses_a_lambda_without_a_name(handlers: Handlers) -> None:
    """"<lambda>" says nothing as a kind."""
    with pytest.raises(ConfigError, match="no name"):
        handlers.job(lambda payload: None)

    assert handlers.job(name="quick")(lambda payload: None).kind == "quick"


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"name": ""}, id="empty kind"),
        pytest.param({"name": "a\nb"}, id="control character"),
        pytest.param({"name": "k" * 201}, id="long kind"),
        pytest.param({"queue": "Mail"}, id="queue name"),
        pytest.param({"priority": 1001}, id="priority"),
        pytest.param({"max_attempts": 0}, id="no attempts"),
        pytest.param({"max_deferrals": -1}, id="negative deferrals"),
        pytest.param({"concurrency": 0}, id="cap 0"),
        pytest.param({"concurrency": True}, id="cap a bool"),
        pytest.param({"timeout": 0}, id="no budget"),
        pytest.param({"timeout": "soon"}, id="budget no duration"),
        pytest.param({"retry": 5}, id="retry no policy"),
        pytest.param({"dedupe_key": "key"}, id="key no function"),
        pytest.param({"gate": ""}, id="gate without a name"),
    ],
)
def test_job_refuses_options_out_of_range(handlers: Handlers, options: dict[str, Any]) -> None:
    """Each with the name of the option, and nothing is registered."""
    with pytest.raises(ArgumentError) as raised:
        handlers.job(**{"name": "it", **options})(lambda payload: None)

    assert raised.value.argument == next(iter(options))
    assert handlers.kinds() == ()


def test_two_handlers_of_one_kind_are_refused(handlers: Handlers, jobs: JobQueue) -> None:
    """In one registry, and in two that one job queue is opened with."""
    other = Handlers()
    first = handlers.job(name="mail")(lambda payload: 1)
    other.job(name="mail")(lambda payload: 2)

    with pytest.raises(ConfigError, match="mail"):
        handlers.job(name="mail")(lambda payload: 3)
    jobs.attach(handlers)
    with pytest.raises(ConfigError, match="mail"):
        jobs.attach(other)
    with pytest.raises(ConfigError, match="mail"):
        jobs.job(name="mail")(lambda payload: 4)
    assert jobs.handlers.find("mail") is first


def test_handler_registered_later_shows_in_every_view(handlers: Handlers, jobs: JobQueue) -> None:
    """A module that is imported after the job queue was opened is not forgotten."""
    jobs.attach(handlers)

    late = handlers.job(name="late")(lambda payload: None)

    assert jobs.handlers.find("late") is late
    jobs.enqueue("late")
    assert "late" in [kind.name for kind in jobs.kinds()]


def test_late_double_changes_no_registry(handlers: Handlers, jobs: JobQueue) -> None:
    """A registration that one view refuses is in none."""
    jobs.job(name="mail")(lambda payload: None)
    jobs.attach(handlers)

    with pytest.raises(ConfigError):
        handlers.job(name="mail")(lambda payload: None)

    assert handlers.kinds() == ()


def test_retire_drops_the_handler_and_is_seen_in_every_view(handlers: Handlers, jobs: JobQueue) -> None:
    """A retired kind has no handler; registering it again takes that back."""
    handlers.job(name="old")(lambda payload: None)
    jobs.attach(handlers)

    handlers.retire("old", "older")

    assert jobs.handlers.is_retired("old")
    assert jobs.handlers.is_retired("older")
    assert (jobs.handlers.find("old"), jobs.handlers.kinds()) == (None, ())
    handlers.job(name="old")(lambda payload: None)
    assert (handlers.is_retired("old"), jobs.handlers.kinds()) == (False, ("old",))


def test_handler_enqueues_on_the_one_queue_it_is_attached_to(handlers: Handlers, jobs: JobQueue) -> None:
    """Options are those of jobs.enqueue."""
    send = handlers.job(name="send")(lambda payload: None)
    jobs.attach(handlers)

    made = send.enqueue({"to": "ada"}, priority=3)

    assert (made.job.kind, made.job.priority, made.job.payload) == ("send", 3, {"to": "ada"})


def test_handler_without_a_queue_says_what_to_do(handlers: Handlers) -> None:
    """With none attached it cannot enqueue."""
    send = handlers.job(name="send")(lambda payload: None)

    with pytest.raises(NoQueueInstalled) as raised:
        send.enqueue()

    assert raised.value.attached == 0
    assert "jobq.open" in str(raised.value.fix)


def test_handler_attached_to_two_queues_cannot_choose(
    handlers: Handlers, jobs: JobQueue, open_again: Callable[..., JobQueue]
) -> None:
    """Until one of them is closed."""
    send = handlers.job(name="send")(lambda payload: None)
    jobs.attach(handlers)
    other = open_again(handlers=handlers)

    with pytest.raises(NoQueueInstalled) as raised:
        send.enqueue()
    other.close()

    assert raised.value.attached == 2
    assert send.enqueue().created


def test_registry_does_not_keep_a_job_queue_alive(handlers: Handlers) -> None:
    """A module's registry lives as long as the process; the queues of its tests do not."""
    jobs = jobq.open(handlers=handlers)
    seen = weakref.ref(jobs)
    jobs.close()
    del jobs
    gc.collect()

    assert seen() is None


def test_load_gives_the_function_what_it_declares(handlers: Handlers) -> None:
    """A JSON payload becomes the typed value, or is refused with the path."""
    send = handlers.job(name="send", payload=Mail)(lambda payload: None)

    assert send.load({"to": "ada"}) == Mail("ada")
    with pytest.raises(PayloadError) as raised:
        send.load({"to": 5})
    assert raised.value.path == "$.to"


def test_unknown_fields_are_refused_or_ignored_as_the_kind_says(handlers: Handlers) -> None:
    """A rolling deploy may choose."""
    strict = handlers.job(name="strict", payload=Mail)(lambda payload: None)
    lax = handlers.job(name="lax", payload=Mail, unknown="ignore")(lambda payload: None)

    assert lax.load({"to": "ada", "cc": "bob"}) == Mail("ada")
    with pytest.raises(PayloadError):
        strict.load({"to": "ada", "cc": "bob"})


def test_encode_result_checks_the_schema(handlers: Handlers) -> None:
    """A typed result, a JSON one that fits, and what is refused."""
    send = handlers.job(name="send", result=Receipt)(lambda payload: None)
    loose = handlers.job(name="loose")(lambda payload: None)

    assert send.encode_result(Receipt("7"), limit=100) == '{"message_id":"7"}'
    assert send.encode_result({"message_id": "7"}, limit=100) == '{"message_id":"7"}'
    assert loose.encode_result(None, limit=100) is None
    for bad in ({"message_id": 7}, None, {"message_id": "7" * 100}):
        with pytest.raises(ResultError):
            send.encode_result(bad, limit=100)


class _Upper:
    """A codec of the host's own, for payloads that are text."""

    def supports(self, schema: Any) -> None:
        """Any type will do."""

    def load(self, value: Any, schema: Any) -> object:
        """In capitals."""
        return value.upper()

    def dump(self, value: object) -> Any:
        """As it is."""
        return value


def test_codec_of_the_hosts_own_is_used(handlers: Handlers) -> None:
    """A codec is a small protocol that anybody can implement."""
    shout = handlers.job(name="shout", payload=str, codec=_Upper())(lambda payload: None)

    assert shout.encode_payload("hey", limit=100) == ('"hey"', "HEY")
