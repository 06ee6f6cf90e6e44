"""Globally unique schema ids, which only some registries give."""

from __future__ import annotations

from demux.core.errors import SchemaUnknown


def no_guids(where: str, guid: str) -> SchemaUnknown:
    """Return the error of a registry that gives no GUIDs."""
    return SchemaUnknown(
        f"The registry {where} gives no GUIDs, so it has no schema {guid}.",
        "Name under `registries` the registry that the producer uses, then replay the quarantine.",
        guid=guid,
    )
