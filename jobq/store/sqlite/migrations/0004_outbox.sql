-- Rows of outboxes that were published, so that publishing one again makes no second job, also when the first has been
-- pruned: job_id is no foreign key. number is the row's own in its outbox. A record goes 30 days after the outbox was
-- seen to know of it.
CREATE TABLE jobq_published (
    uid           TEXT PRIMARY KEY,
    number        INTEGER NOT NULL,
    job_id        INTEGER NOT NULL,
    published_at  INTEGER NOT NULL,
    marked_at     INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX jobq_published_marked ON jobq_published (marked_at) WHERE marked_at IS NOT NULL;
