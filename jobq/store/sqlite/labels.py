"""Labels of subjects, in two layers, and where the label "queue" sends jobs."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw

from jobq.model.job import Actor
from jobq.model.label import Label, LabelLayer
from jobq.model.names import is_queue
from jobq.store.sqlite import accepting, changelog, lookup, texts

# The primary key of jobq_label, or the first columns of it. Of two layers the human one comes first. A value that
# somebody wrote in another encoding is shown, and can be replaced and cleared; it routes nothing.
ROUTE = """
SELECT CAST(value AS BLOB) FROM jobq_label WHERE subject = ? AND name = 'queue' ORDER BY layer = 'human' DESC LIMIT 1
"""
GET = "SELECT name, layer, CAST(value AS BLOB) FROM jobq_label WHERE subject = ? ORDER BY name, layer"
ONE = "SELECT CAST(value AS BLOB) FROM jobq_label WHERE subject = ? AND name = ? AND layer = ?"
PUT = """
INSERT INTO jobq_label (subject, name, layer, value) VALUES (?, ?, ?, ?)
ON CONFLICT (subject, name, layer) DO UPDATE SET value = excluded.value
"""
CLEAR = """
DELETE FROM jobq_label WHERE subject = ? AND name IN (SELECT value FROM json_each(?)) AND layer = ?
"""


def route(conn: apsw.Connection, subject: str, kind: str) -> str | None:
    """Return the queue that a subject's label names for jobs of a kind.

    None without a label, and for one that is no queue's name or names a queue that does not accept the kind: then the
    kind's own queue is the place.
    """
    found: Any = conn.execute(ROUTE, (subject,)).fetchone()
    queue = None if found is None else texts.lenient(found[0])
    if queue is None or not is_queue(queue):
        return None
    return queue if accepting.accepts(conn, queue, kind) else None


def labels(conn: apsw.Connection, subject: str) -> list[Label]:
    """Return all labels of a subject, by name; one that was broken by hand is left out."""
    return list(lookup.readable(conn.execute(GET, (subject,)), _label))


def put(
    conn: apsw.Connection, subject: str, name: str, value: str, *, layer: LabelLayer, actor: Actor, now: datetime
) -> bool:
    """Set a label; return False when it was so already."""
    found: Any = conn.execute(ONE, (subject, name, layer.value)).fetchone()
    old = None if found is None else texts.lenient(found[0])
    if old == value:
        return False
    conn.execute(PUT, (subject, name, layer.value, value))
    before = {} if old is None else {f"{layer}:{name}": old}
    after = {f"{layer}:{name}": value}
    changelog.write(conn, "labelled", actor=actor, subject=subject, before=before, after=after, now=now)
    return True


def clear(
    conn: apsw.Connection,
    subject: str,
    name: str | None,
    *,
    layers: Sequence[LabelLayer],
    actor: Actor,
    now: datetime,
) -> int:
    """Remove labels of these layers, all or those of one name; return how many there were."""
    gone = remove(conn, subject, name, layers)
    if gone:
        changelog.write(conn, "unlabelled", actor=actor, subject=subject, before=gone, after={}, now=now)
    return len(gone)


def remove(
    conn: apsw.Connection, subject: str, name: str | None, layers: Sequence[LabelLayer]
) -> dict[str, str]:
    """Remove labels without a word in the log; return what they said."""
    held = [label for label in labels(conn, subject) if label.layer in layers and name in (None, label.name)]
    for layer in layers:
        names = [label.name for label in held if label.layer is layer]
        if names:
            conn.execute(CLEAR, (subject, json.dumps(names), layer.value))
    return {f"{label.layer}:{label.name}": label.value for label in held}


def _label(row: Sequence[Any]) -> Label:
    return Label(row[0], LabelLayer(row[1]), str(texts.lenient(row[2])))
