# Routing to experts, and the way of rows there and back, in PyTorch.
# SPDX-License-Identifier: Apache-2.0
"""Each maker gives a function of an op's inputs, then its parameters. No slot is dropped here: a router drops none, and
what the peer draws has none, either. topk leaves open which of equal experts it takes; fuseline takes the first."""

import math

import torch
import torch.nn.functional as F

READERS = {"MoEPermute": 1, "MoEUnpermute": 1}  # op -> input of whole numbers

SCORES = {
    "softmax": lambda logits: torch.softmax(logits, -1),
    "sigmoid": torch.sigmoid,
    "sqrtsoftplus": lambda logits: F.softplus(logits).sqrt(),
}


def _in_best_groups(choices, attributes):
    """Minus infinity for the experts of other groups."""
    groups, kept = int(attributes["num_groups"]), int(attributes["group_topk"])
    grouped = choices.unflatten(-1, (groups, -1))
    of_groups = grouped.topk(int(attributes["topk"]) // kept, -1).values.sum(-1)
    is_kept = torch.zeros_like(of_groups, dtype=torch.bool).scatter(-1, of_groups.topk(kept, -1).indices, True)
    return grouped.masked_fill(~is_kept.unsqueeze(-1), -torch.inf).flatten(-2)


def router(op):
    attributes = op.attributes
    topk, kind, has_groups = int(attributes["topk"]), attributes["score_function"], bool(attributes.get("num_groups"))
    normalizes = attributes.get("norm_topk_prob")
    if normalizes is None:
        normalizes = kind != "softmax" and topk > 1

    def run(x, bias=None):
        logits = x.float()
        scores = SCORES[kind](logits)
        choices = scores if kind != "softmax" or (attributes["use_pre_softmax"] and has_groups) else logits
        choices = choices if bias is None else choices + bias
        choices = _in_best_groups(choices, attributes) if has_groups else choices
        indices = choices.topk(topk, -1).indices
        if kind == "softmax" and not attributes["use_pre_softmax"]:
            probs = torch.softmax(logits.gather(-1, indices), -1)
        else:
            probs = scores.gather(-1, indices)
            probs = probs / (probs.sum(-1, keepdim=True) + 1e-20) if normalizes else probs
        return probs * attributes["scaling_factor"], indices, torch.bincount(indices.flatten(), minlength=x.shape[-1])

    return run


def aux_loss(op):
    attributes = op.attributes
    layers, kind = int(attributes["num_layers"]), attributes["score_function"]

    def run(*inputs):
        logits = torch.cat([x.float().flatten(0, -2) for x in inputs[:layers]])
        load = torch.stack(inputs[layers:]).sum(0).float()
        scores = SCORES[kind](logits)
        scores = scores if kind == "softmax" else scores / (scores.sum(-1, keepdim=True) + 1e-20)
        tokens, num_experts = logits.shape
        balance = (load * scores.sum(0)).sum() * num_experts / (int(attributes["topk"]) * tokens**2)
        return attributes["coeff"] * balance + attributes["z_loss_coeff"] * logits.logsumexp(-1).square().mean()

    return run


def permute(op, pipeline):
    num_experts, align = int(op.attributes["num_experts"]), int(op.attributes["align_size"])
    num_rows = pipeline.edges[op.outputs[0]].shape[0]

    def run(x, indices):
        experts = indices.flatten()
        order = experts.argsort(stable=True)
        sizes = torch.bincount(experts, minlength=num_experts)
        padded = (sizes + align - 1) // align * align
        shifts = (padded.cumsum(0) - padded) - (sizes.cumsum(0) - sizes)
        rows = torch.arange(len(order), device=x.device) + shifts[experts[order]]
        y = x.new_zeros(num_rows, x.shape[-1]).index_copy(0, rows, x.flatten(0, -2)[order // indices.shape[-1]])
        row_id_map = torch.empty_like(experts).scatter(0, order, rows).reshape(indices.shape)
        left_over = F.pad((num_rows - padded.sum()).reshape(1), (num_experts - 1, 0))
        return y, row_id_map, padded + left_over

    return run


def unpermute(op):
    def run(x, row_id_map, probs=None):
        rows = x[row_id_map]
        return (rows if probs is None else rows * probs.unsqueeze(-1).to(x.dtype)).sum(-2)

    return run


def drawn_counts(op, name, pipeline, generator):
    """Different experts for each token; different rows."""
    shape = pipeline.edges[name].shape
    if op.kind == "MoEUnpermute":
        rows = torch.randperm(pipeline.edges[op.inputs[0]].shape[0], generator=generator)
        return rows[: math.prod(shape)].reshape(shape)
    keys = torch.rand((*shape[:-1], int(op.attributes["num_experts"])), generator=generator)
    return keys.argsort(-1)[..., : shape[-1]]
