# The program behind an exported module of PyTorch: times a step, compares tensors. These lines are left out.
# SPDX-License-Identifier: Apache-2.0
def draw(name, shape, dtype, has_gradient, bound, device):
    """A tensor of N(0, 1), or of integers from 0 to the bound; below 0 it is the rows that counts share out."""
    if dtype == torch.int64 and bound < 0:
        sizes = torch.full(shape, -bound // shape[0], device=device)
        sizes[-1] += -bound % shape[0]
        return sizes
    if dtype == torch.int64:
        return torch.randint(0, bound, shape, device=device)
    return torch.randn(shape, dtype=dtype, device=device, requires_grad=has_gradient)


def forward(model, inputs):
    """Outputs by name."""
    with torch.set_grad_enabled(TRAINS):
        outputs = model(*inputs.values())
    return dict(zip(OUTPUTS, outputs if isinstance(outputs, tuple) else (outputs,)))


def step(model, inputs, output_gradients):
    outputs = forward(model, inputs)
    trained = {n: y for n, y in outputs.items() if TRAINS and y.requires_grad}
    gradients = [output_gradients.get(name) for name in trained]
    gradients = [torch.ones_like(y) if g is None else g for g, y in zip(gradients, trained.values())]
    if trained:
        torch.autograd.backward(list(trained.values()), gradients)
    return outputs


def measure(model, iterations, device):
    """Prints the median and the range of a step's time; the first step is not counted."""
    inputs = {name: draw(name, *spec, device) for name, spec in INPUTS.items()}
    optimizer = Optimizer(model) if HAS_OPTIMIZER else None
    times = []
    for _ in range(iterations + 1):
        model.zero_grad(set_to_none=True)
        begin = time.perf_counter()
        step(model, inputs, {})
        if optimizer:
            optimizer.step()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    times = times[1:]
    what = "forward and backward" if TRAINS else "forward"
    what = "forward, backward and AdamW" if optimizer else what
    print(f"{what}: {statistics.median(times):.4f} ms [{min(times):.4f}, {max(times):.4f}], {iterations} steps, {device}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--check", metavar="DUMP", help="compare with `fuseline run --dump DUMP`")
    add("--trained", metavar="STATE", help="with --check: compare with `fuseline run --optimizer adamw --save STATE`")
    add("--weights", metavar="PATH", help="the original model's safetensors file or folder")
    add("--tolerance", type=float, default=TOLERANCE, help="limit for --check, relative to the norm of each tensor")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    add("--iterations", type=int, default=10)
    add("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.weights and not WEIGHTS:
        parser.error("--weights: the pipeline has no table of the model's own names; import the config.json again")
    if options.trained and not (HAS_OPTIMIZER and options.check):
        parser.error("--trained: needs --check DUMP, and a script that was exported with --optimizer adamw")
    torch.manual_seed(options.seed)
    model = Pipeline(options.device).train(TRAINS)
    if options.weights:
        load_weights(model, options.weights)
    if options.trained:
        return 0 if compare_training(model, options.check, options.trained, UPDATE_TOLERANCE, options.device) else 5
    if options.check:
        copies = not options.weights
        return 0 if compare_tensors(model, options.check, options.tolerance, options.device, copies) else 5
    measure(model, options.iterations, options.device)
    return 0


if __name__ == "__main__":
    sys.exit(main())
