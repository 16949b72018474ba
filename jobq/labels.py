"""Labels: what is known of a subject, by machines and by people; the label "queue" routes its jobs."""

from collections.abc import Mapping

from jobq.arguments import check_queue, check_text, check_word
from jobq.core import Core
from jobq.log import get_logger
from jobq.model.job import Actor
from jobq.model.label import QUEUE_LABEL, LabelLayer

logger = get_logger(__name__)


class Labels:
    """The labels of subjects, as ``jobs.labels``.

    A subject is any text that the host chooses, the ``subject=`` of an enqueue. Its labels have two layers, and of one
    name the human one wins.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    def set(
        self,
        subject: str,
        name: str,
        value: str,
        *,
        layer: LabelLayer | str = LabelLayer.MACHINE,
        actor: Actor | str = Actor.SYSTEM,
    ) -> bool:
        """Set a label of a subject; False when it was so already. A change is a line of the change log.

        The label ``queue`` is the name of a queue: jobs of this subject that are enqueued from now on go there, unless
        the enqueue names a queue. Queued jobs stay where they are.

        Raises:
            ArgumentError: a text is empty or cannot be stored, or the label ``queue`` names none.
        """
        check_text(name, argument="name")
        if name == QUEUE_LABEL:
            check_queue(value, argument="value")
        return self._core.store.put_label(
            check_text(subject, argument="subject"),
            name,
            check_text(value, argument="value"),
            layer=check_word(layer, LabelLayer, argument="layer"),
            actor=check_word(actor, Actor, argument="actor"),
        )

    def get(self, subject: str, *, layer: LabelLayer | str | None = None) -> Mapping[str, str]:
        """Return the labels of a subject by name: those of one layer, or of each name the one that wins."""
        wanted = None if layer is None else check_word(layer, LabelLayer, argument="layer")
        found = self._core.store.labels(check_text(subject, argument="subject"))
        ordered = sorted(found, key=lambda label: label.layer is LabelLayer.HUMAN)
        return {label.name: label.value for label in ordered if wanted in (None, label.layer)}

    def clear(
        self,
        subject: str,
        name: str | None = None,
        *,
        layer: LabelLayer | str | None = None,
        actor: Actor | str = Actor.SYSTEM,
    ) -> int:
        """Remove the labels of a subject, of one name or layer where it is named; return how many there were."""
        layers = tuple(LabelLayer) if layer is None else (check_word(layer, LabelLayer, argument="layer"),)
        return self._core.store.clear_labels(
            check_text(subject, argument="subject"),
            None if name is None else check_text(name, argument="name"),
            layers=layers,
            actor=check_word(actor, Actor, argument="actor"),
        )
