# Reads the expression of a Formula op, as Python that calls named functions.
# SPDX-License-Identifier: Apache-2.0
"""fuseline's language differs from Python's expressions in "^" only, which binds as "**" does. fuseline has checked the
text already; what is left is a whitelist, so that nothing but arithmetic is ever evaluated."""

import ast
import re

FUNCTIONS = ("exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "silu", "gelu", "relu", "softplus", "abs", "square",
             "max", "min", "where", "pow")
OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow"}
COMPARISONS = {ast.Lt: "less", ast.Gt: "greater"}
ENTRY = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\[(H|1)\])?\s*(?:=\s*(-?\s*[\d.eE+-]+))?\s*$")


class FormulaError(ValueError):
    """What of an expression the peer cannot compute."""


def declared(text):
    """Name -> value of a list such as "alpha = 0.25, beta[1]"; 0 without a value."""
    entries = [ENTRY.match(entry) for entry in text.split(",") if entry.strip()]
    if not all(entries):
        raise FormulaError(f'the names "{text}" are not understood')
    return {entry[1]: float((entry[3] or "0").replace(" ", "")) for entry in entries}


def parse(text):
    """The expression as nested tuples: ("number", value), ("name", name), (function or operator, arguments...)."""
    try:
        tree = ast.parse(" ".join(text.replace("^", "**").split()), mode="eval")
    except SyntaxError as error:
        raise FormulaError(f'the expression "{text}" is not understood') from error
    return _term(tree.body)


def _term(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return ("number", float(node.value))
    if isinstance(node, ast.Name):
        return ("name", node.id)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return (OPERATORS[type(node.op)], _term(node.left), _term(node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return ("neg", _term(node.operand))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        return (COMPARISONS[type(node.ops[0])], _term(node.left), _term(node.comparators[0]))
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords
    if is_call and node.func.id in FUNCTIONS:
        return (node.func.id, *map(_term, node.args))
    raise FormulaError(f'"{ast.unparse(node)}" is not understood')


def evaluate(term, functions, values):
    """functions: name -> callable. values: name -> what a name stands for."""
    head, *rest = term
    if head == "number":
        return rest[0]
    if head == "name":
        return values[rest[0]]
    return functions[head](*(evaluate(part, functions, values) for part in rest))
