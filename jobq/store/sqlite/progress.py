"""Keep how far a run is."""

import apsw

# The primary key; the token is the fence.
REPORT = "UPDATE jobq_job SET progress = ? WHERE id = ? AND state = 'running' AND token = ?"


def report(conn: apsw.Connection, job_id: int, token: str, progress: str) -> bool:
    """Write the JSON text to the row of a running job; return whether the token stood."""
    conn.execute(REPORT, (progress, job_id, token))
    return conn.changes() > 0
