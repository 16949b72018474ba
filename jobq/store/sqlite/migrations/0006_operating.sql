-- A kind is paused as a queue is; a registration leaves the pause alone. Retriage runs the jobs of intake kinds again.
ALTER TABLE jobq_kind ADD COLUMN paused_at INTEGER;
ALTER TABLE jobq_kind ADD COLUMN paused_by TEXT;
ALTER TABLE jobq_kind ADD COLUMN paused_why TEXT;
ALTER TABLE jobq_kind ADD COLUMN intake INTEGER NOT NULL DEFAULT 0 CHECK (intake IN (0, 1));

-- What is known of a subject, in two layers; the human one wins. The label "queue" routes the subject's jobs.
CREATE TABLE jobq_label (
    subject  TEXT NOT NULL,
    name     TEXT NOT NULL,
    layer    TEXT NOT NULL CHECK (layer IN ('machine', 'human')),
    value    TEXT NOT NULL,
    PRIMARY KEY (subject, name, layer)
) STRICT, WITHOUT ROWID;

-- How often the job was healed since somebody last enqueued or requeued it.
ALTER TABLE jobq_job ADD COLUMN heals INTEGER NOT NULL DEFAULT 0 CHECK (heals >= 0);

-- Failed jobs that may heal, by age; what cannot heal is not in it.
CREATE INDEX jobq_job_heal ON jobq_job (finished_at)
    WHERE state = 'failed' AND failure_class = 'transient' AND heals < 3;

-- A line of the change log is about a job, or about a subject as a whole.
CREATE TABLE jobq_change_new (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    at       INTEGER NOT NULL,
    actor    TEXT NOT NULL,
    what     TEXT NOT NULL,
    job_id   INTEGER,
    subject  TEXT,
    before   TEXT NOT NULL,
    after    TEXT NOT NULL
) STRICT;
INSERT INTO jobq_change_new (id, at, actor, what, job_id, before, after)
SELECT id, at, actor, what, job_id, before, after FROM jobq_change;
DROP TABLE jobq_change;
ALTER TABLE jobq_change_new RENAME TO jobq_change;
CREATE INDEX jobq_change_job ON jobq_change (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX jobq_change_subject ON jobq_change (subject) WHERE subject IS NOT NULL;
