# Ranks as processes: the bits of threads, one speaker, and an end for all when one of them dies.
# SPDX-License-Identifier: Apache-2.0
# Usage: check_ranks.py FUSELINE [--kills N [--launcher processes|mpi]]
#   --kills N  kills each rank and each launcher N times in each phase of a run, under each launcher or one, and stops
#              it, in place of the quick tests
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "resources" / "examples" / "tensor_parallel_mlp.fuseline"
FUSELINE = pathlib.Path(sys.argv.pop(1)).resolve()
KILLS = int(sys.argv[sys.argv.index("--kills") + 1]) if "--kills" in sys.argv else 0
SMALL = ["--set", "M=24", "--set", "H=48", "--iterations", "2", "--warmup", "1", "--no-peaks"]
UNENDING = ["--set", "M=24", "--set", "H=48", "--iterations", "1000000", "--warmup", "1", "--no-peaks"]
LONG = [*UNENDING, "--quiet"]
SHORT = [*SMALL, "--quiet"]
HAS_MPI = bool(shutil.which("mpirun")) and (FUSELINE.parent / "../lib/fuseline/libfuseline_mpi.so").exists()
LAUNCHERS = ["processes", "mpi"] if HAS_MPI else ["processes"]
if "--launcher" in sys.argv:
    LAUNCHERS = [sys.argv[sys.argv.index("--launcher") + 1]]
ENVIRONMENT = {**os.environ, "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMP_WAIT_POLICY": "passive"}
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", FUSELINE]
MOST_SECONDS = 15


def started(*arguments: str, **variables: str) -> subprocess.Popen:
    return subprocess.Popen([FUSELINE, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**ENVIRONMENT, **variables}, start_new_session=True)


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess:
    process = started(*arguments, **variables)
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def torchrun_variables(rank: int, port: int, world: int = 2) -> dict[str, str]:
    return {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port)}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ranks_of(session: int) -> dict[int, int]:
    """Process of each rank in a session."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if int((folder / "stat").read_text().rpartition(")")[2].split()[3]) != session:
                continue
            for entry in (folder / "environ").read_bytes().split(b"\0"):
                name, _, value = entry.partition(b"=")
                if name in (b"FUSELINE_RANK", b"OMPI_COMM_WORLD_RANK") and (folder / "exe").resolve() == FUSELINE:
                    found[int(value)] = int(folder.name)
        except (OSError, ValueError):
            continue
    return found


def wait_for_ranks(session: int, count: int) -> dict[int, int]:
    end = time.monotonic() + 20
    while len(found := ranks_of(session)) < count:
        if time.monotonic() > end:
            raise AssertionError(f"{found}: expected {count} ranks")
        time.sleep(0.005)
    return found


class Ranks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def tensors(self, name: str, *options: str) -> bytes:
        done = run("run", EXAMPLE, *SMALL, "--quiet", "--dump", self.folder / name, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "")
        return (self.folder / name).read_bytes()

    def test_processes_compute_the_bits_of_threads(self):
        for ranks in (2, 4):
            threads = self.tensors(f"threads{ranks}", "--ranks", ranks)
            for launcher in LAUNCHERS:
                with self.subTest(launcher=launcher, ranks=ranks):
                    found = self.tensors(f"{launcher}{ranks}", "--ranks", ranks, "--ranks-as", launcher)
                    self.assertEqual(found, threads)

    def test_tensors_of_a_folder_are_those_of_its_files(self):
        parts = self.folder / "parts"
        parts.mkdir()
        self.tensors("drawn", "--save", parts / "a.safetensors", "--seed", "3")
        whole = self.tensors("whole", "--ranks", "2", "--tensors", parts / "a.safetensors")
        self.assertEqual(self.tensors("folder", "--ranks", "2", "--tensors", parts), whole)
        shutil.copy(parts / "a.safetensors", parts / "b.safetensors")
        done = run("run", EXAMPLE, *SMALL, "--tensors", parts)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is in two files of the folder", done.stderr)

    def test_processes_save_the_shards_that_threads_save(self):
        names = ["rank-0-of-2.safetensors", "rank-1-of-2.safetensors"]
        for launcher in ("threads", *LAUNCHERS):
            self.tensors(f"dump-{launcher}", "--ranks", "2", "--ranks-as", launcher, "--save", f"{self.folder / launcher}/")
            self.assertEqual(sorted(path.name for path in (self.folder / launcher).iterdir()), names)
            for name in names:
                self.assertEqual((self.folder / launcher / name).read_bytes(),
                                 (self.folder / "threads" / name).read_bytes())

    @unittest.skipUnless(HAS_MPI, "there is no MPI")
    def test_mpirun_makes_each_process_a_rank(self):
        done = subprocess.run([*MPIRUN, "run", EXAMPLE, *SMALL], capture_output=True, text=True, env=ENVIRONMENT,
                              check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("Ranks: 2, as processes; communicator: MPI, Open MPI"), 1, done.stdout)

    @unittest.skipUnless(HAS_MPI, "there is no MPI")
    def test_hosts_are_those_of_mpirun(self):
        threads = self.tensors("threads", "--ranks", "2")
        self.assertEqual(self.tensors("hosts", "--ranks", "2", "--hosts", "localhost:1,127.0.0.1:1"), threads)
        for hosts, code, sentence in (("localhost", 2, "--hosts has room for 1"), ("localhost:x", 2, "expected HOST[:N]"),
                                      ("nowhere.invalid:2", 3, "nowhere.invalid is not a known host name")):
            done = run("run", EXAMPLE, *SMALL, "--ranks", "2", "--hosts", hosts)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(sentence, done.stderr)

    def torchrun(self, port: int, *options_by_rank: list) -> list[subprocess.CompletedProcess]:
        processes = [started("run", *options, *SMALL, **torchrun_variables(rank, port))
                     for rank, options in enumerate(options_by_rank)]
        results = []
        for process in processes:
            out, err = process.communicate(timeout=60)
            results.append(subprocess.CompletedProcess(process.args, process.returncode, out, err))
        return results

    def test_the_variables_of_torchrun_make_each_process_a_rank(self):
        first, second = self.torchrun(free_port(), [EXAMPLE], [EXAMPLE])
        self.assertEqual((first.returncode, second.returncode), (0, 0), first.stderr + second.stderr)
        self.assertIn("Ranks: 2, as processes; communicator: sockets", first.stdout)
        self.assertEqual(second.stdout + second.stderr, "")

    def test_ranks_that_differ_are_refused_by_one_sentence(self):
        other = self.folder / "other.fuseline"
        other.write_text(EXAMPLE.read_text().replace('"gelu"', '"other"').replace("GELU", "ReLU"))
        first, second = self.torchrun(free_port(), [EXAMPLE], [other])
        self.assertEqual((first.returncode, second.returncode), (1, 1), first.stderr)
        self.assertIn("fuseline: rank 1 of 2: the pipeline is", first.stderr)
        self.assertIn("Give all ranks the same file.", first.stderr)
        self.assertEqual(second.stderr, "")
        first, second = self.torchrun(free_port(), [EXAMPLE], [EXAMPLE, "--seed", "3"])
        self.assertIn("--seed is 3, but 0 on rank 0. Start all ranks with the same options.",
                      " ".join(first.stderr.split()))
        first, second = self.torchrun(free_port(), [EXAMPLE], [self.folder / "missing.fuseline"])
        self.assertEqual((first.returncode, second.returncode), (1, 1), first.stderr)
        self.assertIn("rank 1 of 2:", first.stderr)
        self.assertEqual(second.stderr, "")

    @unittest.skipUnless(HAS_MPI, "there is no MPI")
    def test_programs_of_two_versions_are_refused_with_both(self):
        version = subprocess.run([FUSELINE, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
        other = re.sub(r"\d", "9", version)
        (self.folder / "bin").mkdir()
        (self.folder / "lib").symlink_to(FUSELINE.parent.parent / "lib")
        program = self.folder / "bin" / "fuseline"
        program.write_bytes(FUSELINE.read_bytes().replace(version.encode() + b"\0", other.encode() + b"\0"))
        program.chmod(0o755)
        arguments = ["run", EXAMPLE, *SMALL]
        done = subprocess.run([*MPIRUN[:-3], "-n", "1", FUSELINE, *arguments, ":", "-n", "1", program, *arguments],
                              capture_output=True, text=True, env=ENVIRONMENT, check=False, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f"rank 1 of 2: the version of Fuseline is {other}, but {version} on rank 0.", done.stderr)

    def stop(self, command: list, rank: int, delay: float) -> None:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=ENVIRONMENT, start_new_session=True)
        ranks = wait_for_ranks(process.pid, 2)
        time.sleep(delay)
        begin = time.monotonic()
        os.kill(ranks[rank], signal.SIGSTOP)
        out, err = process.communicate(timeout=60)
        place = f"{command[0]}, rank {rank} stopped after {delay:.3f} s: {process.returncode}, {err}"
        self.assertEqual(process.returncode, 4, place)
        self.assertIn(f"rank {rank} of 2 (process {ranks[rank]}) has been stopped for", err, place)
        self.assertLess(time.monotonic() - begin, MOST_SECONDS, place)
        self.assert_no_rank(process.pid, place)

    @unittest.skipIf(KILLS, "many stops are requested")
    def test_a_stopped_rank_is_named_in_each_phase(self):
        arguments = ["run", EXAMPLE, *LONG]
        commands = [[FUSELINE, *arguments, "--ranks", "2", "--ranks-as", launcher] for launcher in LAUNCHERS]
        commands += [[*MPIRUN, *arguments]] if HAS_MPI else []
        with concurrent.futures.ThreadPoolExecutor(4) as together:
            for done in [together.submit(self.stop, command, rank, delay)
                         for command in commands for rank in (0, 1) for delay in (0.0, 0.05, 0.2, 1.0)]:
                done.result()

    def test_a_number_of_ranks_that_contradicts_the_launcher_is_refused(self):
        done = run("run", EXAMPLE, "--ranks", "4", **torchrun_variables(0, 1))
        self.assertEqual(done.returncode, 2)
        self.assertIn("--ranks 4: torchrun started 2 ranks.", done.stderr)
        done = run("run", EXAMPLE, "--ranks-as", "processes")
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected several ranks", done.stderr)

    def assert_no_rank(self, session: int, place: str) -> None:
        for _ in range(100):
            if not ranks_of(session):
                break
            time.sleep(0.02)
        self.assertEqual(ranks_of(session), {}, place)

    def kill(self, launcher: str, rank: int, delay: float, sent: signal.Signals = signal.SIGKILL) -> None:
        patience = ["--rank-timeout", "3"] if sent == signal.SIGSTOP else []
        process = started("run", EXAMPLE, *LONG, "--ranks", "2", "--ranks-as", launcher, *patience)
        ranks = wait_for_ranks(process.pid, 2)
        time.sleep(delay)
        begin = time.monotonic()
        os.kill(ranks[rank], sent)
        out, err = process.communicate(timeout=60)
        place = f"{launcher}, rank {rank}, {sent.name} after {delay:.3f} s: {err}"
        self.assertNotEqual(process.returncode, 0, place)
        self.assertLess(time.monotonic() - begin, MOST_SECONDS, place)
        # A rank that dies before MPI has started is ended by mpirun, which does not always say which one it was.
        if launcher == "processes" or "Per user-direction" not in err:
            self.assertIn(f"rank {rank}", err, place)
        elif f"rank {rank}" not in err:
            print(f"not named: {launcher}, rank {rank}, {sent.name} after {delay:.3f} s", flush=True)
        self.assert_no_rank(process.pid, place)

    def kill_at_end(self, launcher: str, rank: int, delay: float) -> bool:
        """Whether the rank was still there."""
        process = started("run", EXAMPLE, *SHORT, "--ranks", "2", "--ranks-as", launcher)
        ranks = wait_for_ranks(process.pid, 2)
        time.sleep(delay)
        try:
            os.kill(ranks[rank], signal.SIGKILL)
        except ProcessLookupError:
            ranks = {}
        out, err = process.communicate(timeout=60)
        place = f"{launcher}, rank {rank}, SIGKILL at the end, after {delay:.3f} s: {process.returncode}, {err}"
        self.assertTrue(ranks or process.returncode == 0, place)
        self.assertTrue(process.returncode == 0 or err, place)
        self.assert_no_rank(process.pid, place)
        return bool(ranks)

    def end_launcher(self, command: list, sent: signal.Signals, delay: float) -> None:
        """A launcher that a signal ends takes its ranks with it."""
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=ENVIRONMENT, start_new_session=True)
        wait_for_ranks(process.pid, 2)
        time.sleep(delay)
        begin = time.monotonic()
        os.kill(process.pid, sent)
        out, err = process.communicate(timeout=60)
        place = f"{command[0]}, {sent.name} after {delay:.3f} s: {err}"
        self.assertNotEqual(process.returncode, 0, place)
        self.assertLess(time.monotonic() - begin, MOST_SECONDS, place)
        self.assert_no_rank(process.pid, place)

    @unittest.skipIf(KILLS, "many kills are requested")
    def test_a_killed_rank_ends_all(self):
        cases = [(launcher, rank, delay) for launcher in LAUNCHERS for rank in (0, 1) for delay in (0.0, 0.4)]
        with concurrent.futures.ThreadPoolExecutor(4) as together:
            killed = [together.submit(self.kill, *case) for case in cases]
            if HAS_MPI:
                killed += [together.submit(self.end_launcher, [*MPIRUN, "run", EXAMPLE, *LONG], sent, 0.4)
                           for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)]
            for done in killed:
                done.result()

    def cancel(self, launcher: str, sent: signal.Signals, to_group: bool, delay: float) -> bool:
        """Whether the run shows what it measured: a busy machine has no round after a short time."""
        process = started("run", EXAMPLE, *UNENDING, "--ranks", "2", "--ranks-as", launcher)
        time.sleep(delay)
        (os.killpg if to_group else os.kill)(process.pid, sent)
        out, err = process.communicate(timeout=60)
        place = f"{launcher}, {sent.name} after {delay:.2f} s: {err}"
        self.assertEqual(process.returncode, 4, place)
        self.assertIn("The run was cancelled", err, place)
        self.assertEqual(ranks_of(process.pid), {}, place)
        return "Ranks: 2" in out

    @unittest.skipIf(KILLS, "many kills are requested")
    def test_a_cancelled_run_shows_what_it_measured(self):
        for launcher in LAUNCHERS:
            self.cancel(launcher, signal.SIGINT, False, 0.6)
        for launcher in ("threads", *LAUNCHERS):
            for sent, to_group in ((signal.SIGINT, True), (signal.SIGTERM, False)):
                shown = any(self.cancel(launcher, sent, to_group, delay) for delay in (2.0, 4.0, 8.0, 16.0))
                self.assertTrue(shown, f"{launcher}, {sent.name}")

    @unittest.skipUnless(KILLS, "minutes: with --kills N only")
    def test_each_rank_is_killed_and_stopped_many_times(self):
        moments = random.Random(7)
        for launcher in LAUNCHERS:
            begin = time.monotonic()
            self.assertEqual(run("run", EXAMPLE, *SHORT, "--ranks", "2", "--ranks-as", launcher).returncode, 0)
            whole = time.monotonic() - begin
            for rank in (0, 1):
                late = runs = 0
                for _ in range(KILLS):
                    self.kill(launcher, rank, moments.uniform(0.0, 0.2))
                    self.kill(launcher, rank, moments.uniform(0.2, 1.5))
                while late < KILLS and runs < 4 * KILLS:  # in some runs the rank has ended before
                    late += self.kill_at_end(launcher, rank, moments.uniform(0.5, 1.0) * whole)
                    runs += 1
                for _ in range(max(1, KILLS // 10)):
                    self.kill(launcher, rank, moments.uniform(0.0, 1.0), signal.SIGSTOP)
                print(f"{launcher}, rank {rank}: killed {KILLS} times while it starts, {KILLS} times in its rounds, "
                      f"{late} times at its end", flush=True)
            own = [FUSELINE, "run", EXAMPLE, *LONG, "--ranks", "2", "--ranks-as", launcher]
            for command in (own, [*MPIRUN, "run", EXAMPLE, *LONG]) if launcher == "mpi" else (own,):
                for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
                    for _ in range(KILLS):
                        self.end_launcher(command, sent, moments.uniform(0.0, 1.5))
                print(f"{launcher}: {command[0]} ended {3 * KILLS} times", flush=True)


if __name__ == "__main__":
    if KILLS:
        sys.argv = [sys.argv[0], "Ranks.test_each_rank_is_killed_and_stopped_many_times"]
    unittest.main()
