# Makes the packages, installs them in clean roots and starts their programs: the .tar.xz where there is nothing but the C library, the
# .deb where there are the packages that it depends on, as they are installed here.
# SPDX-License-Identifier: Apache-2.0
# Usage: check_packages.py CPACK CPackConfig.cmake
# Exits with 77 where no root may be entered.
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

EXAMPLE = "share/fuseline/examples/llama_mlp.fuseline"
SMALL = ["--set", "M=16", "--set", "H=32", "--set", "F=64", "--iterations", "2", "--warmup", "1", "--no-peaks"]
SKIPPED = 77
# /proc is on every system; programs find their folder by it.
IN_ROOT = ["unshare", "-r", "-m", "sh", "-c", 'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"']


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def fields_of(package: str) -> str:
    return output_of("dpkg-query", "-W", "-f", "${Pre-Depends}, ${Depends}\n", package)


def installed(alternatives: str) -> list[str]:
    """Names of the installed packages that fulfil "a (>= 1) | b"; also of those that provide one."""
    for name in re.findall(r"(?:^|\|)\s*([a-z0-9][a-z0-9+.-]*)", alternatives):
        found = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Abbrev}${binary:Package}\n", name],
                               capture_output=True, text=True, check=False).stdout
        names = [line[3:] for line in found.splitlines() if line.startswith("ii")]
        if names:
            return names[:1]
    return []


def closure(depends: str) -> set[str]:
    """Packages that these dependencies lead to."""
    seen: set[str] = set()
    open_ends = [depends]
    while open_ends:
        for entry in open_ends.pop().split(","):
            for package in installed(entry.strip()):
                if package not in seen:
                    seen.add(package)
                    open_ends.append(fields_of(package))
    return seen


def copy_packages(packages: set[str], root: pathlib.Path) -> None:
    """Libraries, plugins and fonts; what else is in them is no use to a program that only starts."""
    for package in packages:
        for line in output_of("dpkg-query", "-L", package).splitlines():
            path = pathlib.Path(line)
            if not re.match(r"(/usr)?/lib|/etc/fonts|/usr/share/fonts", line) or path.is_dir() or not path.exists():
                continue
            place = root / line.lstrip("/")
            if place.is_symlink() or place.exists():  # of another package, as /lib is /usr/lib
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place, follow_symlinks=False)


def c_library_root(folder: pathlib.Path) -> pathlib.Path:
    """A root with the C library, and folders for what a program writes."""
    for name in ("usr/lib", "usr/lib64", "usr/bin", "tmp", "root", "etc", "proc"):
        (folder / name).mkdir(parents=True)
    for name in ("lib", "lib64", "bin"):
        (folder / name).symlink_to(f"usr/{name}")
    copy_packages({"libc6"}, folder)
    return folder


def started(root: pathlib.Path, program: str, *arguments: str) -> str:
    """What a program in the root prints. It sees nothing of this system but its kernel."""
    call = [*IN_ROOT, str(root), program, *arguments]
    result = subprocess.run(call, capture_output=True, text=True, check=False, env={
        "PATH": os.environ["PATH"], "HOME": "/root", "QT_QPA_PLATFORM": "offscreen", "XDG_RUNTIME_DIR": "/tmp"})
    assert result.returncode == 0, f"{program} in {root}: exit code {result.returncode}.\n{result.stderr}"
    return result.stdout


def check_programs(root: pathlib.Path, prefix: str) -> None:
    example = f"{prefix}/{EXAMPLE}"
    assert "unfused" in started(root, f"{prefix}/bin/fuseline", "run", example, "--device", "cpu", *SMALL)
    assert "cpu" in started(root, f"{prefix}/bin/fuseline", "devices")
    if (root / f"{prefix}/bin/fuseline-designer".lstrip("/")).exists():
        started(root, f"{prefix}/bin/fuseline-designer", "--screenshot", "/tmp/window.png", example)
        assert (root / "tmp/window.png").read_bytes().startswith(b"\x89PNG")


def check_tar(archive: str, folder: pathlib.Path) -> None:
    root = c_library_root(folder)
    (root / "opt").mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", str(root / "opt")], check=True)
    (top,) = (root / "opt").iterdir()
    assert not list(top.rglob("libcu[bds]*")), "The archive has libraries of CUDA."
    check_programs(root, f"/opt/{top.name}")


def check_deb(package: str, folder: pathlib.Path) -> None:
    root = c_library_root(folder)
    copy_packages(closure(output_of("dpkg-deb", "-f", package, "Depends")), root)
    subprocess.run(["dpkg-deb", "-x", package, str(root)], check=True)
    for name in ("applications/org.fuseline.designer.desktop", "man/man1/fuseline.1",
                 "icons/hicolor/scalable/apps/org.fuseline.designer.svg"):
        assert list((root / "usr/share").glob(f"{name}*")), f"The package has no {name}."
    check_programs(root, "/usr")


def can_enter_roots() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "proc").mkdir()
        mount = ["unshare", "-r", "-m", "mount", "--rbind", "/proc", f"{folder}/proc"]
        return subprocess.run(mount, capture_output=True, check=False).returncode == 0


def main() -> int:
    if not shutil.which("dpkg-deb") or not can_enter_roots():
        print("skipped: no root can be entered here, or this is not a Debian system")
        return SKIPPED
    with tempfile.TemporaryDirectory() as made:
        output_of(sys.argv[1], "--config", sys.argv[2], "-B", made)
        for ending, check in ((".deb", check_deb), (".tar.xz", check_tar)):
            (package,) = pathlib.Path(made).glob(f"*{ending}")
            with tempfile.TemporaryDirectory() as folder:
                check(str(package), pathlib.Path(folder) / "root")
    return 0


if __name__ == "__main__":
    sys.exit(main())
