"""The names of the product: a class name has one meaning, and some words are nobody's terms."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("demux", "producer", "bronze_ingest", "install_workflow", "deserializer")
# words that name nothing in the terms of Spark, Delta, Protobuf, SQL or Kubernetes
NOT_TERMS = frozenset(
    {"told", "said", "placed", "together", "passed", "stand", "stands", "standing", "moments", "somebody"}
    | {"aside", "anew", "gone", "looked", "tidy", "turns", "workplace"}
)

SOURCES = {
    path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8"))
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
}


def defined(tree: ast.AST) -> Iterator[str]:
    """The name of each class, function and method."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def bindings(tree: ast.Module) -> Iterator[str]:
    """The names that a module's own statements bind."""
    for node in tree.body:
        match node:
            case ast.Assign():
                yield from (target.id for target in node.targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield name


def words(name: str) -> set[str]:
    """The words of a name in either case."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def test_words_of_names() -> None:
    assert words("_set_aside") == {"set", "aside"}
    assert words("SetAside") == {"set", "aside"}


def test_a_class_name_has_one_meaning() -> None:
    files: defaultdict[str, set[str]] = defaultdict(set)
    for file, tree in SOURCES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                files[node.name.lstrip("_")].add(file)
    assert {name: sorted(its) for name, its in files.items() if len(its) > 1} == {}


def test_no_module_class_or_function_is_named_by_a_word_that_is_no_term() -> None:
    named = [(file, Path(file).stem) for file in SOURCES]
    named += [(file, name) for file, tree in SOURCES.items() for name in defined(tree)]
    assert [f"{file}: {name}" for file, name in named if words(name) & NOT_TERMS] == []


def test_a_module_binds_each_of_its_names_once() -> None:
    bound = {file: Counter(bindings(tree)) for file, tree in SOURCES.items()}
    assert [f"{file}: {name}" for file, names in bound.items() for name in names if names[name] > 1] == []
