# The optimizer of exported programs; these lines are left out.
# SPDX-License-Identifier: Apache-2.0
class Optimizer:
    """AdamW after clip_grad_norm_; a parameter of 16 bits is the rounded form of a float32 copy."""

    def __init__(self, model):
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.copies = [
            p if p.dtype == torch.float32 else torch.nn.Parameter(p.detach().float()) for p in self.parameters
        ]
        self.adamw = torch.optim.AdamW(self.copies, **ADAMW)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.adamw, learning_rate_factor)

    @torch.no_grad()
    def step(self):
        for parameter, copy in zip(self.parameters, self.copies):
            main_grad = getattr(parameter, "main_grad", None)
            gradient = parameter.grad if main_grad is None else main_grad
            copy.grad = None if gradient is None else gradient.float()
        if MAX_GRAD_NORM > 0.0:
            torch.nn.utils.clip_grad_norm_(self.copies, MAX_GRAD_NORM)
        self.adamw.step()
        self.schedule.step()
        for parameter, copy in zip(self.parameters, self.copies):
            if copy is not parameter:
                parameter.copy_(copy)
            if getattr(parameter, "main_grad", None) is not None:
                parameter.main_grad.zero_()


def learning_rate_factor(step):
    """As transformers.get_scheduler; step: the number of updates before."""
    if step < WARMUP_STEPS:
        return step / WARMUP_STEPS
    if SCHEDULE == "constant":
        return 1.0
    progress = min(1.0, (step - WARMUP_STEPS) / (TRAINING_STEPS - WARMUP_STEPS))
    return 1.0 - progress if SCHEDULE == "linear" else 0.5 * (1.0 + math.cos(math.pi * progress))
