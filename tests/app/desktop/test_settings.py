#!/usr/bin/env python3
# Tests that the designer forgets its settings when it is asked to, and only then.
# SPDX-License-Identifier: Apache-2.0
"""test_settings.py PROGRAM: PROGRAM is fuseline-designer."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
SETTINGS = "[view]\ntheme=2\n"


class ResetSettings(unittest.TestCase):
    def settings_after(self, *options):
        """What is left of the settings; a size that is none ends the program before it shows a window."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "fuseline" / "fuseline-designer.conf"
            path.parent.mkdir()
            path.write_text(SETTINGS, encoding="utf-8")
            environment = os.environ | {"XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder, "QT_QPA_PLATFORM": "offscreen"}
            result = subprocess.run([PROGRAM, "--size", "none", *options], env=environment, capture_output=True, text=True,
                                    timeout=60, check=False)
            self.assertIn("expected width and height", result.stderr)
            return path.read_text(encoding="utf-8") if path.exists() else ""

    def test_forgets_them(self):
        self.assertNotIn("theme", self.settings_after("--reset-settings"))

    def test_an_unknown_density_is_refused(self):
        environment = os.environ | {"QT_QPA_PLATFORM": "offscreen"}
        result = subprocess.run([PROGRAM, "--screenshot", "none.png", "--density", "dense"], env=environment,
                                capture_output=True, text=True, timeout=60, check=False)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("--density dense: expected comfortable or compact.", result.stderr)

    def test_keeps_them_otherwise(self):
        self.assertEqual(SETTINGS, self.settings_after())


if __name__ == "__main__":
    PROGRAM = sys.argv[1]
    unittest.main(argv=sys.argv[:1])
