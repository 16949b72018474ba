"""A durable job queue for synchronous Python: plain threads, one SQLite file, no server.

Each name is loaded when it is first used, so that a program which only enqueues, or only asks for help, does not pay
for the rest. Type checkers read ``__init__.pyi``, which imports the same names.
"""

import importlib

_HOMES = {
    "jobq.audience": ("Subscription",),
    "jobq.bus": ("Bus",),
    "jobq.cancellation": ("CancelReason", "CancelToken"),
    "jobq.clock": ("Clock", "SystemClock"),
    "jobq.config": ("Config",),
    "jobq.enqueued": ("Enqueued",),
    "jobq.errors": (
        "ArgumentError", "BackupRefused", "ConfigError", "ConfigFileError", "CronError", "DedupeConflict", "Deferred",
        "ForeignHandle", "ForkedHandle", "InsideTransaction", "InvalidTransition", "JobCancelled", "JobNotFound",
        "JobqError", "KindNotAccepted", "LeaseLost", "NoQueueInstalled", "NotPublished", "OutboxTableMissing",
        "OutboxUnavailable", "OutsideTransaction", "PayloadError", "PayloadTooLarge",
        "PermanentJobError", "QueueClosed", "QueueNotFound", "ResultError", "RetiredKind", "RunnerBusy",
        "ScheduleNotFound", "SchemaTooNew", "StatementRefused", "StoreBusy", "StoreCorrupt", "StoreError",
        "StoreFull", "StoreUnavailable", "TransactionEnded", "TransientJobError", "UnknownKind", "WaitTimeout",
    ),
    "jobq.finishing": ("JobTransaction",),
    "jobq.gate": ("Gate",),
    "jobq.handler": ("Handler",),
    "jobq.handlers": ("Handlers",),
    "jobq.jobqueue": ("JobQueue",),
    "jobq.model.cron": ("Cron",),
    "jobq.model.effects": ("Verdict",),
    "jobq.model.entries": ("Entry",),
    "jobq.model.events": (
        "PRIVATE", "Event", "Gap", "HealthChanged", "JobProgressed", "JobStateChanged", "JobStuck",
        "KindStateChanged", "LogLine", "QueueStateChanged", "ScheduleFired", "ScheduleStateChanged", "TraceEntry",
    ),
    "jobq.model.explanation": ("Explanation", "Reason", "ReasonCode"),
    "jobq.model.finding": ("Finding",),
    "jobq.model.job": (
        "Actor", "FailureClass", "Job", "JobInfo", "JobState", "KindInfo", "LoggedChange", "Priority", "QueueInfo",
        "Requeued", "Run",
    ),
    "jobq.model.label": ("LabelLayer",),
    "jobq.model.lease": ("Lease",),
    "jobq.model.payload": ("AttrsCodec", "Codec"),
    "jobq.model.pruning": ("Pruned",),
    "jobq.model.retry": ("RetryPolicy", "RetryStrategy"),
    "jobq.model.schedule": ("CatchUp",),
    "jobq.model.scheduled": ("Dispatched", "ScheduleInfo"),
    "jobq.model.stats": ("LaneTally", "Stats", "Tally"),
    "jobq.newjob": ("NewJob",),
    "jobq.opening": ("install", "open"),
    "jobq.outbox.outbox": ("Outbox", "OutboxFailure", "OutboxMode", "OutboxPending"),
    "jobq.queueconfig": ("QueueConfig",),
    "jobq.retention": ("Retention",),
    "jobq.runtime.context": ("RunningJob",),
    "jobq.runtime.drain": ("Counts",),
    "jobq.runtime.health": ("Bootstrap", "Health"),
    "jobq.runtime.leader": ("Leader", "LeaseLeader", "SoleLeader"),
    "jobq.runtime.runner": ("Runner",),
    "jobq.store.base": ("Durability",),
    "jobq.stream": ("Stream",),
    "jobq.transacting": ("Snapshot", "Transaction"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    """Load a public name where it lives, and keep it here."""
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(module), name)
    return found


def __dir__() -> list[str]:
    """Return the public names, whether they are loaded or not, and the rest."""
    return sorted({*globals(), *_HOME})
