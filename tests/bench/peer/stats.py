# Medians, quartiles, and the ratio of two medians with an interval.
# SPDX-License-Identifier: Apache-2.0
"""Rounds are resampled, not single steps: what disturbs a machine lasts longer than a step."""

import random
import statistics

RESAMPLES = 2000
CONFIDENCE = 0.95
SEED = 7


def quantile(values, q):
    """Interpolated between neighbours."""
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def summary(rounds):
    """rounds: one list of samples a round."""
    samples = [sample for turn in rounds for sample in turn]
    return {
        "median": quantile(samples, 0.5),
        "lowerQuartile": quantile(samples, 0.25),
        "upperQuartile": quantile(samples, 0.75),
        "minimum": min(samples),
        "count": len(samples),
    }


def ratio(rounds, base_rounds):
    """The median of rounds over that of base_rounds, both measured in the same rounds; with a 95 % interval."""
    random_rounds = random.Random(SEED)
    medians = [(statistics.median(a), statistics.median(b)) for a, b in zip(rounds, base_rounds)]
    resampled = []
    for _ in range(RESAMPLES):
        drawn = random_rounds.choices(medians, k=len(medians))
        resampled.append(_ratio_of(drawn))
    tail = (1 - CONFIDENCE) / 2
    return {"median": _ratio_of(medians), "low": quantile(resampled, tail), "high": quantile(resampled, 1 - tail)}


def _ratio_of(medians):
    return statistics.median(a for a, _ in medians) / statistics.median(b for _, b in medians)
