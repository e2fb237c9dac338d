#!/usr/bin/env python3
# Checks what desktops are told of Fuseline: one spelling of its id, versions, file types, and the rules of freedesktop.
# SPDX-License-Identifier: Apache-2.0
"""check_desktop_files.py [TEST...]: asks desktop-file-validate, appstreamcli, xmllint and update-mime-database, too, where
they are installed."""

import configparser
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[3]
DESKTOP = ROOT / "resources" / "desktop"
ID = "org.fuseline.designer"
TYPES = {"application/vnd.fuseline.pipeline+json": "*.fuseline", "application/vnd.fuseline.run+json": "*.fuserun"}
MIME = "{http://www.freedesktop.org/standards/shared-mime-info}"


def source(path):
    return (ROOT / path).read_text(encoding="utf-8")


def entry():
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str
    parser.read(DESKTOP / f"{ID}.desktop", encoding="utf-8")
    return parser


def values(text):
    return [value for value in text.split(";") if value]


def metainfo():
    return ElementTree.parse(DESKTOP / f"{ID}.metainfo.xml").getroot()


class Ids(unittest.TestCase):
    def test_is_spelt_in_one_way_wherever_it_stands(self):
        for path in sorted(DESKTOP.iterdir()) + [ROOT / "resources/cmake/FuselineInstall.cmake", ROOT / "ui/window/desktop.h"]:
            spellings = set(re.findall(r"(?i)org\.fuseline\.designer", path.read_text(encoding="utf-8") + path.name))
            self.assertLessEqual(spellings, {ID}, path)

    def test_names_entry_icon_component_and_window(self):
        self.assertEqual(ID, entry()["Desktop Entry"]["Icon"])
        self.assertTrue((DESKTOP / f"{ID}.svg").is_file())
        self.assertEqual(ID, metainfo().findtext("id"))
        self.assertEqual(f"{ID}.desktop", metainfo().findtext("launchable"))
        self.assertIn(f'kDesktopId = "{ID}"', source("ui/window/desktop.h"))
        self.assertIn("setDesktopFileName(QString::fromLatin1(ui::kDesktopId))", source("app/designer/main.cpp"))

    def test_windows_belong_to_the_entry(self):
        name = re.search(r'setApplicationName\("(.+?)"\)', source("app/designer/main.cpp")).group(1)
        self.assertEqual(name, entry()["Desktop Entry"]["StartupWMClass"])


class Entry(unittest.TestCase):
    def test_every_action_is_described(self):
        for action in values(entry()["Desktop Entry"]["Actions"]):
            self.assertTrue(entry()[f"Desktop Action {action}"]["Name"])

    def test_starts_the_program_with_options_that_it_has(self):
        designer = source("app/designer/main.cpp")
        for section in entry().sections():
            program, *rest = entry()[section]["Exec"].split()
            self.assertEqual("fuseline-designer", program)
            for option in rest:
                self.assertTrue(option == "%F" or f'add("{option.removeprefix("--")}"' in designer, option)

    def test_agrees_with_the_component(self):
        main = entry()["Desktop Entry"]
        self.assertEqual(values(main["Categories"]), [each.text for each in metainfo().iter("category")])
        self.assertEqual(values(main["Keywords"]), [each.text for each in metainfo().iter("keyword")])
        self.assertEqual(values(main["MimeType"]), [each.text for each in metainfo().iter("mediatype")])
        self.assertEqual(main["Name"], metainfo().findtext("name"))


class Component(unittest.TestCase):
    def test_newest_release_is_the_version_that_is_built(self):
        version = re.search(r"project\(fuseline VERSION (\S+)", source("CMakeLists.txt")).group(1)
        self.assertEqual(version, metainfo().find("releases/release").get("version"))

    def test_says_what_it_must(self):
        for tag in ("summary", "description", "project_license", "developer_name", "content_rating", "branding"):
            self.assertIsNotNone(metainfo().find(tag), tag)
        self.assertEqual("CC0-1.0", metainfo().findtext("metadata_license"))


class FileTypes(unittest.TestCase):
    def types(self):
        return {each.get("type"): each for each in ElementTree.parse(DESKTOP / "org.fuseline.pipeline.xml").getroot()}

    def test_are_those_that_the_entry_opens(self):
        self.assertEqual(set(TYPES), set(self.types()))
        self.assertEqual(list(TYPES), values(entry()["Desktop Entry"]["MimeType"]))

    def test_have_ending_icon_and_parent(self):
        for name, each in self.types().items():
            patterns = {glob.get("pattern"): int(glob.get("weight", "50")) for glob in each.findall(f"{MIME}glob")}
            self.assertEqual({TYPES[name], f"{TYPES[name]}.json"}, set(patterns))
            self.assertGreater(patterns[f"{TYPES[name]}.json"], 50, "the glob of all JSON files has 50")
            self.assertEqual("application/json", each.find(f"{MIME}sub-class-of").get("type"))
            self.assertTrue((DESKTOP / f"{name.replace('/', '-')}.svg").is_file())

    def test_are_told_by_what_files_begin_with(self):
        examples = sorted((ROOT / "resources/examples").glob("**/*.fuse*"))
        self.assertTrue(examples)
        for example in examples:
            head = example.read_bytes()[:256].decode(errors="ignore")
            name = next(name for name, pattern in TYPES.items() if example.match(pattern))
            self.assertTrue(self.matches(self.types()[name], head), example)
            other = next(other for other in TYPES if other != name)
            self.assertFalse(self.matches(self.types()[other], head), example)

    def matches(self, mime_type, head):
        match = mime_type.find(f"{MIME}magic/{MIME}match")
        first, last = map(int, match.get("offset").split(":"))
        return first <= head.find(match.get("value")) <= last


class Validators(unittest.TestCase):
    """What the tools of freedesktop say."""

    def accept(self, program, *arguments):
        if not shutil.which(program):
            self.skipTest(f"{program} is not installed")
        result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
        self.assertEqual(0, result.returncode, result.stdout + result.stderr)

    def test_desktop_file_validate(self):
        self.accept("desktop-file-validate", DESKTOP / f"{ID}.desktop")

    def test_appstreamcli(self):
        self.accept("appstreamcli", "validate", "--no-net", "--pedantic", DESKTOP / f"{ID}.metainfo.xml")

    def test_xmllint(self):
        self.accept("xmllint", "--noout", *sorted(DESKTOP.glob("*.xml")), *sorted(DESKTOP.glob("*.svg")))

    def test_update_mime_database(self):
        with tempfile.TemporaryDirectory() as folder:
            packages = pathlib.Path(folder) / "packages"
            packages.mkdir()
            shutil.copy(DESKTOP / "org.fuseline.pipeline.xml", packages)
            self.accept("update-mime-database", folder)
            globs = (pathlib.Path(folder) / "globs2").read_text(encoding="utf-8")
            for name, pattern in TYPES.items():
                self.assertIn(f"{name}:{pattern}", globs)


if __name__ == "__main__":
    unittest.main()
