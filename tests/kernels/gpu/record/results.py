# The folder that a recording fills: how each part ended, and one archive of everything.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import tarfile

ARCHIVE = "results.tgz"
DONE = "passed"


class OtherOrigin(Exception):
    """Results of two kits, or of two GPUs, do not belong together."""


class Results:
    """Outcomes by part: {"result", "why", "seconds", "limit", "codes": by command}."""

    def __init__(self, folder, origin):
        """origin: what the results hold for. Throws OtherOrigin where the folder has those of another one."""
        (folder / "runs").mkdir(parents=True, exist_ok=True)
        kept = read_json(folder / "state.json") or {"origin": origin, "parts": {}}
        if kept["origin"] != origin:
            raise OtherOrigin(f"{folder} has results of {kept['origin']}, these would be of {origin}: name another folder.")
        self.folder, self.origin, self.parts = folder, origin, kept["parts"]

    def is_done(self, part):
        return self.parts.get(part.name, {}).get("result") == DONE

    def has(self, part):
        return part.name in self.parts

    def clear(self, part):
        """What an earlier try left: neither its files nor its outcome are those of the next."""
        self.parts.pop(part.name, None)
        self._save()
        for command in part.commands:
            for ending in ("txt", "log"):
                (self.folder / f"{command.name}.{ending}").unlink(missing_ok=True)
        for file in part.files:
            (self.folder / file).unlink(missing_ok=True)

    def keep(self, part, outcome):
        self.parts[part.name] = outcome
        self._save()

    def _save(self):
        write_whole(self.folder / "state.json", json.dumps({"origin": self.origin, "parts": self.parts}, indent=1) + "\n")

    def pack(self):
        """Readers of the archive find the last whole one at any time."""
        new = self.folder / f".{ARCHIVE}.new"
        with tarfile.open(new, "w:gz", compresslevel=6) as archive:
            for path in sorted(self.folder.iterdir()):
                if path.name != ARCHIVE and path != new:
                    archive.add(path, arcname=f"results/{path.name}")
        os.replace(new, self.folder / ARCHIVE)


def write_whole(path, text):
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def read_json(path):
    """None: it is not there, or was cut while it was written."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def read_lines(path):
    """The whole lines of a file of JSON lines."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    except OSError:
        return []
    return [json.loads(line) for line in lines]
