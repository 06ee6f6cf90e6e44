"""Every sentence that the code can say of a condition, as the source has it. Pure.

The remedies are written where the errors are made, each for its own case. So that the page has all of them, they are
read from there: what is only known at run time is shown as `…`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

OPEN = "…"


@dataclass(frozen=True, slots=True, order=True)
class Said:
    """The texts of one place in the code; several where it chooses between them."""

    messages: tuple[str, ...]
    remedies: tuple[str, ...]


def said_in(sources: Mapping[str, str], conditions: Collection[str]) -> dict[str, tuple[Said, ...]]:
    """Return the sentences of each condition in the sources, by the name of its class; sorted, each once.

    Args:
        sources: the text of each file, by path.
        conditions: the names of the classes.
    """
    found: dict[str, set[Said]] = {}
    for path, text in sources.items():
        module = ast.parse(text, path)
        for name, said in _of(module, [module], conditions):
            found.setdefault(name, set()).add(said)
    return {name: tuple(sorted(each)) for name, each in found.items()}


def _of(node: ast.AST, scopes: Sequence[ast.AST], conditions: Collection[str]) -> Iterator[tuple[str, Said]]:
    """Yield each error that is made below the node, with its class; `scopes` are around it, the module first."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in conditions:
        # an error whose sentences were made elsewhere has them as one pair
        message, remedy = node.args if len(node.args) == 2 else (ast.Constant(OPEN), ast.Constant(OPEN))
        yield node.func.id, Said(_texts(message, scopes), _texts(remedy, scopes))
    inner = [*scopes, node] if isinstance(node, ast.FunctionDef) else scopes
    for child in ast.iter_child_nodes(node):
        yield from _of(child, inner, conditions)


def _texts(node: ast.expr | None, scopes: Sequence[ast.AST]) -> tuple[str, ...]:
    """Return the texts that an expression can be, each once; `…` for what is only known at run time."""
    match node:
        case ast.Constant(value=str() as text):
            return (text,)
        case ast.JoinedStr(values=parts):
            return ("".join(_part(part) for part in parts),)
        case ast.IfExp(body=one, orelse=other):
            return tuple(dict.fromkeys((*_texts(one, scopes), *_texts(other, scopes))))
        case ast.Name(id=name):
            values = next(filter(None, (_assigned(name, scope) for scope in reversed(scopes))), [])
            return tuple(dict.fromkeys(text for value in values for text in _texts(value, scopes))) or (OPEN,)
        case _:
            return (OPEN,)


def _part(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else OPEN


def _assigned(name: str, scope: ast.AST) -> list[ast.expr]:
    """Return the values that are assigned to the name in this scope; of a module, outside its functions."""
    inside = scope.body if isinstance(scope, ast.Module) else ast.walk(scope)
    return [
        node.value
        for node in inside
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
    ]
