# Ratios of interleaved rounds with their 95 % confidence intervals, as fuseline computes them.
# SPDX-License-Identifier: Apache-2.0
import random
import statistics

RESAMPLES = 2000
SEED = 7
ROUNDS_FOR_A_CLAIM = 6  # with fewer not even equal signs in all of them reach 95 %


def compare_rounds(a, b):
    """(median, low, high) of a[i] / b[i]; low and high are None with too few rounds."""
    ratios = [x / y for x, y in zip(a, b)]
    if len(ratios) < ROUNDS_FOR_A_CLAIM:
        return statistics.median(ratios), None, None
    draw = random.Random(SEED)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    tail = RESAMPLES // 40
    return statistics.median(ratios), medians[tail], medians[-tail - 1]
