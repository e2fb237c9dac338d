# What a recording consists of, the most valuable first; what may harm the GPU comes last.
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import importlib.util
import os
import sys

from commands import Command

FACTS = r"""nvidia-smi
nvidia-smi -q -d CLOCK,POWER,ECC,MEMORY
nproc
free -g
uname -r
env | grep -E '^(CUDA|LD_LIBRARY_PATH|VIRTUAL_ENV|CONDA_PREFIX|OMP_|FUSELINE_)'
"$1" -c 'import torch; print("PyTorch", torch.__version__, "for CUDA", torch.version.cuda)'
"$2" devices
"""
# These measure times, or take the tracer of the whole GPU.
TESTS_OF_CLOCKS = "CudaKernels.AreTracedOneByOne:CudaKernels.TimeEveryStepOnTheClockOfTheDevice"
FORCED_FAULT = "ForcedFault.*"
QUICK_TESTS = "CompiledCode.*:*CudaRules*"
MOST_SHARDS = 15
BYTES_OF_A_SHARD = 2 << 30  # of the GPU's memory: a context, the libraries and the largest test


def _size(**symbols):
    return tuple(word for name, value in symbols.items() for word in ("--set", f"{name}={value}"))


SIZE_8B = _size(M=2048, H=4096, F=14336)
SIZE_OF_CHECK = _size(M=256, H=1024, F=2816)
SIZE_QUICK = _size(M=16, H=32, F=64)
SIZE_OF_LLAMA_LAYER = _size(S=2048, B=1, H=4096, D=128, G=8, F=14336)
QUICK_LLAMA_LAYER = _size(S=16, B=1, H=64, D=16, G=2, F=64)
SIZE_OF_GPT_LAYER = _size(S=2048, B=1, H=2048, D=128, F=8192)
QUICK_GPT_LAYER = _size(S=16, B=1, H=64, D=16, F=64)
SIZE_OF_HEAD = _size(M=2048, H=4096, V=32768)
QUICK_HEAD = _size(M=16, H=32, V=64)


@dataclasses.dataclass(frozen=True)
class Part:
    """Commands that run side by side, for at most `limit` seconds and this share of the time left."""

    name: str
    limit: float
    commands: tuple
    share: float = 1.0
    files: tuple = ()  # written besides the commands' output
    lacking: str = ""  # why it cannot run here


class Parts:
    """All parts for the programs of a kit, whose results go to a folder; tests keep what they compile in another."""

    def __init__(self, kit, folder, cache, gpu, is_quick):
        self._kit, self._folder, self._gpu, self._is_quick = kit, folder, gpu, is_quick
        self._size_name = "quick" if is_quick else "8B"
        # Algorithms that were timed beside other tests would be the wrong ones for what is measured later.
        self._of_tests = {"FUSELINE_TUNE": "off", "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(cache)}
        self._fuseline = str(kit / "bin" / "fuseline")
        self._tests = str(kit / "bin" / "test_kernels_gpu")
        self._has_torch = importlib.util.find_spec("torch") is not None

    def all(self):
        """In the order in which they are run."""
        return [*self._first(), *self._correctness(), *self._runs(), *self._layers(), *self._more_runs(), *self._peers(),
                *self._benchmarks(), *self._last()]

    def _first(self):
        facts = ("sh", "-c", FACTS, "facts", sys.executable, self._fuseline)
        yield _part("facts", 20, facts)
        yield _part("probe", 30, (self._fuseline, "devices", "--probe", "--json"))

    def _correctness(self):
        tests = QUICK_TESTS if self._is_quick else f"-{TESTS_OF_CLOCKS}:{FORCED_FAULT}"
        shards = tuple(self._shard(index, tests) for index in range(self._num_shards()))
        yield Part("tests", 150, shards, share=0.5)
        yield _part("tests_of_clocks", 40, self._test_arguments(TESTS_OF_CLOCKS), self._of_tests, share=0.5)

    def _num_shards(self):
        return max(1, min(MOST_SHARDS, len(os.sched_getaffinity(0)) - 1, self._gpu.memory_bytes // BYTES_OF_A_SHARD))

    def _test_arguments(self, tests):
        return self._tests, f"--gtest_filter={tests}"

    def _shard(self, index, tests):
        environment = {"GTEST_TOTAL_SHARDS": str(self._num_shards()), "GTEST_SHARD_INDEX": str(index)}
        return Command(f"tests_{index}", self._test_arguments(tests), {**self._of_tests, **environment})

    def _runs(self):
        yield self._run("DelayedScaling", 50, "events")
        yield self._run("None", 40, "events")

    def _more_runs(self):
        yield self._run("DelayedScaling", 60, "cupti")
        for recipe in ("Float8CurrentScaling", "Float8BlockScaling"):
            yield self._run(recipe, 40, "events", share=0.1)
        for recipe in ("None", "Float8CurrentScaling", "Float8BlockScaling"):
            yield self._run(recipe, 40, "cupti", share=0.1)

    def _run(self, recipe, limit, timing, share=0.5):
        """The Llama MLP, fused and unfused."""
        name = f"llama_{self._size_name}_{recipe}" + ("_cupti" if timing == "cupti" else "")
        file = f"runs/{name}.fuserun"
        iterations = "2" if self._is_quick else "7" if timing == "cupti" else "15"
        arguments = (self._fuseline, "run", self._llama(), "--device", "cuda", "--recipe", recipe, *self._size(SIZE_8B),
                     "--iterations", iterations, "--timing", timing, "-o", str(self._folder / file))
        return _part(name, limit, arguments, share=share, files=(file,))

    def _layers(self):
        """Ops besides those of an MLP: attention alone, in layers of 8B Llama and GPT, and the tied head with its loss."""
        yield from self._attention()
        yield self._layer("llama_layer", self._example("llama_layer"), SIZE_OF_LLAMA_LAYER, QUICK_LLAMA_LAYER)
        yield self._layer("gpt_layer", self._example("gpt_layer"), SIZE_OF_GPT_LAYER, QUICK_GPT_LAYER)
        head = self._recorded("head"), SIZE_OF_HEAD, QUICK_HEAD
        yield self._layer("head", *head)
        yield self._layer("head_without_logits", *head, "--with", "ForwardBackwardLinearCrossEntropy")

    def _layer(self, name, pipeline, size, quick_size, *options):
        file = f"runs/{name}.fuserun"
        iterations = "2" if self._is_quick else "15"
        arguments = (self._fuseline, "run", pipeline, "--device", "cuda", *(quick_size if self._is_quick else size), *options,
                     "--iterations", iterations, "--timing", "events", "-o", str(self._folder / file))
        return _part(name, 40, arguments, share=0.2, files=(file,))

    def _attention(self):
        """Packed projections to attention: 32 heads of 128 channels, each four with one key head, of 4096 tokens or more."""
        for tokens in (128,) if self._is_quick else (2048, 512, 8192):
            sequences, groups = (1, 1) if self._is_quick else (max(1, 4096 // tokens), 8)
            size = _size(S=tokens, B=sequences, G=groups)
            yield self._layer(f"attention_{tokens}", self._recorded("attention"), size, size)

    def _recorded(self, name):
        return str(self._kit / "share" / "fuseline" / "record" / f"{name}.fuseline")

    def _example(self, name):
        return str(self._kit / "share" / "fuseline" / "examples" / f"{name}.fuseline")

    def _llama(self):
        return self._example("llama_mlp")

    def _size(self, size):
        return SIZE_QUICK if self._is_quick else size

    def _peers(self):
        yield self._peer("check", 60, "DelayedScaling", SIZE_OF_CHECK, "--check")
        for recipe, modes in (("None", "eager,reduce-overhead"), ("DelayedScaling", "fp8,fp8-reduce-overhead")):
            yield self._peer(f"{self._size_name}_{recipe}", 90, recipe, SIZE_8B, "--no-check", "--rounds", "5", "--modes", modes)

    def _peer(self, name, limit, recipe, size, *options):
        file = f"peer_{name}.json"
        arguments = (sys.executable, "-B", str(self._kit / "share" / "fuseline" / "bench" / "peer_torch.py"), self._llama(),
                     "--device", "cuda", "--fuseline", self._fuseline, "--recipe", recipe, *self._size(size), *options,
                     "--json", str(self._folder / file))
        lacking = "" if self._has_torch else f"There is no PyTorch for {sys.executable}."
        return _part(f"peer_{name}", limit, arguments, share=0.4, files=(file,), lacking=lacking)

    def _benchmarks(self):
        yield self._bench("bench_attention", 30, 0.3, "ops", "--device", "cuda", "--only", "DotProductAttention")
        yield self._bench("bench_layers", 60, 0.3, "ops", "--device", "cuda", "--only", "layers")
        yield self._bench("bench_gpu", 240, 0.5, "gpu", "--device", "cuda", "--records", str(self._folder / "runs"),
                          *(("--only", "elementwise-chain") if self._is_quick else ()))
        yield self._bench("bench_ops", 120, 0.5, "ops", "--device", "cuda")

    def _bench(self, name, limit, share, *arguments):
        file = f"{name}.jsonl"
        quick = ("--quick",) if self._is_quick else ()
        return _part(name, limit, (str(self._kit / "bin" / "fuseline-bench"), *arguments, *quick, "--jsonl", str(self._folder / file)),
                     share=share, files=(file,))

    def _last(self):
        products = (str(self._kit / "bin" / "bench_cuda_products"), "--only", "8B 2048", "--seconds", "0.3", "--checks", "20000",
                    "--json")
        yield _part("products", 60, products, share=0.6)
        yield _part("forced_fault", 40, self._test_arguments(FORCED_FAULT),
                    {**self._of_tests, "FUSELINE_FORCE_FAULT": "1"})


def _part(name, limit, arguments, environment=None, **options):
    return Part(name, limit, (Command(name, arguments, environment or {}),), **options)
