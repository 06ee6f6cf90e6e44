"""The jobs of a deployment as a Databricks Asset Bundle, for teams that deploy by CI. Pure."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from demux.core.control.deployment_record import record_folder
from demux.core.errors import SettingsInvalid
from demux.core.settings.settings import Settings
from demux.core.settings.source import CleanUp
from install_workflow.databricks.jobs.job import OWNER_TAG, ROOT_TAG, Job, root_tag

# the first line of every file of a bundle
HEAD = "# Written by `demux export bundle`, and again by the next one: change demux.yml in place of this file.\n"
_PART = re.compile(r"\$\{part:(\w+)\}")
# what no reader of YAML takes for anything but text
_PLAIN = re.compile(r"(?!(?:true|false|yes|no|on|off|null|y|n)$)[A-Za-z]\w*", re.ASCII | re.IGNORECASE)
# a deployment's name has 40 characters at most
_DEV, _MAX_NAME = "-dev", 40
# beside a bucket or container there is only that of someone else
_BUCKET = re.compile(r"\w[\w+.-]*://[^/]+/*")
# where a value may be a variable
_VARIABLE_FIELDS = frozenset({"parameters", "whl", "dependencies", "node_type_id"})
_PROD_ROOT = "/Workspace/Users/${workspace.current_user.userName}/.bundle/${bundle.name}/${bundle.target}"


class _BundleVariable(NamedTuple):
    """A variable of the bundle: the expression before its value in a job, and the values of the two targets."""

    name: str
    description: str
    before: tuple[str, ...]
    value: str
    dev: str


def require_exportable(settings: Settings) -> None:
    """Let settings pass that a bundle can have.

    Raises:
        SettingsInvalid: its jobs would change themselves, or its target dev has no root apart from prod's.
    """
    if settings.databricks.auto_apply:
        raise SettingsInvalid(
            "A bundle cannot have databricks.auto_apply: its jobs would be changed outside of the bundle by a task.",
            "Set databricks.auto_apply to false and take new games by `demux export bundle --discovered` and a deploy, "
            "or install the jobs by `demux apply` in place of a bundle.",
        )
    if _BUCKET.fullmatch(settings.root):
        raise SettingsInvalid(
            f"The root {settings.root} is all of its storage, so the bundle's target dev has no root apart from it.",
            "Set root to a folder in it.",
            root=settings.root,
        )


def bundle_files(jobs: Iterable[Job], settings: Settings, wheel: str) -> dict[str, str]:
    """Return the bundle's files by path: databricks.yml, and resources/<part>.yml for each job.

    The target prod is what `apply` would install. The target dev has a root, a name and a catalog of its own, so that
    it touches nothing of prod's.

    Args:
        jobs: what `make_jobs` returned for these settings and this wheel.

    Raises:
        SettingsInvalid: a value has `${`, which a bundle would replace; or as `require_exportable`.
    """
    require_exportable(settings)
    variables = _variables(settings, wheel)
    texts = {before + each.value: before + _var(each.name) for each in variables for before in each.before}
    files = {
        f"resources/{job.part}.yml": {"resources": {"jobs": {_key(settings, job.part): _job(job, settings, texts)}}}
        for job in jobs
    }
    return {path: _yaml(content) for path, content in {"databricks.yml": _main(settings, variables), **files}.items()}


def _variables(settings: Settings, wheel: str) -> list[_BundleVariable]:
    databricks, clean = settings.databricks, settings.archive.clean
    name, node, catalog = databricks.name or "", databricks.cluster.node_type, settings.tables.catalog
    dev_name, dev_root = name[: _MAX_NAME - len(_DEV)] + _DEV, f"{settings.root.rstrip('/')}_dev"
    record, dev_record = (record_folder(databricks.wheel_path or "", each) for each in (name, dev_name))
    variables = [
        _BundleVariable("name", "Name of the deployment.", (), name, dev_name),
        _BundleVariable("root", "Folder or URI of all tables.", ("root=",), settings.root, dev_root),
        _BundleVariable("root_tag", "A hash of the root.", (), root_tag(settings.root), root_tag(dev_root)),
        _BundleVariable("record", "Folder of the deployment's record.", ("",), record, dev_record),
        _BundleVariable("wheel", "Where the wheel is.", ("",), wheel, wheel),
    ]
    if node is not None:
        variables.append(_BundleVariable("node_type", "Node type of the clusters.", ("",), node, node))
    if catalog is not None:
        variables.append(
            _BundleVariable("catalog", "Catalog of the tables.", ("tables.catalog=",), catalog, f"{catalog}_dev")
        )
    if clean is not CleanUp.KEEP:
        # what dev takes away, prod would never see
        keep = CleanUp.KEEP.value
        variables.append(
            _BundleVariable("clean", "What becomes of archived files.", ("archive.clean=",), clean.value, keep)
        )
    return variables


def _main(settings: Settings, variables: Iterable[_BundleVariable]) -> dict[str, Any]:
    declared = {each.name: {"description": each.description, "default": each.value} for each in variables}
    changed = {each.name: each.dev for each in variables if each.dev != each.value}
    # a bundle in development would let four runs of a job go at once
    presets = {"jobs_max_concurrent_runs": 1}
    return {
        "bundle": {"name": f"protobuf_demux_{settings.databricks.name}"},
        "include": ["resources/*.yml"],
        "variables": declared,
        "targets": {
            "dev": {"mode": "development", "default": True, "presets": presets, "variables": changed},
            "prod": {"mode": "production", "workspace": {"root_path": _PROD_ROOT}},
        },
    }


def _job(job: Job, settings: Settings, texts: Mapping[str, str]) -> dict[str, Any]:
    written: dict[str, Any] = _replaced("", job.settings, settings, texts)
    if job.permissions:
        entries = [{each.kind.value: each.principal, "level": each.level.value} for each in job.permissions]
        written["permissions"] = _replaced("permissions", entries, settings, texts)
    return written


def _replaced(name: str, value: object, settings: Settings, texts: Mapping[str, str]) -> Any:
    """The value of the field with variables and references as a bundle has them."""
    match value:
        case Mapping():
            return {key: _replaced(key, each, settings, texts) for key, each in value.items()}
        case list() | tuple():
            return [_replaced(name, each, settings, texts) for each in value]
        case str():
            return _replaced_text(name, value, settings, texts)
        case _:
            return value


def _replaced_text(name: str, text: str, settings: Settings, texts: Mapping[str, str]) -> str:
    if name == "job_id" and (found := _PART.fullmatch(text)):
        return f"${{resources.jobs.{_key(settings, found[1])}.id}}"
    if name == OWNER_TAG:
        return _var("name")
    if name == ROOT_TAG:
        return _var("root_tag")
    if "${" in text:
        raise SettingsInvalid(
            f"A bundle would replace the expression ${{…}} of {name}: {text!r}.",
            "Write it another way, or install the jobs by `demux apply`.",
            field=name,
        )
    # a tag, an e-mail address or a property may read like a node type
    return texts.get(text, text) if name in _VARIABLE_FIELDS else text


def _key(settings: Settings, part: str) -> str:
    return f"{settings.databricks.name}_{part}"


def _var(name: str) -> str:
    return f"${{var.{name}}}"


def _yaml(content: Mapping[str, object]) -> str:
    yaml, written = YAML(), io.StringIO()
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump(_quoted(content), written)
    return HEAD + written.getvalue()


def _quoted(value: object) -> object:
    match value:
        case Mapping():
            return {_quoted(key): _quoted(each) for key, each in value.items()}
        case list():
            return [_quoted(each) for each in value]
        case str() if not _PLAIN.fullmatch(value):
            return DoubleQuotedScalarString(value)
        case _:
            return value
