#!/usr/bin/env python3
# Trains the tiny Llama with `fuseline run --optimizer adamw`, and its exported modules with torch.optim.AdamW, without
# and with clipped gradients and a schedule.
# SPDX-License-Identifier: Apache-2.0
"""check_adamw.py PROGRAM [TEST...]: PROGRAM is fuseline. Needs `pip install torch safetensors`; ends with 77 where these
packages are missing."""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

for package in ("torch", "safetensors"):
    if importlib.util.find_spec(package) is None:
        print(f"Skipped: this Python has no {package}.")
        sys.exit(77)

import torch
from safetensors.torch import load_file

PROGRAM = ""
STEPS = 10
FIELDS = {"lr": 2e-3, "beta2": 0.95, "weight_decay": 0.1}
CLIPPED = {**FIELDS, "max_grad_norm": 0.5, "schedule": "cosine", "warmup_steps": 2, "training_steps": 2 * STEPS}


def fuseline(*arguments):
    subprocess.run([PROGRAM, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Trainings:
    """One pipeline, trained by both from the same parameters and inputs."""

    def __init__(self, folder, dtype, fields):
        self.folder = pathlib.Path(folder)
        words = [word for field in fields.items() for word in ("--optimizer-set", "{}={}".format(*field))]
        self.optimizer = ["--optimizer", "adamw", *words]
        self.file = self.folder / "model.fuseline"
        fuseline("new", "tiny-llama", "-o", self.file)
        if dtype == torch.float32:
            self.file.write_text(self.file.read_text().replace("bf16", "f32"))
        self.initial = self.dump("initial")
        self.script = self.folder / "model.py"
        fuseline("export", self.file, "--to", "torch", *self.optimizer, "-o", self.script)
        spec = importlib.util.spec_from_file_location("model", self.script)
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)

    def run(self, *arguments):
        fuseline("run", self.file, "--variants", "fused", "--warmup", 0, "--no-peaks", "--quiet", *arguments)

    def dump(self, name, *arguments):
        path = self.folder / f"{name}.safetensors"
        self.run("--iterations", 1, "--dump", path, *arguments)
        return load_file(path)

    def trained(self, steps):
        """Fuseline's state after some steps; the pipeline's inputs stay those of the seed."""
        path = self.folder / f"{steps}.safetensors"
        self.run(*self.optimizer, "--iterations", steps, "--save", path)
        return path

    def loss(self, state):
        return self.dump("loss", "--tensors", state)["loss"].item()

    def torch_steps(self):
        """The loss before, and the parameters after each step."""
        model = self.module.Pipeline("cpu").train()
        places = self.module.PARAMETERS
        with torch.no_grad():
            for name, place in places.items():
                self.module.set_parameter(model, place, self.initial[name])
        inputs = {name: self.initial[name] for name in self.module.INPUTS}
        parameters = {name: dict(model.named_parameters())[place] for name, place in places.items()}
        optimizer = self.module.Optimizer(model)
        for _ in range(STEPS):
            model.zero_grad()
            loss = self.module.step(model, inputs, {})["loss"].item()
            optimizer.step()
            yield loss, {name: p.detach().clone() for name, p in parameters.items()}


class AdamW(unittest.TestCase):
    def check(self, dtype, fields, loss_tolerance, update_tolerance):
        with tempfile.TemporaryDirectory() as folder:
            trainings = Trainings(folder, dtype, fields)
            initial, losses = trainings.initial, [trainings.initial["loss"].item()]
            for step, (loss, parameters) in enumerate(trainings.torch_steps(), 1):
                self.assertAlmostEqual(losses[-1], loss, delta=loss_tolerance * abs(loss), msg=f"step {step}")
                state = trainings.trained(step)
                losses.append(trainings.loss(state))
                if step in (1, STEPS):
                    self.compare(initial, load_file(state), parameters, step, update_tolerance)
            print(f"{dtype}: loss " + " ".join(f"{loss:.4f}" for loss in losses))
            # The first update of a warm-up has the learning rate 0.
            falls = [after < before or "warmup_steps" in fields for before, after in zip(losses, losses[1:])]
            self.assertTrue(all(falls) and losses[-1] < losses[0], losses)
            self.check_script(trainings, state)

    def check_script(self, trainings, state):
        """The script itself trains, and compares the updates."""
        arguments = ["--check", trainings.folder / "initial.safetensors", "--trained", state, "--device", "cpu"]
        ran = subprocess.run([sys.executable, "-B", trainings.script, *arguments], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertIn("update of ", ran.stdout)

    def compare(self, initial, state, parameters, step, tolerance):
        """The errors of the update of each parameter, by norm: where a gradient is about 0, its sign decides."""
        self.assertEqual(state["optimizer.step"].item(), step)
        worst = 0.0
        for name, expected in parameters.items():
            update = (expected - initial[name]).double()
            error = (state[name].double() - expected.double()).norm() / update.norm().clamp(min=1e-12)
            worst = max(worst, float(error))
            self.assertLess(error, tolerance, f"{name} after {step} steps")
            self.assertEqual(state[f"{name}.exp_avg"].dtype, torch.float32)
        print(f"step {step}: the largest error of an update is {worst:.1e}")

    def test_float32(self):
        self.check(torch.float32, FIELDS, 1e-4, 1e-3)

    def test_clipped_on_a_schedule(self):
        self.check(torch.float32, CLIPPED, 1e-4, 1e-3)

    def test_schedules_are_those_of_transformers(self):
        if importlib.util.find_spec("transformers") is None:
            self.skipTest("This Python has no transformers.")
        from transformers import get_scheduler

        for schedule in ("linear", "cosine"):
            with tempfile.TemporaryDirectory() as folder:
                module = Trainings(folder, torch.float32, {**CLIPPED, "schedule": schedule}).module
                optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
                expected = get_scheduler(schedule, optimizer, num_warmup_steps=2, num_training_steps=2 * STEPS)
                for step in range(2 * STEPS):
                    self.assertAlmostEqual(module.learning_rate_factor(step), expected.get_last_lr()[0], 12)
                    optimizer.step()
                    expected.step()

    def test_bfloat16(self):
        # Roundings that differ put both on paths of their own after a few steps.
        self.check(torch.bfloat16, FIELDS, 1e-1, 0.5)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
