"""A durable job queue for synchronous Python: plain threads, one SQLite file, no server."""

from jobq.audience import Subscription
from jobq.bus import Bus
from jobq.cancellation import CancelReason, CancelToken
from jobq.clock import Clock, SystemClock
from jobq.config import Config
from jobq.enqueued import Enqueued
from jobq.errors import (
    ArgumentError,
    BackupRefused,
    ConfigError,
    ConfigFileError,
    CronError,
    DedupeConflict,
    Deferred,
    ForeignHandle,
    ForkedHandle,
    InsideTransaction,
    InvalidTransition,
    JobCancelled,
    JobNotFound,
    JobqError,
    KindNotAccepted,
    LeaseLost,
    NoQueueInstalled,
    NotPublished,
    OutboxTableMissing,
    OutboxUnavailable,
    OutsideTransaction,
    PayloadError,
    PayloadTooLarge,
    PermanentJobError,
    QueueClosed,
    QueueNotFound,
    ResultError,
    RetiredKind,
    RunnerBusy,
    ScheduleNotFound,
    SchemaTooNew,
    StatementRefused,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreUnavailable,
    TransactionEnded,
    TransientJobError,
    UnknownKind,
    WaitTimeout,
)
from jobq.finishing import JobTransaction
from jobq.gate import Gate
from jobq.handler import Handler
from jobq.handlers import Handlers
from jobq.jobqueue import JobQueue
from jobq.model.cron import Cron
from jobq.model.effects import Verdict
from jobq.model.entries import Entry
from jobq.model.events import (
    PRIVATE,
    Event,
    Gap,
    HealthChanged,
    JobProgressed,
    JobStateChanged,
    JobStuck,
    KindStateChanged,
    LogLine,
    QueueStateChanged,
    ScheduleFired,
    ScheduleStateChanged,
    TraceEntry,
)
from jobq.model.explanation import Explanation, Reason, ReasonCode
from jobq.model.finding import Finding
from jobq.model.job import (
    Actor,
    FailureClass,
    Job,
    JobInfo,
    JobState,
    KindInfo,
    LoggedChange,
    Priority,
    QueueInfo,
    Requeued,
    Run,
)
from jobq.model.label import LabelLayer
from jobq.model.lease import Lease
from jobq.model.payload import AttrsCodec, Codec
from jobq.model.pruning import Pruned
from jobq.model.retry import RetryPolicy, RetryStrategy
from jobq.model.schedule import CatchUp
from jobq.model.scheduled import Dispatched, ScheduleInfo
from jobq.model.stats import LaneTally, Stats, Tally
from jobq.newjob import NewJob
from jobq.opening import install, open
from jobq.outbox.outbox import Outbox, OutboxFailure, OutboxMode, OutboxPending
from jobq.queueconfig import QueueConfig
from jobq.retention import Retention
from jobq.runtime.context import RunningJob
from jobq.runtime.drain import Counts
from jobq.runtime.health import Bootstrap, Health
from jobq.runtime.leader import Leader, LeaseLeader, SoleLeader
from jobq.runtime.runner import Runner
from jobq.store.base import Durability
from jobq.stream import Stream
from jobq.transacting import Snapshot, Transaction

__all__ = [
    "PRIVATE",
    "Actor",
    "ArgumentError",
    "AttrsCodec",
    "BackupRefused",
    "Bootstrap",
    "Bus",
    "CancelReason",
    "CancelToken",
    "CatchUp",
    "Clock",
    "Codec",
    "Config",
    "ConfigError",
    "ConfigFileError",
    "Counts",
    "Cron",
    "CronError",
    "DedupeConflict",
    "Deferred",
    "Dispatched",
    "Durability",
    "Enqueued",
    "Entry",
    "Event",
    "Explanation",
    "FailureClass",
    "Finding",
    "ForeignHandle",
    "ForkedHandle",
    "Gap",
    "Gate",
    "Handler",
    "Handlers",
    "Health",
    "HealthChanged",
    "InsideTransaction",
    "InvalidTransition",
    "Job",
    "JobCancelled",
    "JobInfo",
    "JobNotFound",
    "JobProgressed",
    "JobQueue",
    "JobState",
    "JobStateChanged",
    "JobStuck",
    "JobTransaction",
    "JobqError",
    "KindInfo",
    "KindNotAccepted",
    "KindStateChanged",
    "LabelLayer",
    "LaneTally",
    "Leader",
    "Lease",
    "LeaseLeader",
    "LeaseLost",
    "LogLine",
    "LoggedChange",
    "NewJob",
    "NoQueueInstalled",
    "NotPublished",
    "Outbox",
    "OutboxFailure",
    "OutboxMode",
    "OutboxPending",
    "OutboxTableMissing",
    "OutboxUnavailable",
    "OutsideTransaction",
    "PayloadError",
    "PayloadTooLarge",
    "PermanentJobError",
    "Priority",
    "Pruned",
    "QueueClosed",
    "QueueConfig",
    "QueueInfo",
    "QueueNotFound",
    "QueueStateChanged",
    "Reason",
    "ReasonCode",
    "Requeued",
    "ResultError",
    "Retention",
    "RetiredKind",
    "RetryPolicy",
    "RetryStrategy",
    "Run",
    "Runner",
    "RunnerBusy",
    "RunningJob",
    "ScheduleFired",
    "ScheduleInfo",
    "ScheduleNotFound",
    "ScheduleStateChanged",
    "SchemaTooNew",
    "Snapshot",
    "SoleLeader",
    "StatementRefused",
    "Stats",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "Stream",
    "Subscription",
    "SystemClock",
    "Tally",
    "TraceEntry",
    "Transaction",
    "TransactionEnded",
    "TransientJobError",
    "UnknownKind",
    "Verdict",
    "WaitTimeout",
    "install",
    "open",
]
