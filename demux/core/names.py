"""Safe names for a game, made from a name that comes from outside and may be hostile.

Pure. The only place where a game name becomes part of a path, a table, a query, a task or a SQL text.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass

# hive escaping triples a byte, and `game_name=` + 3 * 80 still fits into the 255 bytes of a folder name
MAX_NAME_BYTES = 80
MAX_KEY_LENGTH = 40 + 2 + 16

_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_BIDI_CONTROLS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_KEY = re.compile(rf"[a-z][a-z0-9_]{{0,{MAX_KEY_LENGTH - 1}}}")
_PLAIN_KEY = re.compile(r"[a-z][a-z0-9_]{0,39}")
_HIVE_UNSAFE = re.compile(r"""[\x01-\x1f\x7f"#%'*/:=?\\{\[\]^]""")
_SQL_UNSAFE = re.compile(r"[\\'$]")
# the frozen Unicode 3.2 tables: a newer Python must not give an old game a new key
_UNICODE = unicodedata.ucd_3_2_0


def invalid_reason(name: str, max_bytes: int) -> str | None:
    """A sentence saying why records of this game go to quarantine, or None when the name can be used.

    Args:
        max_bytes: longest name in UTF-8 bytes.
    """
    if not name:
        return "The game name is empty."
    size = len(name.encode("utf-8", "surrogatepass"))
    if size > max_bytes:
        return f"The game name has {size} bytes in UTF-8; at most {max_bytes} are allowed."
    if name == _HIVE_NULL:
        return f"The game name is {_HIVE_NULL}, which means NULL in a folder name."
    for position, character in enumerate(name):
        if kind := _forbidden_kind(character):
            return f"The game name has {kind} (U+{ord(character):04X}) at position {position + 1}."
    if all(character.isspace() or unicodedata.category(character) == "Cf" for character in name):
        return "The game name has only white space."
    return None


def _forbidden_kind(character: str) -> str | None:
    if character in _BIDI_CONTROLS:
        return "a control character for the writing direction"
    match unicodedata.category(character):
        case "Cc":
            return "a control character"
        case "Cs":
            return "half of a surrogate pair"
        case "Zl" | "Zp":
            return "a line or paragraph separator"
        case _:
            return None


def game_key(name: str) -> str:
    """The game's key: other names have other keys, whatever a catalog or file system does with upper and lower case.

    At most 58 characters of `a-z`, `0-9` and `_`, the first a letter. A name that already is a plain key (at most 40
    characters, no `__`) is its own key. Any other becomes a readable slug, `__`, and 16 hex digits of the name's
    SHA-256, so it never equals a plain key. Never changes between releases: tables and checkpoints carry it.
    """
    if _PLAIN_KEY.fullmatch(name) and "__" not in name:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{_slug(name)}__{digest[:16]}"


def is_key(text: str) -> bool:
    """Return whether the text has the form of a game's key."""
    return _KEY.fullmatch(text) is not None


def key_folder(name: str) -> str:
    """Return the folder of the game's files in a table that is partitioned by game, where we write them ourselves.

    Spark's own writer names folders `game_name=` and the escaped name.
    """
    return f"key={game_key(name)}"


def _slug(name: str) -> str:
    spread = _UNICODE.normalize("NFKD", name)
    letters = "".join(character for character in spread if _UNICODE.category(character) != "Mn")
    # lower only what is ascii: lower-casing of other letters depends on the Unicode version
    slug = re.sub(r"[^a-z0-9]+", "_", re.sub(r"[A-Z]", lambda found: found[0].lower(), letters)).strip("_")
    prefixed = slug if re.match(r"[a-z]", slug) else f"g_{slug}"
    return prefixed[:40].rstrip("_")


@dataclass(frozen=True, slots=True)
class GameNames:
    """What one game is called in each place; made by `names_of`.

    Attributes:
        game: the exact name, as bronze has it.
        key: the safe name that all others are made from.
    """

    game: str
    key: str

    @property
    def table(self) -> str:
        """The silver table's name, and its folder's."""
        return self.key

    @property
    def query_name(self) -> str:
        """The name of the game's query; also its checkpoint's path below the folder of checkpoints."""
        return f"silver/{self.key}"

    @property
    def task_key(self) -> str:
        """The key of the game's task in a plan (Databricks takes 100 characters of letters, digits, `-`, `_`)."""
        return f"deserialize_{self.key}"


def names_of(game: str) -> GameNames:
    """All names of a game; the game name should have passed `invalid_reason`."""
    return GameNames(game=game, key=game_key(game))


def quote_identifier(identifier: str) -> str:
    r"""The identifier between backticks, safe in Spark SQL unless it has `${`, which Spark replaces before parsing."""
    return "`" + identifier.replace("`", "``") + "`"


def sql_string(text: str) -> str:
    r"""The text as a string literal of Spark SQL, for sessions with default `spark.sql.parser.escapedStringLiterals`.

    `$` is written as its code, because Spark replaces `${env:…}` and `${…}` even inside literals, before parsing.
    """
    return "'" + _SQL_UNSAFE.sub(lambda found: r"\u0024" if found[0] == "$" else "\\" + found[0], text) + "'"


def escape_partition_value(value: str) -> str:
    """The partition value as a folder name has it (Spark's `ExternalCatalogUtils.escapePathName`)."""
    return _HIVE_UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", value)
