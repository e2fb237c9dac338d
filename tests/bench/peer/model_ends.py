# Embedding, tied head and loss in PyTorch.
# SPDX-License-Identifier: Apache-2.0
"""Each maker gives a function of an op's inputs, then its parameters."""

import torch
import torch.nn.functional as F

READERS = {"Embedding": 0, "CrossEntropy": 1}  # op -> input of whole numbers


def embedding(op):
    attributes = op.attributes

    def run(ids, weight):
        if attributes["positions"]:
            ids = torch.arange(ids.shape[-1], device=ids.device).expand(ids.shape)
        y = F.embedding(ids, weight, padding_idx=attributes.get("padding_idx"))
        return (y, weight) if attributes["shares_weight"] else y

    return run


def cross_entropy(op):
    attributes = op.attributes
    reduction, ignored = attributes["reduction"], int(attributes["ignore_index"])
    scale = attributes["lse_square_scale"]

    def run(x, target):
        rows, labels = x.float().reshape(-1, x.shape[-1]), target.reshape(-1)
        losses = F.cross_entropy(rows, labels, ignore_index=ignored, reduction="none",
                                 label_smoothing=attributes["label_smoothing"])
        counted = labels != ignored
        losses = losses + scale * torch.where(counted, torch.logsumexp(rows, -1).square(), 0.0)
        if reduction == "none":
            return losses.reshape(target.shape)
        return losses.sum() / (counted.sum().clamp(min=1) if reduction == "mean" else 1)

    return run


def drawn_counts(op, name, pipeline, generator):
    """Rows of the table, or classes."""
    if op.kind == "Embedding":
        most = pipeline.parameters[op.parameters[0]].shape[0]
    else:
        most = pipeline.edges[op.inputs[0]].shape[-1]
    return torch.randint(0, most, pipeline.edges[name].shape, generator=generator)
