# Modules that PyTorch itself does not have in this form. Those that a script needs are written into it.
# SPDX-License-Identifier: Apache-2.0
class RMSNorm(torch.nn.Module):
    """y = x / sqrt(mean(x^2) + eps) * gamma, in float32."""

    def __init__(self, shape, eps, is_zero_centered, device, dtype):
        super().__init__()
        self.shape, self.eps, self.centre = shape, eps, float(is_zero_centered)
        self.weight = torch.nn.Parameter(torch.full(shape, 1.0 - self.centre, device=device, dtype=dtype))

    def forward(self, x):
        gamma = self.weight.float() + self.centre
        y = torch.nn.functional.rms_norm(x.float(), self.shape, gamma, self.eps)
        return y.to(self.weight.dtype)


class LayerNorm(torch.nn.Module):
    """y = (x - mean(x)) / sqrt(var(x) + eps) * gamma + beta, in float32."""

    def __init__(self, shape, eps, is_zero_centered, device, dtype):
        super().__init__()
        self.shape, self.eps, self.centre = shape, eps, float(is_zero_centered)
        self.weight = torch.nn.Parameter(torch.full(shape, 1.0 - self.centre, device=device, dtype=dtype))
        self.bias = torch.nn.Parameter(torch.zeros(shape, device=device, dtype=dtype))

    def forward(self, x):
        gamma = self.weight.float() + self.centre
        y = torch.nn.functional.layer_norm(x.float(), self.shape, gamma, self.bias.float(), self.eps)
        return y.to(self.weight.dtype)


class L2Normalization(torch.nn.Module):
    """y = x / sqrt(sum(x^2) + eps), in float32."""

    def __init__(self, eps):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        squares = x.float().square().sum(-1, keepdim=True)
        return (x.float() * torch.rsqrt(squares + self.eps)).to(x.dtype)


class RotaryPositionEmbedding(torch.nn.Module):
    """Turns pairs of channels of each head by the token's position times a frequency."""

    def __init__(self, dim, frequencies, layout, is_interleaved, offset, factor, device):
        super().__init__()
        self.dim, self.layout, self.is_interleaved = dim, layout, is_interleaved
        self.offset, self.factor = offset, factor
        frequencies = torch.tensor(frequencies, device=device)
        self.register_buffer("frequencies", frequencies, persistent=False)

    def forward(self, x, cu_seqlens=None, start_positions=None):
        if self.layout == "thd":
            return self.packed(x, cu_seqlens, start_positions)
        positions = torch.arange(x.shape[self.layout.index("s")], device=x.device)
        positions = positions[:, None] if self.layout == "sbhd" else positions
        if start_positions is not None:
            positions = positions + (start_positions if self.layout == "sbhd" else start_positions[:, None])
        return self.turned(x, positions)

    def packed(self, x, cu_seqlens, start_positions):
        """Positions begin anew in each sequence; tokens after the last sequence stay."""
        *parts, rest = x.split([*cu_seqlens.diff().tolist(), len(x) - int(cu_seqlens[-1])])
        starts = [0] * len(parts) if start_positions is None else start_positions.tolist()
        positions = [torch.arange(len(part), device=x.device) + start for part, start in zip(parts, starts)]
        return torch.cat([*map(self.turned, parts, positions), rest])

    def turned(self, x, positions):
        """positions: of all tokens, or of those that sequences share."""
        heads = x.flatten(self.layout.index("h")).unflatten(-1, (-1, self.dim)).float()
        angles = (positions + self.offset).float()[..., None, None] * self.frequencies
        cos, sin = angles.cos() * self.factor, angles.sin() * self.factor
        turned, rest = heads.split([2 * cos.shape[-1], self.dim - 2 * cos.shape[-1]], dim=-1)
        if self.is_interleaved:
            a, b = turned[..., 0::2], turned[..., 1::2]
            turned = torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).flatten(-2)
        else:
            a, b = turned.chunk(2, dim=-1)
            turned = torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)
        return torch.cat([turned, rest], dim=-1).to(x.dtype).reshape(x.shape)


class DotProductAttention(torch.nn.Module):
    """softmax(scale q k^T) v by head. window: keys to the left and right of a query's own; -1: all."""

    def __init__(
        self, heads, groups, scale, layout="bshd", window=(-1, -1), is_bottom_right=False, softcap=0.0,
        bias="no_bias", softmax_type="vanilla", dropout=0.0, device="cpu",
    ):
        super().__init__()
        self.heads, self.groups, self.scale, self.layout = heads, groups, scale, layout
        self.window, self.is_bottom_right, self.softcap, self.bias = window, is_bottom_right, softcap, bias
        self.softmax_type, self.dropout = softmax_type, dropout
        if softmax_type == "learnable":
            self.softmax_offset = torch.nn.Parameter(torch.zeros(heads, device=device))

    def forward(
        self, x, k, v, core_attention_bias=None, attention_mask=None, cu_seqlens_q=None, cu_seqlens_kv=None
    ):
        if self.layout == "thd":
            return self.packed(x, k, v, cu_seqlens_q, cu_seqlens_kv)
        is_padded = cu_seqlens_q is not None
        sizes = [sums.diff()[:, None, None, None] for sums in (cu_seqlens_q, cu_seqlens_kv)] if is_padded else None
        q, k, v = self.by_head(x, self.heads), self.by_head(k, self.groups), self.by_head(v, self.groups)
        y = self.attend(q, k, v, sizes, core_attention_bias, attention_mask).transpose(1, 2)
        return (y if self.layout == "bshd" else y.transpose(0, 1)).flatten(-2)

    def packed(self, x, k, v, cu_seqlens_q, cu_seqlens_kv):
        """Each sequence alone; tokens after the last one give zeros."""
        sums = (cu_seqlens_q, cu_seqlens_kv, cu_seqlens_kv)
        counts = (self.heads, self.groups, self.groups)
        sequences = zip(*(
            [self.by_head(part[None], count) for part in tokens[: int(ends[-1])].split(ends.diff().tolist())]
            for tokens, ends, count in zip((x, k, v), sums, counts)
        ))
        parts = [self.attend(*parts, None, None, None)[0].transpose(0, 1).flatten(-2) for parts in sequences]
        return torch.cat([*parts, x.new_zeros(len(x) - int(cu_seqlens_q[-1]), parts[0].shape[-1])])

    def by_head(self, x, heads):
        """[B, heads, S, D]."""
        x = x.flatten(2).unflatten(2, (heads, -1))
        x = x.permute(1, 2, 0, 3) if self.layout == "sbhd" else x.transpose(1, 2)
        return x.repeat_interleave(self.heads // heads, dim=1)

    def attend(self, q, k, v, sizes, bias, mask):
        """sizes: tokens of each sequence of queries and of keys, if they are padded."""
        distance, hidden = self.hidden(q, k, sizes)
        scores = q.float() @ k.float().transpose(-1, -2)
        if self.bias == "pre_scale_bias":
            scores = scores + bias
        scores = scores * self.scale
        if self.softcap > 0.0:
            scores = self.softcap * torch.tanh(scores / self.softcap)
        if self.bias == "post_scale_bias":
            scores = scores + bias
        if self.bias == "alibi":
            scores = scores - self.slopes(q.device)[:, None, None] * distance.abs()
        hidden = hidden if mask is None else hidden | (mask != 0)
        shares = self.shares(scores.masked_fill(hidden, float("-inf")))
        return torch.nn.functional.dropout(shares, self.dropout, self.training).to(v.dtype) @ v

    def hidden(self, q, k, sizes):
        """Distances of keys from the diagonal, and the keys that a query does not attend to."""
        query = torch.arange(q.shape[2], device=q.device)[:, None]
        key = torch.arange(k.shape[2], device=q.device)[None, :]
        queries, keys = (q.shape[2], k.shape[2]) if sizes is None else sizes
        distance = key - query - (keys - queries if self.is_bottom_right else 0)
        left, right = self.window
        hidden = (query >= queries) | (key >= keys)
        hidden = hidden | (distance < -left) if left >= 0 else hidden
        hidden = hidden | (distance > right) if right >= 0 else hidden
        return distance, hidden

    def slopes(self, device):
        """Of ALiBi by head: a geometric sequence for a power of two, then every second one of the next sequence."""
        power = 1 << (self.heads.bit_length() - 1)
        exponents = [-8 * (i + 1) / power for i in range(power)]
        exponents += [-4 * (2 * i + 1) / power for i in range(self.heads - power)]
        return torch.tensor(exponents, device=device).exp2()

    def shares(self, scores):
        """A sink takes a share of each row; a row without keys has none."""
        if self.softmax_type == "vanilla":
            return scores.softmax(-1).nan_to_num(0.0)
        sink = scores.new_zeros(self.heads) if self.softmax_type == "off-by-one" else self.softmax_offset.float()
        sink = sink.reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        return torch.cat([scores, sink], dim=-1).softmax(-1)[..., :-1]


class GroupedLinear(torch.nn.Module):
    """x W_g^T + b_g in the rows of group g. Groups have one parameter each, or all share one."""

    def __init__(self, groups, in_features, out_features, has_bias, shares_weight, shares_bias, device, dtype):
        super().__init__()
        self.groups, self.has_bias, self.shares_weight, self.shares_bias = groups, has_bias, shares_weight, shares_bias
        limit = in_features**-0.5
        weight = torch.empty(groups, out_features, in_features, device=device, dtype=dtype).uniform_(-limit, limit)
        self.register("weight", weight, shares_weight)
        if has_bias:
            self.register("bias", torch.zeros(groups, out_features, device=device, dtype=dtype), shares_bias)

    def register(self, name, x, is_shared):
        for suffix, part in [("", x)] if is_shared else enumerate(x.unbind()):
            self.register_parameter(f"{name}{suffix}", torch.nn.Parameter(part.clone()))

    def parts(self, name, is_shared):
        return getattr(self, name) if is_shared else [getattr(self, f"{name}{i}") for i in range(self.groups)]

    def forward(self, x, split_sizes, scales=None):
        weights = self.parts("weight", self.shares_weight)
        dtype = weights[0].dtype
        sizes = split_sizes.tolist()
        rows = x.reshape(-1, x.shape[-1]).to(dtype).split(sizes)
        results = [part @ weight.t() for part, weight in zip(rows, weights)]
        if self.has_bias:
            factors = [1.0] * self.groups if scales is None else scales.reshape(-1, 1).to(dtype).split(sizes)
            biases = self.parts("bias", self.shares_bias)
            results = [y + bias * factor for y, bias, factor in zip(results, biases, factors)]
        y = torch.cat(results)
        return y.reshape(*x.shape[:-1], y.shape[-1])


class TopKRouter(torch.nn.Module):
    """Probabilities and numbers of each token's experts, and how many tokens chose each expert."""

    def __init__(
        self, experts, topk, score="softmax", is_pre_softmax=False, is_normalized=False, scaling=1.0,
        num_groups=0, group_topk=0, has_bias=False, device="cpu",
    ):
        super().__init__()
        self.experts, self.topk, self.score, self.scaling = experts, topk, score, scaling
        self.is_pre_softmax, self.is_normalized = is_pre_softmax, is_normalized
        self.num_groups, self.group_topk = num_groups, group_topk
        bias = torch.zeros(experts, device=device)
        self.expert_bias = torch.nn.Parameter(bias, requires_grad=False) if has_bias else None

    @staticmethod
    def largest(x, count):
        """Of equal values the lower index comes first."""
        return torch.sort(x, dim=-1, descending=True, stable=True).indices[..., :count]

    def scores(self, logits):
        if self.score == "sigmoid":
            return logits.sigmoid()
        if self.score == "sqrtsoftplus":
            return torch.nn.functional.softplus(logits).sqrt()
        return logits.softmax(-1)

    def open_to_choice(self, choice):
        """Experts outside of the best groups get -inf."""
        if self.num_groups == 0:
            return choice
        groups = choice.unflatten(-1, (self.num_groups, -1))
        best = groups.sort(dim=-1, descending=True).values[..., : self.topk // self.group_topk].sum(-1)
        is_open = torch.zeros_like(best, dtype=torch.bool).scatter(-1, self.largest(best, self.group_topk), True)
        return groups.masked_fill(~is_open.unsqueeze(-1), float("-inf")).flatten(-2)

    def forward(self, x):
        logits = x.float()
        scores = self.scores(logits)
        decides = self.score != "softmax" or (self.is_pre_softmax and self.num_groups > 0)
        choice = scores if decides else logits
        if self.expert_bias is not None:
            choice = choice + self.expert_bias
        indices = self.largest(self.open_to_choice(choice), self.topk)
        if self.score == "softmax" and (self.is_normalized or not self.is_pre_softmax):
            probs = logits.gather(-1, indices).softmax(-1)
        else:
            probs = scores.gather(-1, indices)
            probs = probs / (probs.sum(-1, keepdim=True) + 1e-20) if self.is_normalized else probs
        counts = torch.bincount(indices.flatten(), minlength=self.experts)
        return (self.scaling * probs).to(x.dtype), indices, counts


class MoEAuxLoss(torch.nn.Module):
    """The load-balancing loss and the z-loss of routers. Inputs: logits of all layers, then their numbers of tokens."""

    def __init__(self, layers, topk, coeff, z_coeff, score="softmax"):
        super().__init__()
        self.layers, self.topk, self.coeff, self.z_coeff, self.score = layers, topk, coeff, z_coeff, score

    def scores(self, logits):
        if self.score == "softmax":
            return logits.softmax(-1)
        values = logits.sigmoid() if self.score == "sigmoid" else torch.nn.functional.softplus(logits).sqrt()
        return values / (values.sum(-1, keepdim=True) + 1e-20)

    def forward(self, *inputs):
        logits = torch.cat([x.float().flatten(0, -2) for x in inputs[: self.layers]])
        load = sum(counts.double() for counts in inputs[self.layers :]).float()
        tokens, experts = logits.shape
        balance = (load * self.scores(logits).sum(0)).sum() * experts / (self.topk * tokens * tokens)
        return self.coeff * balance + self.z_coeff * logits.logsumexp(-1).square().mean()


class MoEPermute(torch.nn.Module):
    """A row for each expert of a token, ordered by expert and padded with zeros; where rows went; rows of experts."""

    def __init__(self, experts, align):
        super().__init__()
        self.experts, self.align = experts, align

    def forward(self, x, indices):
        slots = indices.flatten()
        rows = (slots.numel() + min(self.experts, slots.numel()) * (self.align - 1)) // self.align * self.align
        order = torch.sort(slots, stable=True).indices[(slots < 0).sum() :]
        counts = torch.bincount(slots[order], minlength=self.experts)
        sizes = (counts + self.align - 1) // self.align * self.align
        shift = (sizes.cumsum(0) - sizes) - (counts.cumsum(0) - counts)
        places = torch.arange(order.numel(), device=x.device) + shift[slots[order]]
        row_id_map = torch.full_like(slots, -1).index_put((order,), places)
        tokens = x.reshape(-1, x.shape[-1])[order // indices.shape[-1]]
        y = x.new_zeros(rows, x.shape[-1]).index_put((places,), tokens)
        sizes[-1] += rows - sizes.sum()
        return y, row_id_map.reshape(indices.shape), sizes


class MoEUnpermute(torch.nn.Module):
    """The sum of each token's rows, times their probabilities, in float32."""

    def forward(self, x, row_id_map, probs=None):
        rows = x.reshape(-1, x.shape[-1])[row_id_map.clamp(min=0)].float()
        rows = rows.masked_fill((row_id_map < 0).unsqueeze(-1), 0.0)
        if probs is not None:
            rows = rows * probs.float().unsqueeze(-1)
        return rows.sum(-2).to(x.dtype)
