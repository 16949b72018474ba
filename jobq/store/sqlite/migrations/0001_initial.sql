-- Times are integers: milliseconds since 1970-01-01 UTC. JSON is kept as text and never looked into by SQL.

CREATE TABLE jobq_queue (
    name        TEXT PRIMARY KEY,
    paused_at   INTEGER,
    paused_by   TEXT,
    paused_why  TEXT
) STRICT, WITHOUT ROWID;

INSERT INTO jobq_queue (name) VALUES ('default');

-- What registrations said of each kind, so that producers and outside workers need no handler.
CREATE TABLE jobq_kind (
    name           TEXT PRIMARY KEY,
    queue          TEXT,
    priority       INTEGER,
    max_attempts   INTEGER,
    max_deferrals  INTEGER,
    cap            INTEGER CHECK (cap >= 1),
    retry          TEXT,
    retired        INTEGER NOT NULL DEFAULT 0 CHECK (retired IN (0, 1))
) STRICT, WITHOUT ROWID;

-- AUTOINCREMENT: an id is never used twice, also after its row was pruned.
CREATE TABLE jobq_job (
    id                   INTEGER PRIMARY KEY AUTOINCREMENT,
    kind                 TEXT NOT NULL CHECK (kind <> ''),
    queue                TEXT NOT NULL,
    state                TEXT NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    priority             INTEGER NOT NULL CHECK (priority BETWEEN -1000 AND 1000),
    payload              TEXT,
    result               TEXT,
    parent_id            INTEGER REFERENCES jobq_job (id) ON DELETE SET NULL,
    actor                TEXT NOT NULL CHECK (actor IN ('user', 'agent', 'system')),
    tenant_id            TEXT,
    subject              TEXT,
    dedupe_key           TEXT CHECK (length(dedupe_key) BETWEEN 1 AND 512),
    schedule             TEXT,
    slot                 INTEGER,
    meta                 TEXT,
    attempts             INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    max_attempts         INTEGER NOT NULL,
    deferrals            INTEGER NOT NULL DEFAULT 0 CHECK (deferrals >= 0),
    max_deferrals        INTEGER,
    run_at               INTEGER NOT NULL,
    last_error           TEXT,
    failure_reason       TEXT,
    failure_class        TEXT CHECK (failure_class IN ('transient', 'unrecoverable')),
    progress             TEXT,
    worker               TEXT,
    token                TEXT,
    lease_until          INTEGER,
    lease_length         INTEGER,
    lease_held           INTEGER NOT NULL DEFAULT 0 CHECK (lease_held IN (0, 1)),
    cancel_requested_at  INTEGER,
    created_at           INTEGER NOT NULL,
    started_at           INTEGER,
    finished_at          INTEGER,
    -- A running row has a whole lease, and no other row has a part of one.
    CHECK (iif(state = 'running',
               token IS NOT NULL AND worker IS NOT NULL AND lease_until IS NOT NULL AND lease_length IS NOT NULL,
               token IS NULL AND worker IS NULL AND lease_until IS NULL AND lease_length IS NULL
               AND lease_held = 0 AND cancel_requested_at IS NULL)),
    -- A terminal row has a finish, and no other row has one.
    CHECK ((state IN ('succeeded', 'failed', 'cancelled')) = (finished_at IS NOT NULL))
) STRICT;

-- The claim: the head of each lane is one seek, however many rows wait in it or in front of it.
CREATE INDEX jobq_job_lane ON jobq_job (queue, kind, priority DESC, run_at, id) WHERE state = 'queued';

-- Expired leases by time; counting against a cap reads it without touching the table.
CREATE INDEX jobq_job_lease ON jobq_job (lease_until, kind, queue) WHERE state = 'running';

-- At most one queued or running job for each key.
CREATE UNIQUE INDEX jobq_job_dedupe ON jobq_job (dedupe_key)
    WHERE dedupe_key IS NOT NULL AND state IN ('queued', 'running');

-- Running jobs that were asked to cancel: nearly always empty.
CREATE INDEX jobq_job_cancel ON jobq_job (token) WHERE cancel_requested_at IS NOT NULL;

-- Ended jobs by age; counts and listings read it without touching the table.
CREATE INDEX jobq_job_ended ON jobq_job (state, finished_at, queue, kind) WHERE finished_at IS NOT NULL;

CREATE INDEX jobq_job_parent ON jobq_job (parent_id) WHERE parent_id IS NOT NULL;

-- Listings by what most jobs lack: these cost nothing for jobs without it.
CREATE INDEX jobq_job_subject ON jobq_job (subject) WHERE subject IS NOT NULL;
CREATE INDEX jobq_job_tenant ON jobq_job (tenant_id) WHERE tenant_id IS NOT NULL;
CREATE INDEX jobq_job_key ON jobq_job (dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE INDEX jobq_job_reason ON jobq_job (failure_reason) WHERE failure_reason IS NOT NULL;

-- Large texts live beside the job: an UPDATE rewrites its whole row.
CREATE TABLE jobq_payload (
    job_id  INTEGER PRIMARY KEY REFERENCES jobq_job (id) ON DELETE CASCADE,
    body    TEXT NOT NULL
) STRICT;

CREATE TABLE jobq_result (
    job_id  INTEGER PRIMARY KEY REFERENCES jobq_job (id) ON DELETE CASCADE,
    body    TEXT NOT NULL
) STRICT;

-- Counted runs that did not succeed; the number is never reset.
CREATE TABLE jobq_run (
    job_id      INTEGER NOT NULL REFERENCES jobq_job (id) ON DELETE CASCADE,
    number      INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    worker      TEXT,
    started_at  INTEGER,
    ended_at    INTEGER NOT NULL,
    error       TEXT,
    reason      TEXT,
    class       TEXT,
    PRIMARY KEY (job_id, number)
) STRICT, WITHOUT ROWID;

-- What people did to jobs by hand; kept when the job is pruned.
CREATE TABLE jobq_change (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    what    TEXT NOT NULL,
    job_id  INTEGER NOT NULL,
    before  TEXT NOT NULL,
    after   TEXT NOT NULL
) STRICT;

CREATE INDEX jobq_change_job ON jobq_change (job_id);

CREATE TABLE jobq_runner (
    id          TEXT PRIMARY KEY,
    host        TEXT NOT NULL,
    pid         INTEGER NOT NULL,
    queues      TEXT NOT NULL,
    kinds       TEXT NOT NULL,
    boot_id     TEXT NOT NULL,
    monotonic   REAL NOT NULL,
    started_at  INTEGER NOT NULL,
    beat_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
