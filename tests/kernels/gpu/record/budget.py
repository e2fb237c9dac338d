# How long a recording may take, and how much of it each part gets.
# SPDX-License-Identifier: Apache-2.0
import time

GRACE_SECONDS = 5  # between SIGTERM and SIGKILL, for a program to print what it has
PACKING_SECONDS = 2  # for the last summary and archive
FEWEST_SECONDS = 2  # nothing starts and measures in less


class Budget:
    """Ends early enough for what is running to be ended, and for everything to be packed."""

    def __init__(self, seconds, now=time.monotonic):
        self._now = now
        self._end = now() + seconds - GRACE_SECONDS - PACKING_SECONDS

    def left(self):
        return max(0.0, self._end - self._now())

    def seconds_for(self, part):
        """Its own limit, and at most its share of the time left. 0: too little to begin."""
        seconds = min(part.limit, part.share * self.left())
        return seconds if seconds >= FEWEST_SECONDS else 0
