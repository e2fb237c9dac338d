# The program behind an exported module of te.ops: times a step, compares plans and tensors. These lines are left out.
# SPDX-License-Identifier: Apache-2.0
def draw(shape, dtype, has_gradient, rows):
    """A tensor of N(0, 1), or counts that share out rows."""
    if dtype == torch.int64:
        sizes = torch.full(shape, rows // shape[0], dtype=dtype, device="cuda")
        sizes[-1] += rows % shape[0]
        return sizes
    return torch.randn(shape, dtype=dtype, device="cuda", requires_grad=has_gradient)


class Ranks:
    """Which part of a whole tensor this process holds, as one of several."""

    def __init__(self):
        self.size, self.rank = torch.distributed.get_world_size(), torch.distributed.get_rank()

    def part_of(self, name, x):
        shard = SHARDS.get(name.removeprefix("grad."), "whole")
        if shard == "first":  # the ranks hold summands; each has the gradient of the sum
            is_zero = self.rank > 0 and not name.startswith("grad.")
            return torch.zeros_like(x) if is_zero else x
        if shard == "whole":
            return x
        axis, parts = shard
        shares = [part.chunk(self.size, axis)[self.rank] for part in x.chunk(parts, axis)]
        return torch.cat(shares, axis).contiguous()

    def total_of(self, name, gradient):
        """Each rank has those of its own rows; TransformerEngine leaves the sum to the caller."""
        if gradient is not None and name in PARTIAL_GRADIENTS:
            torch.distributed.all_reduce(gradient)
        return gradient


def several_ranks():
    """None on one rank, and where it is not known which part a rank holds."""
    is_several = torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1
    return Ranks() if SHARDS and is_several else None


def draw_inputs():
    whole = {name: draw(*spec) for name, spec in INPUTS.items()}
    ranks = several_ranks()
    if ranks is None:
        return whole
    parts = {name: ranks.part_of(name, x.detach()) for name, x in whole.items()}
    return {name: x.requires_grad_(INPUTS[name][2]) for name, x in parts.items()}


def forward(model, inputs):
    """Outputs by name. Sums in place overwrite inputs, so ops then get copies."""
    copies = [x.clone() if OVERWRITES_INPUTS else x for x in inputs.values()]
    autocast = te.autocast(enabled=RECIPE is not None, recipe=RECIPE)
    with torch.set_grad_enabled(TRAINS), autocast:
        outputs = model(*copies)
    return dict(zip(OUTPUTS, outputs if isinstance(outputs, tuple) else (outputs,)))


def draw_gradients(model, inputs):
    return {name: torch.randn_like(y) for name, y in forward(model, inputs).items()}


def finish_gradients(model):
    """Computes the weight gradients that delay_wgrad_compute postpones."""
    with torch.no_grad():
        for module in model.modules():
            if getattr(module, "need_backward_dw", bool)():
                module.backward_dw()


def step(model, inputs, output_gradients):
    outputs = forward(model, inputs)
    trained = {n: y for n, y in outputs.items() if TRAINS and y.requires_grad}
    if trained:
        gradients = [output_gradients[name] for name in trained]
        torch.autograd.backward(list(trained.values()), gradients)
        finish_gradients(model)
    return outputs


def train_step(model, inputs, output_gradients, optimizer):
    step(model, inputs, output_gradients)
    if optimizer:
        optimizer.step()


def forget_gradients(model, inputs):
    """The next step's are then written, not added."""
    model.zero_grad(set_to_none=True)
    for x in inputs.values():
        x.grad = None


def measure(model, iterations, warmup):
    """Prints the median and the quartiles of a step's time by the GPU's clock."""
    inputs = draw_inputs()
    gradients = draw_gradients(model, inputs)
    optimizer = Optimizer(model) if HAS_OPTIMIZER else None
    for _ in range(warmup):
        train_step(model, inputs, gradients, optimizer)
    times = []
    for _ in range(iterations):
        forget_gradients(model, inputs)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        train_step(model, inputs, gradients, optimizer)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    if len(times) == 1:
        times *= 2  # quartiles are of two at least
    lower, median, upper = statistics.quantiles(times, n=4)
    what = "forward and backward" if TRAINS else "forward"
    what = "forward, backward and AdamW" if optimizer else what
    print(f"{what}: {median:.4f} ms [{lower:.4f}, {upper:.4f}], {iterations} steps")
    print(f"{torch.cuda.get_device_name()}, TransformerEngine {te_version()}")


def te_version():
    return importlib.metadata.version("transformer_engine")


def fused(operations, places=None):
    """[class, positions] of what TransformerEngine runs as one, of these positions."""
    return [
        [type(op).__name__, list(members)]
        for op, members in operations
        if len(members) > 1 and (places is None or not set(members).isdisjoint(places))
    ]


def plan_of(sequential, places):
    """What TransformerEngine fuses, by pass, once it has run."""
    (fuser,) = sequential._module_groups
    return {
        "forward": fused(fuser._forward_ops),
        "backward": fused(fuser._backward_ops, places),
    }


def compare_plans(model):
    """Prints both plans, and returns whether they are the same."""
    inputs = draw_inputs()
    step(model, inputs, draw_gradients(model, inputs))
    is_same = True
    for name, expected in PLAN.items():
        found = plan_of(getattr(model, name), expected["differentiated"])
        for direction in found:
            is_same &= compare(name, direction, expected[direction], found[direction])
    return is_same


def compare(name, direction, expected, found):
    print(f"{name}, {direction}: {found or 'nothing fused'}")
    if expected != found:
        print(f"  Fuseline expects: {expected or 'nothing fused'}")
    return expected == found


def join_group():
    """One process is a group, too; torchrun starts more."""
    if not IS_PARALLEL or torch.distributed.is_initialized():
        return
    if "RANK" in os.environ:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
        torch.distributed.init_process_group("nccl")
    else:
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("nccl", store=store, rank=0, world_size=1)
    if USERBUFFERS and torch.distributed.get_world_size() > 1:
        start_userbuffers(*USERBUFFERS)


def start_userbuffers(shape, dtype):
    """Buffers for overlapped communication; the default ones are named qkv, proj, fc1, fc2."""
    modes = te.module.base.UserBufferQuantizationMode
    te.module.base.initialize_ub(
        shape,
        torch.distributed.get_world_size(),
        quantization_modes=[modes.NONE if RECIPE is None else modes.FP8],
        dtype=dtype,
        bootstrap_backend="nccl",
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--plan", action="store_true", help="compare TransformerEngine's fusions with Fuseline's plan")
    add("--check", metavar="DUMP", help="compare with `fuseline run --dump DUMP`")
    add("--tolerance", type=float, default=TOLERANCE, help="limit for --check, relative to the norm of each tensor")
    add("--iterations", type=int, default=50)
    add("--warmup", type=int, default=10)
    add("--seed", type=int, default=0)
    add("--trained", metavar="STATE", help="with --check: compare with `fuseline run --optimizer adamw --save STATE`")
    add("--weights", metavar="PATH", help="the original model's safetensors file or folder")
    options = parser.parse_args()
    if options.check and NOT_RUN:
        parser.error(
            f"--check: Fuseline did not run {', '.join(NOT_RUN)}, so that what comes"
            " before and after cannot be compared"
        )
    if options.weights and not WEIGHTS:
        parser.error("--weights: the pipeline has no table of a model's own names")
    if options.trained and not (HAS_OPTIMIZER and options.check):
        parser.error("--trained: needs --check DUMP, and a script that was exported with --optimizer adamw")
    torch.manual_seed(options.seed)
    join_group()
    if HAS_OPTIMIZER and IS_PARALLEL and torch.distributed.get_world_size() > 1:
        parser.error("this script updates the parameters of one process; export it without --optimizer for several")
    if options.check and SHARDS is None and torch.distributed.get_world_size() > 1:
        parser.error("--check: the parts of a rank are not known, so that it needs one process")
    model = Pipeline().train(TRAINS)
    if options.weights:
        load_weights(model, options.weights)
    if options.plan:
        return 0 if compare_plans(model) else 5
    if options.trained:
        return 0 if compare_training(model, options.check, options.trained, UPDATE_TOLERANCE, "cuda") else 5
    if options.check:
        copies = not options.weights
        ranks = several_ranks()
        is_near = compare_tensors(model, options.check, options.tolerance, "cuda", copies, ranks)
        return 0 if is_near else 5
    measure(model, options.iterations, options.warmup)
    return 0


if __name__ == "__main__":
    sys.exit(main())
