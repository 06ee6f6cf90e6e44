"""`.proto` texts with every kind of field, and their compiled descriptor sets. Free of Spark.

`SCHEMAS` holds them all; `compiled` gives a schema's descriptor set, `message_types` the messages that tests use as
roots. What a kind is for stands in its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import Message

from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.protocol import RegisteredSchema

VARINTS = ("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool")
FIXED = ("fixed32", "fixed64", "sfixed32", "sfixed64")
SCALARS = (*VARINTS, *FIXED, "float", "double", "string", "bytes")
MAP_KEYS = (*VARINTS, *FIXED, "string")
WRAPPERS = tuple(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
GOOGLE_TYPES = {
    "color": "Color",
    "date": "Date",
    "datetime": "DateTime",
    "decimal": "Decimal",
    "fraction": "Fraction",
    "interval": "Interval",
    "latlng": "LatLng",
    "localized_text": "LocalizedText",
    "money": "Money",
    "phone_number": "PhoneNumber",
    "postal_address": "PostalAddress",
    "quaternion": "Quaternion",
    "timeofday": "TimeOfDay",
}


@dataclass(frozen=True, slots=True)
class Schema:
    """A text whose named messages are to be decoded."""

    name: str
    text: str
    messages: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


def lines(*groups: list[str]) -> str:
    """The declarations of all groups, numbered from 1 in order."""
    declarations = [line for group in groups for line in group]
    return "\n".join(f"  {line} = {number};" for number, line in enumerate(declarations, start=1))


def _each(template: str, types: tuple[str, ...]) -> list[str]:
    return [template.format(type=name, name=name.rsplit(".", 1)[-1].lower()) for name in types]


def _roots(package: str, names: str) -> tuple[str, ...]:
    return tuple(f"{package}.{name}" for name in names.split())


_ALL = (*SCALARS, "Mood", "Inner")

PROTO3 = Schema(
    "proto3",
    f"""syntax = "proto3"; package kinds3;
enum Mood {{ option allow_alias = true; CALM = 0; ANGRY = -1; FURIOUS = -1; GLAD = 2; HUGE = 2147483647; }}
message Inner {{ int32 id = 1; string text = 2; optional int64 maybe = 3; repeated double list = 4; }}
message Empty {{}}
message Singular {{
{lines(_each("{type} f_{name}", _ALL))}
}}
message Optional {{
{lines(_each("optional {type} f_{name}", _ALL))}
}}
message Repeated {{
{lines(_each("repeated {type} f_{name}", _ALL))}
}}
message Expanded {{
{lines(_each("repeated {type} f_{name}", (*SCALARS[:-2], "Mood"))).replace(";", " [packed = false];")}
}}
message MapKeys {{
{lines(_each("map<{type}, int32> f_{name}", MAP_KEYS))}
}}
message MapValues {{
{lines(_each("map<string, {type}> f_{name}", _ALL))}
}}
message OneOf {{
  int32 before = 100;
  oneof choice {{
{lines(_each("{type} f_{name}", (*_ALL, "Empty")))}
  }}
  string after = 101;
  oneof other {{ bool yes = 102; Empty no = 103; }}
}}
message Level3 {{ Inner inner = 1; repeated Inner inners = 2; map<int32, Inner> by_id = 3; }}
message Level2 {{ Level3 deep = 1; repeated Level3 deeps = 2; map<string, Level3> by_name = 3; }}
message Nested {{ message Own {{ int32 x = 1; }} Own own = 1; Level2 level = 2; Empty empty = 3;
  repeated Empty empties = 4; map<string, Empty> by_name = 5; optional Empty maybe = 6; repeated Level2 levels = 7; }}
message Numbers {{ int32 low = 1; int32 high = 536870911; int32 mid = 19000000; }}
""",
    _roots("kinds3", "Singular Optional Repeated Expanded MapKeys MapValues OneOf Nested Empty Numbers"),
)

PROTO2 = Schema(
    "proto2",
    f"""syntax = "proto2"; package kinds2;
enum Closed {{ option allow_alias = true; ONE = 1; FIRST = 1; TWO = 2; MINUS = -5; }}
enum InMap {{ NIL = 0; SOME = 7; }}
message Inner {{ required int32 id = 1; optional string text = 2 [default = "none"]; optional Closed closed = 3; }}
message Required {{
{lines(_each("required {type} f_{name}", (*SCALARS, "Closed", "Inner")))}
}}
message Defaults {{
  optional int32 i = 1 [default = -42]; optional string s = 2 [default = "\\"hi\\""];
  optional bytes b = 3 [default = "\\001"];
  optional double d = 4 [default = nan]; optional float f = 5 [default = -inf]; optional bool t = 6 [default = true];
  optional Closed e = 7 [default = TWO]; optional uint64 u = 8 [default = 18446744073709551615]; optional Inner m = 9;
}}
message Lists {{
{lines(_each("repeated {type} f_{name}", (*SCALARS, "Closed", "Inner")))}
}}
message Packed {{
{lines(_each("repeated {type} f_{name}", (*SCALARS[:-2], "Closed"))).replace(";", " [packed = true];")}
}}
message Maps {{
{lines(_each("map<string, {type}> f_{name}", (*SCALARS, "InMap", "Inner")))}
}}
message OneOf {{ oneof choice {{ Closed closed = 1; string text = 2; Inner inner = 3; bytes raw = 4; }} }}
message Groups {{
  optional group Single = 1 {{ optional int32 x = 1; repeated Closed list = 2;
    optional group Deep = 3 {{ required bool on = 1; }} }}
  repeated group Many = 2 {{ optional string name = 1; map<int32, string> notes = 2; }}
  oneof choice {{ group Chosen = 3 {{ optional double y = 1; }} int32 plain = 4; }}
  optional Inner last = 5;
}}
message Extended {{ optional int32 own = 1; extensions 100 to max; }}
message Scope {{ extend Extended {{ optional string note = 101; repeated Closed closed = 102 [packed = true]; }} }}
extend Extended {{
  optional int32 note = 100; optional Inner inner = 103; repeated string words = 104; repeated int64 many = 105;
  optional Closed mood = 106; optional bool ownn = 107; repeated group Sub = 108 {{ optional int32 x = 1; }}
}}
message HasExtended {{ optional Extended one = 1; repeated Extended many = 2; }}
message Bag {{ option message_set_wire_format = true; extensions 4 to max; }}
message Item {{ extend Bag {{ optional Item item = 2000; }} optional string name = 1; }}
message HasBag {{ optional Bag bag = 1; optional int32 x = 2; }}
""",
    _roots("kinds2", "Required Defaults Lists Packed Maps OneOf Groups Extended HasExtended HasBag"),
)

EDITION_2023 = Schema(
    "edition_2023",
    f"""edition = "2023"; package kinds2023;
enum Open {{ ZERO = 0; ONE = 1; }}
enum Closed {{ option features.enum_type = CLOSED; FIRST = 1; SECOND = 2; }}
enum InMap {{ option features.enum_type = CLOSED; NIL = 0; SOME = 7; }}
message Inner {{ int32 id = 1; string text = 2 [features.field_presence = IMPLICIT]; }}
message Explicit {{
{lines(_each("{type} f_{name}", (*SCALARS, "Open", "Closed", "Inner")))}
}}
message Implicit {{
{lines(_each("{type} f_{name}", (*SCALARS, "Open"))).replace(";", " [features.field_presence = IMPLICIT];")}
}}
message Mixed {{
  int32 must = 1 [features.field_presence = LEGACY_REQUIRED];
  repeated int32 expanded = 2 [features.repeated_field_encoding = EXPANDED];
  repeated int32 packed = 3;
  string unchecked = 4 [features.utf8_validation = NONE];
  repeated Closed closed = 5;
  map<string, InMap> closed_by_name = 6;
  map<int32, Inner> inner_by_id = 7;
  oneof choice {{ Inner inner = 8; Closed word = 9; }}
}}
message Delimited {{
  Inner inner = 1 [features.message_encoding = DELIMITED];
  repeated Inner inners = 2 [features.message_encoding = DELIMITED];
  Inner plain = 3;
}}
""",
    _roots("kinds2023", "Explicit Implicit Mixed Delimited"),
)

_CLOSED = """message Inner {{ {optional} Closed one = 1; }}
message Every {{
  {optional} Closed one = 1; repeated Closed many = 2; repeated Closed packed = 3 [{packed}];
  oneof choice {{ string text = 4; Closed chosen = 5; }}
  map<string, InMap> by_name = 6; {optional} Closed standard = 7 [default = MINUS]; {optional} Inner inner = 8;
  repeated Inner inners = 9; map<int32, Inner> inner_by_id = 10; {optional} Every again = 11; extensions 100 to max;
}}
message Few {{ {optional} Closed one = 1; repeated Closed packed = 2 [{packed}]; {optional} int32 number = 3;
  oneof choice {{ string text = 4; Closed chosen = 5; }} map<string, InMap> by_name = 6; {optional} Inner inner = 7; }}
message Must {{ {required}; {optional} Inner inner = 2; }}
extend Every {{ {optional} Closed extra = 100; repeated Closed extras = 101 [{packed}]; }}
"""

CLOSED = Schema(
    "closed",
    """syntax = "proto2"; package closed;
enum Closed { option allow_alias = true; ONE = 1; FIRST = 1; TWO = 2; MINUS = -5; }
enum InMap { NIL = 0; SOME = 7; }
"""
    + _CLOSED.format(optional="optional", packed="packed = true", required="required Closed must = 1"),
    _roots("closed", "Every Few Must"),
)

CLOSED_2023 = Schema(
    "closed_2023",
    """edition = "2023"; package closed2023; option features.enum_type = CLOSED;
enum Closed { ONE = 1; TWO = 2; MINUS = -5; }
enum InMap { NIL = 0; SOME = 7; }
enum Open { option features.enum_type = OPEN; ZERO = 0; }
"""
    + _CLOSED.format(
        optional="",
        packed="features.repeated_field_encoding = PACKED",
        required="Closed must = 1 [features.field_presence = LEGACY_REQUIRED]; Open open = 3",
    ),
    _roots("closed2023", "Every Few Must"),
)

# every message field of the file is delimited, but maps and their values never are
ALL_DELIMITED = Schema(
    "all_delimited",
    """edition = "2023"; package delimited; option features.message_encoding = DELIMITED;
option features.field_presence = IMPLICIT;
message Inner { int32 id = 1; }
message Maps { map<string, Inner> by_name = 1; map<int32, bool> flags = 2; int32 x = 3; }
message Root { Maps maps = 1; repeated Inner inners = 2; }
""",
    ("delimited.Maps", "delimited.Root"),
)

WELL_KNOWN = Schema(
    "well_known",
    f"""syntax = "proto3"; package known;
import "google/protobuf/any.proto"; import "google/protobuf/duration.proto"; import "google/protobuf/empty.proto";
import "google/protobuf/field_mask.proto"; import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
message Payload {{ int32 id = 1; string text = 2; }}
message Wrappers {{
{lines(_each("{type} one_{name}", WRAPPERS), _each("repeated {type} many_{name}", WRAPPERS))}
}}
message WrapperMaps {{
{lines(_each("map<string, {type}> f_{name}", WRAPPERS))}
}}
message Times {{ google.protobuf.Timestamp one = 1; repeated google.protobuf.Timestamp many = 2;
  map<string, google.protobuf.Timestamp> by_name = 3; google.protobuf.Duration took = 4;
  repeated google.protobuf.Duration laps = 5; oneof choice {{ google.protobuf.Timestamp at = 6; string text = 7; }} }}
message Inside {{ Times times = 1; repeated Times list = 2; map<int32, Times> by_id = 3; }}
message Json {{ google.protobuf.Any any = 1; repeated google.protobuf.Any anys = 2;
  map<string, google.protobuf.Any> any_by_name = 3; google.protobuf.Struct struct = 4;
  repeated google.protobuf.Struct structs = 5; google.protobuf.Value value = 6;
  repeated google.protobuf.Value values = 7; map<string, google.protobuf.Value> value_by_name = 8;
  google.protobuf.ListValue list = 9; google.protobuf.NullValue null = 10; }}
message Others {{ google.protobuf.Empty empty = 1; repeated google.protobuf.Empty empties = 2;
  google.protobuf.FieldMask mask = 3; repeated google.protobuf.FieldMask masks = 4; Payload payload = 5; }}
""",
    _roots("known", "Wrappers WrapperMaps Times Inside Json Others"),
)

GOOGLE_TYPE = Schema(
    "google_type",
    'syntax = "proto3"; package types;\n'
    + "\n".join(f'import "google/type/{file}.proto";' for file in GOOGLE_TYPES)
    + "\nmessage All {\n"
    + lines(
        [f"google.type.{name} one_{file}" for file, name in GOOGLE_TYPES.items()],
        [f"repeated google.type.{name} many_{file}" for file, name in GOOGLE_TYPES.items()],
    )
    + "\n}\n",
    ("types.All",),
)

RECURSIVE = Schema(
    "recursive",
    """syntax = "proto3"; package recursive; import "google/protobuf/timestamp.proto";
enum Side { LEFT = 0; RIGHT = 1; }
message Tree { string name = 1; Tree left = 2; repeated Tree children = 3; map<string, Tree> by_name = 4;
  Side side = 5; }
message Ping { Pong pong = 1; int64 count = 2; google.protobuf.Timestamp at = 3; }
message Pong { repeated Ping pings = 1; bytes raw = 2; }
message Holder { Ping ping = 1; Pong pong = 2; Tree tree = 3; repeated Tree forest = 4; }
""",
    _roots("recursive", "Tree Ping Pong Holder"),
)

NAMES = Schema(
    "names",
    """syntax = "proto3"; package names;
message Cases { int32 name = 3; string NAME = 2; bool Name = 1; int32 name__3 = 4; Deep deep = 5; }
message Deep { int32 a = 1; int32 A = 2; int32 _schema_id = 3; }
message Reserved { int32 _schema_id = 1; string _Decoded_At = 2; int64 _offset = 3; string _empty = 4; }
message Keywords { int32 class = 1; string def = 2; bool None = 3; bytes select = 4; int32 from = 5; int32 self = 6;
  int32 DESCRIPTOR = 7; repeated int32 import = 8; map<string, int32> lambda = 9; Deep message = 10; int32 element = 11;
  int32 key = 12; int32 value = 13; int32 entries = 14; int32 SerializeToString = 15; }
""",
    ("names.Cases", "names.Reserved", "names.Keywords"),
)


def wide(fields: int) -> Schema:
    """A message with that many fields, of all scalar types in turn."""
    body = lines([f"{SCALARS[at % len(SCALARS)]} f{at}" for at in range(fields)])
    return Schema(f"wide_{fields}", f'syntax = "proto3"; package wide;\nmessage Wide {{\n{body}\n}}\n', ("wide.Wide",))


SCHEMAS = (PROTO3, PROTO2, EDITION_2023, CLOSED, CLOSED_2023, ALL_DELIMITED, WELL_KNOWN, GOOGLE_TYPE, RECURSIVE, NAMES)
CASES = tuple((schema, message) for schema in SCHEMAS for message in schema.messages)


@cache
def compiled(schema: Schema) -> bytes:
    """The schema's serialized descriptor set, by protoc."""
    return compile_schema(RegisteredSchema(1, schema.name, 1, schema.text, f"{schema.name}.proto")).descriptor_set


@cache
def message_type(schema: Schema, full_name: str) -> type[Message]:
    """The class of a message of the schema, closed enums as they are declared."""
    return message_class(pool_of(FileDescriptorSet.FromString(compiled(schema))), full_name)


def of_text(text: str, message: str | None = None, syntax: str = "proto3") -> tuple[bytes, str, type[Message]]:
    """The descriptor set of a short text, the message's full name (the first one's if not given) and its class."""
    schema = RegisteredSchema(1, "inline", 1, f'syntax = "{syntax}"; package t;\n{text}', "inline.proto", (), message)
    done = compile_schema(schema)
    pool = pool_of(FileDescriptorSet.FromString(done.descriptor_set))
    return done.descriptor_set, done.message, message_class(pool, done.message)
