#!/usr/bin/env python3
# Makes the pictures of the guide and of the README: the designer without a display, in PNG files of 256 colors.
# SPDX-License-Identifier: Apache-2.0
"""guide_pictures.py FUSELINE_DESIGNER [NAME...]: writes resources/guide/pictures/NAME.png for every picture, or for those named;
readme is resources/pictures/designer.png."""

import collections
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "resources/examples"
# Runs whose plan this version still makes: others open with a warning.
RUN = EXAMPLES / "runs/llama_mlp_8B_H100_None.fuserun"
README_RUN = EXAMPLES / "runs/gpt_mlp_1.3B_H100_None.fuserun"
SIZES = {"readme": "1500x940"}
SIZE = "1200x700"

# name: arguments of the designer.
PICTURES = {
    "start": ["--workspace", "explain", "--select", "fc1", EXAMPLES / "llama_mlp.fuseline"],
    "designer": ["--workspace", "design", "--select", "qkv", EXAMPLES / "llama_layer.fuseline"],
    "attention": ["--workspace", "design", "--select", "attention", EXAMPLES / "gpt_layer.fuseline"],
    "running": ["--workspace", "profile", "--pane", "timings", RUN],
    "measuring": ["--workspace", "profile", "--pane", "timeline", RUN],
    "gpu": ["--workspace", "profile", "--pane", "flame", RUN],
    "comparing": ["--workspace", "compare", "--compare", EXAMPLES / "layernorm_mlp.fuseline", EXAMPLES / "gpt_mlp.fuseline"],
    "precision": ["--workspace", "explain", "--select", "fc1", "FP8"],
    "numerics": ["--workspace", "design", "--pane", "numerics", "--numerics", "SMALL"],
    "readme": ["--workspace", "explain", "--pane", "timings", README_RUN],
}


def rows_of(png):
    """(width, height, rows of RGB bytes) of a PNG with 8 bits a channel, as Qt writes it."""
    at, packed, header = 8, b"", None
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", png[at + 8:at + 8 + size])
        elif kind == b"IDAT":
            packed += png[at + 8:at + 8 + size]
        at += 12 + size
    width, height, _, color = header[:4]
    channels = {2: 3, 6: 4}[color]
    data, stride, rows, above = zlib.decompress(packed), width * channels, [], bytearray(width * channels)
    for row in range(height):
        start = row * (stride + 1)
        above = unfiltered(data[start], bytearray(data[start + 1:start + 1 + stride]), above, channels)
        rows.append(above)
    return width, height, [bytes(b for i, b in enumerate(row) if i % channels < 3) if channels == 4 else bytes(row) for row in rows]


def unfiltered(kind, row, above, channels):
    for i in range(len(row)):
        left = row[i - channels] if i >= channels else 0
        up = above[i]
        if kind == 1:
            row[i] = (row[i] + left) & 255
        elif kind == 2:
            row[i] = (row[i] + up) & 255
        elif kind == 3:
            row[i] = (row[i] + (left + up) // 2) & 255
        elif kind == 4:
            corner = above[i - channels] if i >= channels else 0
            row[i] = (row[i] + paeth(left, up, corner)) & 255
    return row


def paeth(left, up, corner):
    guess = left + up - corner
    return min((left, up, corner), key=lambda value: abs(guess - value))


def palette_of(counts):
    """The 256 most frequent colors of a coarse grid first, so that rare hues keep an entry."""
    cells = collections.defaultdict(collections.Counter)
    for color, count in counts.items():
        cells[tuple(c >> 4 for c in color)][color] += count
    heads = sorted(((cell.total(), cell.most_common(1)[0][0]) for cell in cells.values()), reverse=True)[:160]
    chosen = dict.fromkeys(color for _, color in heads)
    for color, _ in counts.most_common():
        if len(chosen) == 256:
            break
        chosen[color] = None
    return list(chosen)


def nearest(color, palette):
    return min(range(len(palette)), key=lambda i: sum((a - b) ** 2 for a, b in zip(color, palette[i])))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def smaller(png):
    width, height, rows = rows_of(png)
    pixels = [[tuple(row[i:i + 3]) for i in range(0, 3 * width, 3)] for row in rows]
    counts = collections.Counter(color for row in pixels for color in row)
    palette = palette_of(counts)
    index = {color: i for i, color in enumerate(palette)}
    for color in counts:
        if color not in index:
            index[color] = nearest(color, palette)
    body = b"".join(b"\0" + bytes(index[color] for color in row) for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"PLTE", b"".join(map(bytes, palette)))
            + chunk(b"IDAT", zlib.compress(body, 9)) + chunk(b"IEND", b""))


# Word among the arguments: example, sizes and recipe of a pipeline. A CPU measures SMALL in a second.
PIPELINES = {
    "SMALL": ("gpt_mlp.fuseline", {"M": 64, "H": 128, "F": 512}, "MXFP8BlockScaling"),
    "FP8": ("llama_mlp.fuseline", {"M": 2048, "H": 4096, "F": 14336}, "DelayedScaling"),
}


def pipeline_under_recipe(word, folder):
    name, symbols, recipe = PIPELINES[word]
    pipeline = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))
    pipeline["symbols"] = symbols
    pipeline["recipe"] = {"name": recipe}
    path = folder / name
    path.write_text(json.dumps(pipeline), encoding="utf-8")
    return path


def take(designer, arguments, size, folder):
    picture = folder / "picture.png"
    command = [pipeline_under_recipe(word, folder) if word in PIPELINES else word for word in arguments]
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen", "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    subprocess.run([designer, "--no-restore", "--theme", "light", "--size", size, "--screenshot", picture, *command],
                   env=environment, check=True, stderr=subprocess.DEVNULL)
    return picture.read_bytes()


def main(designer, names):
    for name in names or PICTURES:
        path = ROOT / ("resources/pictures/designer.png" if name == "readme" else f"resources/guide/pictures/{name}.png")
        with tempfile.TemporaryDirectory() as home:
            path.write_bytes(smaller(take(designer, PICTURES[name], SIZES.get(name, SIZE), pathlib.Path(home))))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:])
