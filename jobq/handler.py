"""One handler: a function, the kind it runs, and what its registration says of that kind."""

import functools
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, Protocol, TypeAlias, TypedDict, TypeVar, Unpack

import attrs

from jobq import installation
from jobq.arguments import check_int, check_key, check_kind, check_priority, check_queue, check_text
from jobq.enqueued import Enqueued
from jobq.errors import ArgumentError, ConfigError, NoQueueInstalled, PayloadError, ResultError
from jobq.model.duration import Duration, to_seconds
from jobq.model.job import JSON
from jobq.model.payload import AttrsCodec, Codec, decode, encode, encode_result
from jobq.model.retry import RetryPolicy
from jobq.newjob import EnqueueOptions
from jobq.signature import read_signature

P = ParamSpec("P")
R = TypeVar("R")
#: The types of JSON values.
_PLAIN = frozenset({dict, list, str, int, float, bool, type(None)})


class HandlerOptions(TypedDict, total=False):
    """The keywords of the ``job`` decorator.

    ``name`` is the kind, the function's name unless said otherwise. ``queue``, ``priority``, ``max_attempts`` and
    ``max_deferrals`` are the defaults of its jobs. ``concurrency`` caps its running jobs over all processes; ``gate``
    names a gate of this process; ``timeout`` is the run budget. ``retry`` is its policy. ``intake`` says that a
    retriage of a subject runs its jobs again. ``dedupe_key`` derives a key from the (typed) payload. ``payload`` and
    ``result`` name types where annotations do not; ``unknown`` ("refuse" or "ignore") says what becomes of unknown
    fields; ``codec`` replaces the codec and with it ``unknown``.
    """

    name: str | None
    queue: str | None
    priority: int | str | None
    max_attempts: int | None
    max_deferrals: int | None
    concurrency: int | None
    timeout: Duration | None
    retry: RetryPolicy | None
    dedupe_key: Callable[[Any], str | None] | None
    gate: str | None
    intake: bool
    payload: Any
    result: Any
    unknown: str
    codec: Codec | None


class Producer(Protocol):
    """A job queue, as far as a handler needs one."""

    def enqueue(
        self, kind_or_payload: object, payload: object = None, **options: Unpack[EnqueueOptions]
    ) -> Enqueued:
        """Enqueue one job."""
        ...


@attrs.define(kw_only=True, eq=False, repr=False, slots=False)
class Handler(Generic[P, R]):
    """A decorated function: still callable as it is, and the source of its jobs.

    A field that is None was not declared: the configuration, or jobq's default, decides.
    """

    kind: str
    function: Callable[P, R]
    #: Finds the one job queue to enqueue on.
    producer: Callable[[str], Producer]
    #: Whether it is called with the running job as well.
    wants_job: bool
    payload_type: Any = None
    result_type: Any = None
    codec: Codec
    queue: str | None = None
    priority: int | None = None
    max_attempts: int | None = None
    max_deferrals: int | None = None
    concurrency: int | None = None
    #: The run budget in seconds.
    timeout: float | None = None
    retry: RetryPolicy | None = None
    dedupe_key: Callable[[Any], str | None] | None = None
    gate: str | None = None
    #: Whether a retriage of a subject runs its jobs of this kind again.
    intake: bool = False
    #: Whether its registration named the kind; else the function's name is the kind.
    named: bool = False

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself; no queue is involved."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Handler of {self.kind!r}>"

    def enqueue(self, payload: object = None, **options: Unpack[EnqueueOptions]) -> Enqueued:
        """Enqueue a job of this kind on the one job queue that the handler is attached to, else on the installed one.

        :func:`jobq.install` installs one; it is looked up at each call.

        Raises:
            NoQueueInstalled: it is attached to none, or to several, and none is installed.
        """
        return self._producer().enqueue(self, payload, **options)

    def _producer(self) -> Producer:
        try:
            return self.producer(self.kind)
        except NoQueueInstalled:
            installed: Producer | None = installation.get()
            if installed is None:
                raise
            return installed

    def load(self, value: JSON) -> Any:
        """Return what the function is called with for a JSON payload; raises PayloadError where it does not fit."""
        return value if self.payload_type is None else self.codec.load(value, self.payload_type)

    def encode_payload(self, payload: object, *, limit: int) -> tuple[str, Any]:
        """Return the JSON text of a payload, typed or plain, and the value that the function will get.

        Raises:
            PayloadError: it is no JSON, too large, or not what the kind takes.
        """
        self._refuse_stranger(payload)
        plain = self.codec.dump(payload)
        text = encode(plain, limit=limit)
        # Read back: what the codec sees is what it will see when the job runs, a StrEnum's text for instance.
        return text, plain if self.payload_type is None else self.load(decode(text))

    def encode_result(self, result: object, *, limit: int) -> str | None:
        """Return the JSON text of a result, None for none; raises ResultError where its schema refuses it."""
        if result is None and self.result_type is None:
            return None
        try:
            text = encode_result(self.codec.dump(result), limit=limit)
            if self.result_type is not None:
                self.codec.load(decode(text), self.result_type)
        except PayloadError as error:
            raise ResultError(error.path, error.problem) from None
        return text

    def key_of(self, value: Any) -> str | None:
        """Return the dedupe key that the kind derives from a payload; None where it derives none."""
        if self.dedupe_key is None:
            return None
        try:
            key = self.dedupe_key(value)
        except Exception as error:  # the host's function; its text may quote the payload
            name = type(error).__name__
            raise ArgumentError("dedupe_key", f"the function of kind {self.kind!r} raised {name}") from None
        return None if key is None else check_key(key)

    def _refuse_stranger(self, payload: object) -> None:
        """Refuse a value of another class, although its fields might fit."""
        wanted = self.payload_type
        if type(payload) not in _PLAIN and isinstance(wanted, type) and not isinstance(payload, wanted):
            raise PayloadError("$", f"a {wanted.__name__} is needed, not a {type(payload).__name__}")


#: A handler whose signature does not matter.
AnyHandler: TypeAlias = Handler[..., Any]


def make_handler(
    function: Callable[P, R],
    *,
    producer: Callable[[str], Producer],
    name: str | None = None,
    queue: str | None = None,
    priority: int | str | None = None,
    max_attempts: int | None = None,
    max_deferrals: int | None = None,
    concurrency: int | None = None,
    timeout: Duration | None = None,
    retry: RetryPolicy | None = None,
    dedupe_key: Callable[[Any], str | None] | None = None,
    gate: str | None = None,
    intake: bool = False,
    payload: Any = None,
    result: Any = None,
    unknown: str = "refuse",
    codec: Codec | None = None,
) -> Handler[P, R]:
    """Check a registration and return its handler.

    Raises:
        ConfigError: the function cannot be a handler, or its types are unknown to the codec.
        ArgumentError: an option is out of its range.
    """
    kind = check_kind(_name(function) if name is None else name, argument="name")
    signature = read_signature(function, name=kind, payload=payload, result=result)
    chosen = AttrsCodec(unknown) if codec is None else codec
    for schema in (signature.payload, signature.result):
        if schema is not None:
            chosen.supports(schema)
    handler = Handler(
        kind=kind,
        function=function,
        producer=producer,
        wants_job=signature.wants_job,
        payload_type=signature.payload,
        result_type=signature.result,
        codec=chosen,
        queue=None if queue is None else check_queue(queue),
        priority=None if priority is None else check_priority(priority),
        max_attempts=None if max_attempts is None else check_int(max_attempts, argument="max_attempts", least=1),
        max_deferrals=None if max_deferrals is None else check_int(max_deferrals, argument="max_deferrals", least=0),
        concurrency=None if concurrency is None else check_int(concurrency, argument="concurrency", least=1),
        timeout=None if timeout is None else _budget(timeout),
        retry=_check_type(retry, RetryPolicy, "retry"),
        dedupe_key=_check_type(dedupe_key, Callable, "dedupe_key"),
        gate=None if gate is None else check_text(gate, argument="gate"),
        intake=bool(_check_type(intake, bool, "intake")),
        named=name is not None,
    )
    functools.update_wrapper(handler, function)
    return handler


def _name(function: object) -> str:
    found: str | None = getattr(function, "__name__", None)
    if found is None or found == "<lambda>":
        raise ConfigError("the handler has no name", fix="Say which kind it runs with name=.")
    return found


def _budget(timeout: Duration) -> float:
    seconds = to_seconds(timeout, argument="timeout")
    if seconds <= 0:
        raise ArgumentError("timeout", "a run budget is longer than nothing", fix="Use None for no budget.")
    return seconds


def _check_type(value: Any, wanted: Any, argument: str) -> Any:
    if value is not None and not isinstance(value, wanted):
        raise ArgumentError(argument, f"it cannot be a {type(value).__name__}")
    return value
