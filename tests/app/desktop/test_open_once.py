#!/usr/bin/env python3
# Tests that a file which a window shows is not opened in a second one.
# SPDX-License-Identifier: Apache-2.0
"""test_open_once.py PROGRAM FILE: PROGRAM is fuseline-designer, FILE a pipeline."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = FILE = ""
STARTS_S = 20.0


def start(*options, environment):
    return subprocess.Popen([PROGRAM, *options, FILE], env=environment, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


@unittest.skipUnless(shutil.which("dbus-daemon"), "dbus-daemon is not installed")
class OpenOnce(unittest.TestCase):
    def test_a_second_start_ends_when_the_first_has_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            bus = subprocess.Popen(["dbus-daemon", "--session", "--nofork", "--print-address"], stdout=subprocess.PIPE,
                                   text=True)
            environment = os.environ | {"QT_QPA_PLATFORM": "offscreen", "XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder,
                                        "DBUS_SESSION_BUS_ADDRESS": bus.stdout.readline().strip()}
            windows = [start(environment=environment)]
            try:
                end = time.monotonic() + STARTS_S
                ended = None
                while ended is None and time.monotonic() < end:  # the first may need a moment to read the file
                    time.sleep(0.5)
                    windows.append(start(environment=environment))
                    try:
                        ended = windows[-1].wait(timeout=2.0)
                    except subprocess.TimeoutExpired:
                        windows.pop().kill()
                self.assertEqual(ended, 0)
                self.assertIsNone(windows[0].poll())
                windows.append(start("--new-window", environment=environment))
                with self.assertRaises(subprocess.TimeoutExpired):
                    windows[-1].wait(timeout=2.0)
            finally:
                for process in [*windows, bus]:
                    process.kill()
                    process.wait()
                bus.stdout.close()


if __name__ == "__main__":
    PROGRAM, FILE = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
