# Attention and what stands around it in PyTorch: scaled_dot_product_attention, rotary embedding, split, cat.
# SPDX-License-Identifier: Apache-2.0
"""What scaled_dot_product_attention has no argument for (sinks, a soft cap, packed sequences) is written out.
Masks follow TransformerEngine: see the help of the op's attributes."""

import math

import torch
import torch.nn.functional as F

CAUSAL = ("causal", "padding_causal")


def _heads(x, heads, layout):
    """To [B, heads, S, D], as a view; thd: one batch entry."""
    if layout == "thd":
        return x.reshape(1, x.shape[0], heads, -1).transpose(1, 2)
    x = x.reshape(*x.shape[:2], heads, -1)
    return x.transpose(1, 2) if layout == "bshd" else x.permute(1, 2, 0, 3)


def _merged(y, layout):
    """From [B, H, S, D]."""
    y = y.permute(2, 0, 1, 3) if layout == "sbhd" else y.transpose(1, 2)
    return y.flatten(-2)[0] if layout == "thd" else y.flatten(-2)


def _window(attributes):
    left, right = attributes["window_size"] or (-1, -1)
    if "causal" in attributes["attn_mask_type"]:
        return left, 0
    return (-1, -1) if (left, right) == (-1, 0) else (left, right)


def _delta(attributes, queries, keys):
    mask, wish = attributes["attn_mask_type"], attributes["bottom_right_diagonal"]
    is_top_left = mask in CAUSAL or (not mask.endswith("bottom_right") and wish is False)
    return 0 if is_top_left else keys - queries


def _visible(attributes, rows, cols, queries, keys):
    """[rows, cols]: of a sequence of so many queries and keys, which may be fewer."""
    left, right = _window(attributes)
    distance = torch.arange(cols)[None, :] - torch.arange(rows)[:, None] - _delta(attributes, queries, keys)
    visible = (torch.arange(rows)[:, None] < queries) & (torch.arange(cols)[None, :] < keys)
    if left >= 0:
        visible &= distance >= -left
    if right >= 0:
        visible &= distance <= right
    return visible


def _alibi(heads, rows, cols, delta):
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * t / power) for t in range(1, power + 1)]
    slopes += [2 ** (-4 * (2 * t - 1) / power) for t in range(1, heads - power + 1)]
    distance = (torch.arange(rows)[:, None] + delta - torch.arange(cols)[None, :]).abs()
    return -torch.tensor(slopes)[:, None, None] * distance


class Attention:
    """y of x, k, v and the further inputs in the order of the op's ports, then softmax_offset."""

    def __init__(self, op):
        self.attributes = op.attributes
        self.heads = op.attributes["num_attention_heads"]
        self.groups = op.attributes["num_gqa_groups"] or self.heads
        self.layout = op.attributes["qkv_format"]
        self.mask = op.attributes["attn_mask_type"]
        self.bias = op.attributes["core_attention_bias_type"]
        self.softmax = op.attributes["softmax_type"]

    def __call__(self, x, k, v, *others):
        others = list(others)
        bias = others.pop(0) if self.bias.endswith("scale_bias") else None
        hidden = others.pop(0) if self.mask == "arbitrary" else None
        lengths = [others.pop(0), others.pop(0)] if self.mask.startswith("padding") else None
        offset = others.pop(0) if others else None
        q = _heads(x, self.heads, self.layout)
        k, v = (_heads(each, self.groups, self.layout) for each in (k, v))
        if self.layout == "thd":
            return _merged(self._packed(q, k, v, lengths, offset), self.layout)
        if self._is_plain():
            return _merged(F.scaled_dot_product_attention(
                q, k, v, is_causal=self.mask == "causal", scale=self.attributes["softmax_scale"],
                enable_gqa=self.groups != self.heads), self.layout)
        visible = self._visible(q, k, hidden, lengths)
        return _merged(self._written_out(q, k, v, visible, bias, offset, lengths), self.layout)

    def _is_plain(self):
        return (self.mask in ("no_mask", "causal") and self.attributes["window_size"] is None and self.bias == "no_bias"
                and self.softmax == "vanilla" and not self.attributes["softcap"])

    def _visible(self, q, k, hidden, lengths):
        rows, cols = q.shape[2], k.shape[2]
        if hidden is not None:
            return _visible(self.attributes, rows, cols, rows, cols) & (hidden == 0)
        if lengths is None:
            return _visible(self.attributes, rows, cols, rows, cols)
        counts = zip(*(sums.diff().tolist() for sums in lengths))
        return torch.stack([_visible(self.attributes, rows, cols, *both) for both in counts])[:, None]

    def _packed(self, q, k, v, lengths, offset):
        y = q.new_zeros(*q.shape[:3], v.shape[-1])
        (q_sums, k_sums), parts, end = (sums.tolist() for sums in lengths), [], 0
        for i in range(len(q_sums) - 1):
            rows, cols = slice(q_sums[i], q_sums[i + 1]), slice(k_sums[i], k_sums[i + 1])
            part = q[:, :, rows], k[:, :, cols], v[:, :, cols]
            visible = _visible(self.attributes, part[0].shape[2], part[1].shape[2], part[0].shape[2], part[1].shape[2])
            parts.append(self._written_out(*part, visible, None, offset, None))
            end = q_sums[i + 1]
        return torch.cat([*parts, y[:, :, end:]], dim=2)

    def _written_out(self, q, k, v, visible, bias, offset, lengths):
        repeats = self.heads // self.groups
        k, v = k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)
        scale = self.attributes["softmax_scale"]
        scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
        scores = q.float() @ k.float().transpose(-1, -2) if q.dtype != torch.float64 else q @ k.transpose(-1, -2)
        if self.bias == "pre_scale_bias":
            scores = scores + bias
        scores = scores * scale
        if cap := self.attributes["softcap"]:
            scores = cap * torch.tanh(scores / cap)
        if self.bias == "post_scale_bias":
            scores = scores + bias
        if self.bias == "alibi":
            scores = scores + self._alibi(scores, lengths)
        scores = scores.masked_fill(~visible, -math.inf)
        return self._probabilities(scores, offset).to(v.dtype) @ v

    def _alibi(self, scores, lengths):
        rows, cols = scores.shape[-2:]
        if lengths is None:
            return _alibi(self.heads, rows, cols, _delta(self.attributes, rows, cols)).to(scores.dtype)
        counts = zip(*(sums.diff().tolist() for sums in lengths))
        tables = [_alibi(self.heads, rows, cols, _delta(self.attributes, *both)) for both in counts]
        return torch.stack(tables).to(scores.dtype)

    def _probabilities(self, scores, offset):
        """0 in rows without a key."""
        if self.softmax != "vanilla":
            sink = scores.new_zeros(self.heads) if offset is None else offset.to(scores.dtype)
            column = sink[:, None, None].expand(*scores.shape[:-1], 1)
            return torch.softmax(torch.cat([scores, column], -1), -1)[..., :-1]
        is_empty = (scores == -math.inf).all(-1, keepdim=True)
        return torch.softmax(scores.masked_fill(is_empty, 0.0), -1).masked_fill(is_empty, 0.0)


# ---- rotary embedding

def frequencies(attributes, length):
    """Radians by token of each pair, and what sines and cosines are multiplied by."""
    rotated, length = int(attributes["dim"] * attributes["rotary_percent"]), attributes["max_seq_len"] or length
    kind, base, factor = attributes["rope_type"], attributes["rotary_base"], attributes["factor"]
    original = attributes["original_max_position_embeddings"]
    if kind == "dynamic":
        base *= (factor * max(length, original) / original - (factor - 1)) ** (rotated / (rotated - 2))
    plain = base ** (-torch.arange(0, rotated, 2, dtype=torch.float64) / rotated)
    if kind == "linear":
        plain = plain / factor
    if kind == "llama3":
        turns = original * plain / (2 * math.pi)
        low, high = attributes["low_freq_factor"], attributes["high_freq_factor"]
        share = ((turns - low) / (high - low)).clamp(0, 1)
        plain = (1 - share) * plain / factor + share * plain
    if kind == "yarn":
        return _yarn(attributes, plain, rotated)
    trained, stretch = attributes["pretrained_max_position_embeddings"], attributes["seq_len_interpolation_factor"]
    if trained and stretch:
        plain = plain * (trained / length if length > trained * stretch else 1 / stretch)
    return plain, 1.0


def _yarn(attributes, plain, rotated):
    factor, original = attributes["factor"], attributes["original_max_position_embeddings"]

    def pair_of(turns):
        return rotated * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(attributes["rotary_base"]))

    low, high = pair_of(attributes["beta_fast"]), pair_of(attributes["beta_slow"])
    if attributes["truncate"]:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rotated - 1)
    high += 0.001 if low == high else 0
    ramp = ((torch.arange(rotated // 2, dtype=torch.float64) - low) / (high - low)).clamp(0, 1)
    return plain * (1 - ramp + ramp / factor), _yarn_scale(attributes)


def _yarn_scale(attributes):
    factor, both = attributes["factor"], (attributes["mscale"], attributes["mscale_all_dim"])
    if attributes["attention_factor"] is not None:
        return attributes["attention_factor"]
    if factor <= 1:
        return 1.0
    if all(both):
        return (0.1 * both[0] * math.log(factor) + 1) / (0.1 * both[1] * math.log(factor) + 1)
    return 0.1 * math.log(factor) + 1


class Rotary:
    """y of x, cu_seqlens and start_positions. The table is made once, as a model does; where positions are inputs, each
    time."""

    def __init__(self, op, shape):
        self.attributes = op.attributes
        self.layout = op.attributes["tensor_format"]
        self.shape = shape
        self.tokens = shape[1] if self.layout == "bshd" else shape[0]
        self.frequencies, self.scale = frequencies(op.attributes, self.tokens + op.attributes["offset"])
        self.table = self._table(torch.arange(self.tokens))

    def _table(self, positions):
        angles = (positions + self.attributes["offset"]).double()[..., None] * self.frequencies
        if self.attributes["interleaved"]:
            angles = angles.repeat_interleave(2, -1)
        else:
            angles = torch.cat([angles, angles], -1)
        return angles.cos() * self.scale, angles.sin() * self.scale

    def __call__(self, x, *others):
        others = list(others)
        sums = others.pop(0) if self.layout == "thd" else None
        starts = others.pop(0) if others else None
        heads = x.reshape(*x.shape[:1 if self.layout == "thd" else 2], -1, self.attributes["dim"])
        cos, sin = (self._placed(part).to(x.dtype) for part in self._tables(sums, starts))
        width = cos.shape[-1]
        turned, rest = heads[..., :width], heads[..., width:]
        y = turned * cos + self._partner(turned) * sin
        return torch.cat([y, rest], -1).reshape(x.shape)

    def _tables(self, sums, starts):
        if sums is None and starts is None:
            return self.table
        positions = torch.arange(self.tokens)
        if sums is None:
            return self._table(positions[None, :] + starts[:, None])
        for i, (begin, end) in enumerate(zip(sums.tolist(), sums.tolist()[1:])):
            positions[begin:end] = torch.arange(end - begin) + (0 if starts is None else starts[i])
        return self._table(positions)

    def _placed(self, table):
        """[.., R] to [tokens' axes, 1, R]."""
        if table.dim() == 2:
            return {"thd": table[:, None], "bshd": table[None, :, None], "sbhd": table[:, None, None]}[self.layout]
        return table[:, :, None] if self.layout == "bshd" else table.transpose(0, 1)[:, :, None]

    def _partner(self, x):
        if self.attributes["interleaved"]:
            return torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
        first, second = x.chunk(2, -1)
        return torch.cat([-second, first], -1)


# ---- inputs that are counts

def drawn_counts(op, name, edges, generator):
    """A legal value for an integer input of one of the ops above."""
    shape = edges[name].shape
    if op.kind == "DotProductAttention":
        if len(shape) == 4:  # a mask; every row sees its first key
            hidden = torch.rand(shape, generator=generator) < 0.25
            hidden[..., 0] = False
            return hidden.long()
        counted = op.inputs[0 if name == op.inputs[-2] else 1]
        return _drawn_sums(shape[0], edges[counted].shape, op.attributes["qkv_format"], generator)
    if op.attributes["start_positions"] and name == op.inputs[-1]:
        return torch.randint(0, 64, shape, generator=generator)
    return _drawn_sums(shape[0], edges[op.inputs[0]].shape, op.attributes["tensor_format"], generator)


def _drawn_sums(count, shape, layout, generator):
    tokens = shape[1] if layout == "bshd" else shape[0]
    if layout == "thd":
        cuts = torch.randint(0, tokens + 1, (count - 2,), generator=generator).sort().values
        return torch.cat([torch.tensor([0]), cuts, torch.tensor([tokens])])
    return torch.cat([torch.tensor([0]), torch.randint(1, tokens + 1, (count - 1,), generator=generator).cumsum(0)])
