-- What the configuration says of a queue: left out of listings; the kinds that it accepts, a JSON list, NULL for all.
ALTER TABLE jobq_queue ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0 CHECK (hidden IN (0, 1));
ALTER TABLE jobq_queue ADD COLUMN kinds TEXT;
