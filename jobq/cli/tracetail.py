"""What ``jobq trace tail`` prints of an entry."""

from typing import Any

from jobq.cli.output import escape
from jobq.cli.tail import Tail, moment


class TraceTail(Tail):
    """Prints the entries of a trace, those of one job where it is named."""

    things = "entries"

    def __init__(self, path: str, *, job: int | None, json: bool) -> None:
        super().__init__(path, json=json)
        self._job = job

    def is_one(self, found: dict[str, Any]) -> bool:
        """Whether it has a text."""
        return isinstance(found.get("text"), str)

    def wants(self, thing: dict[str, Any]) -> bool:
        """Whether it is of the job that was named."""
        return self._job in (None, thing.get("job_id"))

    def text(self, thing: dict[str, Any]) -> str:
        """Return a heading, and the entry's text below, line by line."""
        job, kind, attempt, direction = (thing.get(name) for name in ("job_id", "kind", "attempt", "direction"))
        lines = [f"{moment(thing.get('ts'))} job {job} {kind}, attempt {attempt}, {direction}"]
        lines += (f"  {line}" for line in thing["text"].splitlines() or [""])
        if thing.get("cut"):
            lines.append(f"  ({thing['cut']} more characters were not kept)")
        return "\n".join(map(escape, lines))
