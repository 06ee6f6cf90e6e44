"""The rules of the layout: who imports whom, how large files and folders are, and what nothing is called."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# from below to above: a file imports its own layer and those below it
LAYERS = (
    ("demux.core",),
    ("demux.operations",),
    ("producer", "bronze_ingest", "install_workflow", "deserializer"),
    ("demux.pipeline",),
    ("demux.api",),
    ("demux.cli",),
    # the package itself names what the API has, and loads it when it is asked for
    ("demux",),
)
PACKAGES = ("demux", "producer", "bronze_ingest", "install_workflow", "deserializer")
MAX_LINES = 400
MAX_FILES = 11
EMPTY_NAMES = frozenset({"utils", "helpers", "common", "manager"})

# the one file that may reach Spark's JVM; Spark Connect, and so serverless compute, gives none to Python
CLASSIC = "demux.core.spark.classic"
OF_THE_JVM = frozenset(
    {"_jvm", "_jdf", "_jsc", "_jconf", "_jsparkSession", "_gateway", "sparkContext", "SparkContext", "SparkConf", "rdd"}
)
MODULES_OF_THE_JVM = ("py4j", "pyspark.java_gateway", "pyspark.rdd", "pyspark.context", "pyspark.conf")

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
}


def relative(path: Path) -> str:
    """The path below the root of the project, with forward slashes."""
    return path.relative_to(ROOT).as_posix()


def imported_names(source: str) -> Iterator[str]:
    """Each dotted name that the source imports anywhere, functions and type checking included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_modules(source: str) -> Iterator[str]:
    """Each module of the product that the source imports."""
    for name in imported_names(source):
        found = name
        while found and found not in MODULES:
            found = found.rpartition(".")[0]
        if found:
            yield found


def names_of_the_jvm(source: str) -> Iterator[str]:
    """Each attribute, name or import by which the source reaches Spark's JVM, its context or RDDs."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in OF_THE_JVM:
                yield name
            # as in `getattr(spark, "_jvm")`
            case ast.Constant(value=str(name)) if name in OF_THE_JVM:
                yield name
    for name in imported_names(source):
        if name.rpartition(".")[2] in OF_THE_JVM or name.startswith(MODULES_OF_THE_JVM):
            yield name


def layer_of(module: str) -> tuple[int, str]:
    """The number of a module's layer, and which part of the layer it is."""
    for number, parts in enumerate(LAYERS):
        for part in parts:
            if module == part or (part != "demux" and module.startswith(f"{part}.")):
                return number, part
    return 0, "demux.core"


def may_import(module: str, other: str) -> bool:
    """Whether a module may import another one."""
    (mine, part), (its, other_part) = layer_of(module), layer_of(other)
    return its < mine or part == other_part


def effect_files() -> list[str]:
    """The patterns of the files that may have effects, one name each."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    patterns = re.findall(r'^"([^"]+)" = \["TID251"\]', text, re.MULTILINE)
    return [name for pattern in patterns for name in expanded(pattern)]


def expanded(pattern: str) -> list[str]:
    """`a/{b,c}.py` as `a/b.py` and `a/c.py`."""
    found = re.fullmatch(r"(.*)\{(.*)\}(.*)", pattern)
    return [found[1] + name + found[3] for name in found[2].split(",")] if found else [pattern]


def test_there_are_modules_to_look_at() -> None:
    assert "demux.core.errors" in MODULES
    assert {layer_of(name)[1] for name in MODULES} == {part for parts in LAYERS for part in parts}


@pytest.mark.parametrize(
    ("module", "other", "may"),
    [
        ("producer.run", "demux.core.names", True),
        ("producer.run", "deserializer.fleet.round", False),
        ("deserializer.fleet.round", "deserializer.silver.backend", True),
        ("demux.core.names", "demux.operations.predicate.ast", False),
        ("demux.operations.predicate.ast", "producer.run", False),
        ("demux.pipeline.round", "producer.run", True),
        ("demux.pipeline.round", "demux.cli.app", False),
        ("demux.cli.app", "demux.pipeline.round", True),
    ],
)
def test_imports_go_down_the_list_of_layers_and_never_across(module: str, other: str, may: bool) -> None:
    assert may_import(module, other) is may


def test_imports_inside_functions_count() -> None:
    source = "import demux.core.names\ndef f():\n    from producer.run import produce\n    from . import sibling\n"
    assert sorted(imported_modules(source)) == ["demux.core.names", "producer.run"]


def test_no_module_imports_a_layer_above_it() -> None:
    wrong = [
        f"{module} imports {other}"
        for module, path in MODULES.items()
        for other in imported_modules(path.read_text(encoding="utf-8"))
        if not may_import(module, other)
    ]
    assert wrong == []


def test_no_two_folders_import_each_other_in_a_circle() -> None:
    imports: defaultdict[Path, set[Path]] = defaultdict(set)
    for path in MODULES.values():
        for other in imported_modules(path.read_text(encoding="utf-8")):
            folder, its = path.parent, MODULES[other].parent
            # a folder and its own subfolder are one room
            if not (folder.is_relative_to(its) or its.is_relative_to(folder)):
                imports[folder].add(its)
    above = {folder: set(others) for folder, others in imports.items()}
    changed = True
    while changed:
        changed = False
        for folder, others in above.items():
            more = others.union(*(above.get(other, set()) for other in others))
            if more != others:
                above[folder], changed = more, True
    assert [relative(folder) for folder, others in above.items() if folder in others] == []


def test_no_folder_has_more_files_than_the_limit() -> None:
    files = [path for name in (*PACKAGES, "tests", "tools", "benchmarks") for path in (ROOT / name).rglob("*.py")]
    count = Counter(relative(path.parent) for path in files if path.name != "__init__.py")
    assert {folder: number for folder, number in count.items() if number > MAX_FILES} == {}


@pytest.mark.parametrize(
    "source",
    [
        "spark._jvm.java",
        "frame.sparkSession.sparkContext.parallelize([])",
        "frame.rdd.map(f)",
        'getattr(spark, "_jvm")',
        "from pyspark import SparkContext",
        "def f():\n    from py4j.protocol import Py4JJavaError",
        "import pyspark.rdd",
    ],
)
def test_every_way_to_the_jvm_is_seen(source: str) -> None:
    assert list(names_of_the_jvm(source)) != []


def test_one_file_reaches_sparks_jvm() -> None:
    found = {module: set(names_of_the_jvm(path.read_text(encoding="utf-8"))) for module, path in MODULES.items()}
    assert {module: names for module, names in found.items() if names and module != CLASSIC} == {}
    assert found[CLASSIC]


def test_no_file_is_longer_than_the_limit() -> None:
    lines = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES.values()}
    assert {file: length for file, length in lines.items() if length > MAX_LINES} == {}


def test_no_table_is_read_by_threads_that_the_end_of_a_process_aborts() -> None:
    wrong = re.compile(r"\.to_pyarrow_(dataset|table)\(")
    assert [relative(path) for path in MODULES.values() if wrong.search(path.read_text(encoding="utf-8"))] == []


def test_every_module_has_a_name_that_says_something() -> None:
    parts = {relative(path): path.relative_to(ROOT).with_suffix("").parts for path in MODULES.values()}
    assert [file for file, names in parts.items() if not EMPTY_NAMES.isdisjoint(names)] == []


def names_of_a_test(path: Path) -> list[str]:
    """What the file name of a test may mean: `test_lock_turns.py` tests `lock_turns`, or `lock` in one respect."""
    words = path.stem.split("_")[1:]
    return ["_".join(words[:count]) for count in range(len(words), 0, -1)]


def has_a_module(test: Path) -> bool:
    """Whether the folder of the product beside a unit test has a module, or a folder, that the test is named after."""
    folder = ROOT / test.parent.relative_to(ROOT / "tests" / "unit")
    return any((folder / f"{name}.py").is_file() or (folder / name).is_dir() for name in names_of_a_test(test))


def test_every_unit_test_is_named_after_the_module_beside_which_it_is() -> None:
    tests = [path for package in PACKAGES for path in (ROOT / "tests" / "unit" / package).rglob("test_*.py")]
    assert tests
    assert [relative(test) for test in tests if not has_a_module(test)] == []


def test_every_effect_file_that_the_linter_knows_is_there() -> None:
    names = effect_files()
    assert "demux/core/streaming/session.py" in names
    assert [name for name in names if not list(ROOT.glob(name))] == []


def test_proto_is_never_a_python_package() -> None:
    # `proto` is the import name of proto-plus.
    assert list((ROOT / "proto").rglob("*.py")) == []
