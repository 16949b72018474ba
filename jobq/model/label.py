"""The words for what is known of a subject."""

from enum import StrEnum
from typing import NamedTuple

#: The label that routes the jobs of its subject.
QUEUE_LABEL = "queue"


class LabelLayer(StrEnum):
    """Who says a label; of one name the human's wins."""

    MACHINE = "machine"
    HUMAN = "human"


class Label(NamedTuple):
    """One label of a subject in one layer."""

    name: str
    layer: LabelLayer
    value: str
