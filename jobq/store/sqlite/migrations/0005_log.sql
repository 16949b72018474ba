-- Lines that handlers logged; they go with their job, or after some days.
CREATE TABLE jobq_log (
    id       INTEGER PRIMARY KEY,
    job_id   INTEGER NOT NULL REFERENCES jobq_job (id) ON DELETE CASCADE,
    attempt  INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    level    TEXT NOT NULL,
    event    TEXT NOT NULL,
    fields   TEXT NOT NULL
) STRICT;

CREATE INDEX jobq_log_job ON jobq_log (job_id, at);
CREATE INDEX jobq_log_at ON jobq_log (at);
