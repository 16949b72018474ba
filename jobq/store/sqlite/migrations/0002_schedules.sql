-- Whether the slot that made the job was missed, or stands for others that were.
ALTER TABLE jobq_job ADD COLUMN catch_up INTEGER NOT NULL DEFAULT 0 CHECK (catch_up IN (0, 1));

-- Rules that make jobs. Timing and entries are checked by the verb that writes them and again by each tick, which marks
-- a row that somebody broke by hand; the schema does not stand in the way of mending one.
CREATE TABLE jobq_schedule (
    name          TEXT PRIMARY KEY,
    cron          TEXT,
    every         INTEGER,
    tz            TEXT NOT NULL DEFAULT 'UTC',
    anchor        INTEGER NOT NULL,
    catch_up      TEXT NOT NULL DEFAULT 'once' CHECK (catch_up IN ('once', 'skip', 'all')),
    max_catch_up  INTEGER NOT NULL DEFAULT 10 CHECK (max_catch_up >= 1),
    jitter        INTEGER NOT NULL DEFAULT 0 CHECK (jitter >= 0),
    queue         TEXT,
    priority      INTEGER CHECK (priority BETWEEN -1000 AND 1000),
    entries       TEXT NOT NULL,
    next_run      INTEGER NOT NULL,
    last_slot     INTEGER,
    paused_at     INTEGER,
    paused_by     TEXT,
    paused_why    TEXT,
    error         TEXT,
    module        TEXT,
    created_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Each slot of a schedule makes the jobs of its entries once. A guard outlives its job: the foreign key clears job_id
-- when the job is pruned, the next tick that fires notes when it found that, and 30 days later the guard goes.
CREATE TABLE jobq_slot (
    schedule     TEXT NOT NULL,
    slot         INTEGER NOT NULL,
    entry        TEXT NOT NULL,
    job_id       INTEGER REFERENCES jobq_job (id) ON DELETE SET NULL,
    orphaned_at  INTEGER,
    PRIMARY KEY (schedule, slot, entry)
) STRICT, WITHOUT ROWID;

CREATE INDEX jobq_slot_job ON jobq_slot (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX jobq_slot_orphan ON jobq_slot (orphaned_at) WHERE job_id IS NULL;

-- Who does what one process is enough for; a lease that only spares work.
CREATE TABLE jobq_leader (
    name    TEXT PRIMARY KEY,
    holder  TEXT NOT NULL,
    until   INTEGER NOT NULL,
    length  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
