"""What OpenLineage asks of a run event, as a JSON schema.

Written down from the published specification, version 2-0-2 (https://openlineage.io/spec/2-0-2/OpenLineage.json), and
its facets ParentRunFacet 1-1-0, ErrorMessageRunFacet 1-0-1, JobTypeJobFacet 2-0-3, SchemaDatasetFacet 1-1-1 and
OutputStatisticsOutputDatasetFacet 1-0-2: required properties, types and formats. No package has the files themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

Schema = Mapping[str, Any]

_TEXT: Schema = {"type": "string", "minLength": 1}
_TIME: Schema = {"type": "string", "format": "date-time", "pattern": "^[0-9-]{10}T[0-9:.]+(Z|[+-][0-9:]{5})$"}
_UUID: Schema = {"type": "string", "format": "uuid"}
_URI: Schema = {"type": "string", "pattern": "^[a-z][a-z0-9+.-]*:."}
_COUNT: Schema = {"type": "integer", "minimum": 0}


def _object(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    return {"type": "object", "properties": {**(optional or {}), **required}, "required": list(required)}


def _facets(known: Mapping[str, Schema]) -> Schema:
    base = _object({"_producer": _URI, "_schemaURL": _URI})
    facets = {name: {"allOf": [base, facet]} for name, facet in known.items()}
    return {"type": "object", "properties": facets, "additionalProperties": base}


_JOB = _object({"namespace": _TEXT, "name": _TEXT})
_FIELD = _object(
    {"name": _TEXT},
    {
        "type": {"type": "string"},
        "description": {"type": "string"},
        "fields": {"type": "array", "items": {"$ref": "#/$defs/field"}},
    },
)
_DATASET_FACETS = _facets({"schema": _object({}, {"fields": {"type": "array", "items": {"$ref": "#/$defs/field"}}})})
_RUN_FACETS = _facets(
    {
        "parent": _object({"run": _object({"runId": _UUID}), "job": _JOB}),
        "errorMessage": _object({"message": _TEXT, "programmingLanguage": _TEXT}, {"stackTrace": {"type": "string"}}),
    }
)
_JOB_FACETS = _facets({"jobType": _object({"processingType": _TEXT, "integration": _TEXT}, {"jobType": _TEXT})})
_WRITTEN = _facets({"outputStatistics": _object({}, {"rowCount": _COUNT, "size": _COUNT, "fileCount": _COUNT})})
_INPUT = _object({"namespace": _TEXT, "name": _TEXT}, {"facets": _DATASET_FACETS, "inputFacets": _facets({})})
_OUTPUT = _object({"namespace": _TEXT, "name": _TEXT}, {"facets": _DATASET_FACETS, "outputFacets": _WRITTEN})
RUN_EVENT: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {"field": _FIELD},
    **_object(
        {
            "eventTime": _TIME,
            "producer": _URI,
            "schemaURL": _URI,
            "run": _object({"runId": _UUID}, {"facets": _RUN_FACETS}),
            "job": _object({"namespace": _TEXT, "name": _TEXT}, {"facets": _JOB_FACETS}),
        },
        {
            "eventType": {"enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
            "inputs": {"type": "array", "items": _INPUT},
            "outputs": {"type": "array", "items": _OUTPUT},
        },
    ),
}


def mistakes(event: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with a run event; none where it is as the specification asks."""
    checker = Draft202012Validator(RUN_EVENT, format_checker=FormatChecker())
    return sorted(f"{error.json_path}: {error.message}" for error in checker.iter_errors(event))
