# Literals and comments of C++ sources, as the checks of texts read them.
# SPDX-License-Identifier: Apache-2.0
"""Reads texts of sources; each check says which of them it looks at."""

import re

LITERAL = re.compile(r'R"(?P<end>[^()\s\\]*)\((?P<raw>.*?)\)(?P=end)"|"(?P<text>(?:\\.|[^"\\\n])*)"|//[/!]?<?(?P<comment>[^\n]*)', re.S)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def joined(pieces):
    """Comments on successive lines are one text, and so are literals with nothing between them: (offset, kind, text)."""
    texts = []
    for offset, kind, follows, text in pieces:
        if texts and texts[-1][1] == kind and follows:
            texts[-1][2] += (" " if kind == "comment" else "") + text
        else:
            texts.append([offset, kind, text])
    return [tuple(text) for text in texts]


def texts_of(text):
    """(offset, "comment", "literal" or "raw", text) of a source."""
    pieces, end = [], 0
    for match in LITERAL.finditer(text):
        kind = "comment" if match["comment"] is not None else "raw" if match["raw"] is not None else "literal"
        found = match["comment"] or match["raw"] or match["text"] or ""
        follows = not text[end:match.start()].strip() and text.count("\n", end, match.start()) <= 1
        pieces.append((match.start(), kind, follows, found.strip() if kind == "comment" else found))
        end = match.end()
    return joined(pieces)


def blanked(text):
    """The text with spaces in place of literals and comments, whose brackets do not count."""
    return LITERAL.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
