"""The JSON Schema of a pipeline file, for editors."""

import copy
import inspect
from typing import Any

from sluice.checks.base import Check
from sluice.checks.registry import REGISTRY
from sluice.pipeline.model import Pipeline

_DURATION = {"type": ["string", "number"], "pattern": r"^\s*\d+(\.\d+)?\s*[smhd]?\s*$"}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a pipeline file as people write it, for editors."""
    schema = Pipeline.model_json_schema(by_alias=True)
    definitions = schema["$defs"]
    written = []
    for name, cls in REGISTRY.items():
        definition = definitions[cls.__name__]
        for alias, renamed in {name: {}, **cls.aliases}.items():
            written.append(_written(alias, cls, definition, renamed))
    definitions["Table"]["properties"]["checks"]["items"] = {"anyOf": written}
    definitions["Table"]["properties"]["checks"].pop("description", None)
    for cls in REGISTRY.values():
        definitions.pop(cls.__name__)
    definitions["Write"]["properties"]["timeout"] = _DURATION
    definitions["Approval"]["properties"]["timeout"] = _DURATION
    properties = schema["properties"]
    properties["approval"] = {"anyOf": [{"const": "auto"}, {"$ref": "#/$defs/Approval"}, {"type": "null"}]}
    tables = properties["tables"]
    tables["additionalProperties"] = {"anyOf": [tables["additionalProperties"], {"type": "null"}]}
    properties["tables"] = {"anyOf": [tables, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Sluice pipeline", **schema}


def _written(alias: str, cls: type[Check], definition: dict[str, Any], renamed: Any) -> dict[str, Any]:
    """Return the schema of one check as people write it: its name, and its parameters or their shorthand."""
    back = {new: old for old, new in renamed.items()}
    constants = {old[1:] for old in renamed if old.startswith("+")}
    fields = copy.deepcopy({key: each for key, each in definition["properties"].items() if key not in ("check", "at")})
    named = {back.get(key, key): each for key, each in fields.items() if key not in constants}
    if "column" in fields:
        named["columns"] = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    for key in ("warn_if", "fail_if"):
        if key in named:
            named[key] = {"type": ["string", "number"]}
    if "max_age" in named:
        named["max_age"] = _DURATION
    parameters = {"type": "object", "properties": named, "additionalProperties": False}
    shorthand = {"type": ["string", "number", "boolean", "array", "null"]}
    one = {
        "type": "object",
        "properties": {alias: {"anyOf": [parameters, shorthand]}},
        "required": [alias],
        "additionalProperties": False,
        "description": " ".join((inspect.getdoc(cls) or "").split()),
    }
    return {"anyOf": [one, {"const": alias}]} if not definition.get("required", ["check"]) else one
