"""Measuring alternately: each round takes every measure once, so that the machine's moods reach all of them alike."""

import random
from collections.abc import Callable, Mapping

ROUNDS = 5


def alternate(measures: Mapping[str, Callable[[], float]], rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Return the samples of each measure, in the order of the mapping; each round has an order of its own."""
    samples: dict[str, list[float]] = {name: [] for name in measures}
    order = list(measures)
    for _ in range(rounds):
        random.shuffle(order)
        for name in order:
            samples[name].append(measures[name]())
    return samples
