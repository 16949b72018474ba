"""What a run tells of itself while it goes on."""

from jobq.core import Core
from jobq.model.lease import Claim
from jobq.model.progress import Progress


class Observing(Core):
    """The verbs through which a run is seen."""

    def report(self, claim: Claim, progress: Progress) -> bool:
        """Keep how far a run is on its job's row and have it told; return False where its token is old.

        Inside a transaction of this thread it is a part of that. Listeners are told by the next one who delivers.
        """
        if progress.note is not None:
            progress = progress._replace(note=self.clean(progress.note, argument="note"))
        stands = self.store.report(claim.id, claim.token, progress.to_json())
        if stands:
            self.bus.post(progress.event(claim, self.clock.now()))
        return stands
