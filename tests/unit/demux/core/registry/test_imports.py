from __future__ import annotations

import pytest

from demux.core.registry.imports import imports_of, needed_imports, path_mistake, schema_mistake, transitive_imports
from demux.core.registry.protocol import ImportedFile, NewSchema


def test_imports_are_found_in_order_and_never_in_comments_or_strings() -> None:
    text = """
        syntax = "proto3"; // import "comment.proto";
        /* import "block.proto"; */
        import "a.proto";
        import public 'b/c.proto';
        import weak"d.proto";
        option (x) = "import \\"string.proto\\";";
        message important { string reimport = 1; }
    """
    assert imports_of(text) == ("a.proto", "b/c.proto", "d.proto")


def test_the_files_behind_the_imports_of_imports_come_once_and_in_order_of_path() -> None:
    files = {"b.proto": 'import "a.proto";', "a.proto": 'import "b.proto"; import "gone.proto";'}
    found = transitive_imports('import "b.proto";', files.get)
    assert [reference.path for reference in found] == ["a.proto", "b.proto"]


def test_references_that_nothing_imports_are_left_out() -> None:
    unused, used = ImportedFile("unused.proto", ""), ImportedFile("used.proto", "")
    assert needed_imports(NewSchema("s", 'import "used.proto";', "s.proto", (unused, used))) == (used,)


@pytest.mark.parametrize(
    ("path", "mistake"),
    [
        ("../x.proto", "is absolute or has empty, `.` or `..` parts"),
        ("a/../../x.proto", "is absolute or has empty, `.` or `..` parts"),
        ("/etc/x.proto", "is absolute or has empty, `.` or `..` parts"),
        ("a//x.proto", "is absolute or has empty, `.` or `..` parts"),
        ("a\\x.proto", "has control characters or backslashes"),
        ("a\0.proto", "has control characters or backslashes"),
        ("\ud800.proto", "has control characters or backslashes"),
        ("grpc_tools/__init__.py", "does not end in `.proto`"),
        ("x" * 300 + ".proto", "is too long"),
        ("a/b c/日本.proto", None),
    ],
)
def test_a_path_becomes_a_file_only_when_it_stays_where_it_belongs(path: str, mistake: str | None) -> None:
    assert path_mistake(path) == mistake


@pytest.mark.parametrize(
    ("schema", "mistake"),
    [
        (NewSchema("", "", "a.proto"), "the subject is empty"),
        (NewSchema("s", "\udfff", "a.proto"), "it holds half a surrogate pair, which UTF-8 cannot write"),
        (NewSchema("s", "", "a.proto", (ImportedFile("a.proto", ""),)), "one import path is there twice"),
        (
            NewSchema("s", "", "a.proto", (ImportedFile("a.proto/b.proto", ""),)),
            "the import path 'a.proto' is a file and a folder",
        ),
        (NewSchema("s", "", "a.proto"), None),
    ],
)
def test_a_schema_that_cannot_be_kept_is_named_before_anything_is_written(
    schema: NewSchema, mistake: str | None
) -> None:
    assert schema_mistake(schema) == mistake
