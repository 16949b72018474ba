"""Every exception that jobq raises, in one tree.

::

    JobqError
    ├── ArgumentError (ValueError)           an argument of a verb is out of its range
    │   └── CronError                        a cron expression is malformed or can never fire
    ├── ConfigError (ValueError)             a registration or a configuration contradicts itself
    │   └── ConfigFileError                  a configuration file cannot be read, or has a mistake in it
    ├── PayloadError (ValueError)            a payload is not JSON or does not fit its kind
    │   └── PayloadTooLarge                  it is larger than the limit
    ├── ResultError (ValueError)             a handler's result is not JSON or does not fit its kind
    ├── UnknownKind (LookupError)            nobody registered it and no row knows it
    ├── KindNotAccepted (ValueError)         the queue accepts other kinds only
    ├── RetiredKind (ValueError)             enqueueing a kind that was declared retired
    ├── JobNotFound (LookupError)            no job has this id
    ├── QueueNotFound (LookupError)          no queue has this name
    ├── ScheduleNotFound (LookupError)       no schedule has this name
    ├── InvalidTransition (ValueError)       requeueing one job that is running or succeeded
    ├── DedupeConflict (ValueError)          the key is held by another job
    ├── LeaseLost (RuntimeError)             the lease's token is no longer the job's
    ├── WaitTimeout (TimeoutError)           the job did not end in time
    ├── NoQueueInstalled (RuntimeError)      a handler was asked to enqueue and has no job queue
    ├── InsideTransaction (RuntimeError)     what cannot be a part of a transaction was called inside one
    ├── OutsideTransaction (RuntimeError)    an enqueue outside of one, where an outbox requires one
    ├── NotPublished (RuntimeError)          a staged job was waited for, which no relay has made yet
    ├── OutboxTableMissing (LookupError)     the host's database has no outbox table
    ├── OutboxUnavailable (RuntimeError)     the connection to the host's database cannot be used
    ├── TransactionEnded (RuntimeError)      a transaction was used after its end, or on another thread
    ├── StatementRefused (ValueError)        SQL of the host's that a transaction does not carry out
    ├── QueueClosed (RuntimeError)           a verb was called after close()
    ├── RunnerBusy (RuntimeError)            a drain beside the runner's threads, or inside a handler
    ├── ForeignHandle (RuntimeError)         another SQLite library has the file open in this process
    ├── ForkedHandle (RuntimeError)          a handle was inherited through a fork
    ├── BackupRefused (FileExistsError)      a backup cannot be written under this name
    ├── SchemaTooNew (RuntimeError)          the file was written by a newer jobq
    ├── StoreError (OSError)                 the database did not do what it was asked to do
    │   ├── StoreBusy                        somebody else held the lock for too long
    │   ├── StoreUnavailable                 the file cannot be opened, read or written
    │   ├── StoreFull                        the disk or a quota is full
    │   └── StoreCorrupt                     the file is damaged, or was replaced while open
    ├── Deferred                             raised by a handler: come back later
    ├── PermanentJobError                    raised by a handler: do not try again
    └── TransientJobError                    raised by a handler: the cause will pass
    JobCancelled (BaseException)             raised by a handler that stops because it was asked to

An error builds its message from data and keeps the data as attributes. ``fix`` says what the user can do about it,
where there is something to do; it is shown below a traceback too. No message carries a payload, a result or a secret.
"""

from jobq.errors.arguments import (
    ArgumentError,
    ConfigError,
    ConfigFileError,
    CronError,
    KindNotAccepted,
    PayloadError,
    PayloadTooLarge,
    ResultError,
    RetiredKind,
    UnknownKind,
)
from jobq.errors.database import (
    BackupRefused,
    ForeignHandle,
    ForkedHandle,
    SchemaTooNew,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreUnavailable,
)
from jobq.errors.handlers import Deferred, JobCancelled, PermanentJobError, TransientJobError
from jobq.errors.outbox import NotPublished, OutboxTableMissing, OutboxUnavailable, OutsideTransaction
from jobq.errors.root import JobqError
from jobq.errors.states import (
    DedupeConflict,
    InsideTransaction,
    InvalidTransition,
    JobNotFound,
    LeaseLost,
    NoQueueInstalled,
    QueueClosed,
    QueueNotFound,
    RunnerBusy,
    ScheduleNotFound,
    StatementRefused,
    TransactionEnded,
    WaitTimeout,
)

__all__ = [
    "ArgumentError",
    "BackupRefused",
    "ConfigError",
    "ConfigFileError",
    "CronError",
    "DedupeConflict",
    "Deferred",
    "ForeignHandle",
    "ForkedHandle",
    "InsideTransaction",
    "InvalidTransition",
    "JobCancelled",
    "JobNotFound",
    "JobqError",
    "KindNotAccepted",
    "LeaseLost",
    "NoQueueInstalled",
    "NotPublished",
    "OutboxTableMissing",
    "OutboxUnavailable",
    "OutsideTransaction",
    "PayloadError",
    "PayloadTooLarge",
    "PermanentJobError",
    "QueueClosed",
    "QueueNotFound",
    "ResultError",
    "RetiredKind",
    "RunnerBusy",
    "ScheduleNotFound",
    "SchemaTooNew",
    "StatementRefused",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "TransactionEnded",
    "TransientJobError",
    "UnknownKind",
    "WaitTimeout",
]
