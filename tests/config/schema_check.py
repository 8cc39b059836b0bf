"""Checks configs/schema.json with a validator: it accepts every config in configs/ and rejects
mistakes.

    python3 tests/config/schema_check.py CONFIGS

Needs the module jsonschema (Debian: python3-jsonschema); exit 77 (skipped) without it."""
import glob
import json
import os
import re
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: no module jsonschema (package python3-jsonschema)")
    sys.exit(77)

# Texts of configs, each with True when the schema must accept it.
CASES = [
    ({}, True),
    ({"run": {"steps": 10}}, True),
    ({"run": {"steps": None, "folder": None}}, True),
    ({"run": {"stesp": 10}}, False),
    ({"run": {"steps": "10"}}, False),
    ({"run": {"steps": 0.5}}, False),
    ({"run": {"steps": -1}}, False),
    ({"run": {"replicas": 2, "sync_replicas": True, "parameter_servers": 0}}, True),
    ({"run": {"replicas": -1}}, False),
    ({"run": {"sync_replicas": False, "parameter_servers": 1}}, True),
    ({"run": {"sync_replicas": 0}}, False),
    ({"model": {"quantize_delay": 0}}, True),
    ({"model": {"quantize_delay": -2}}, False),
    ({"model": {"name": "lenet", "keep_prob": 0.5}}, True),
    ({"model": {"name": "lenett"}}, False),
    ({"schedule": {"policy": "cosine"}}, True),
    ({"schedule": {"policy": "cosinus"}}, False),
    ({"optim": {"name": "adam", "beta1": 2}}, False),
    ({"input": {"size": 224}}, True),
    ({"input": {"size": [224, 192]}}, True),
    ({"input": {"size": "large"}}, False),
    ({"init": {"exclude_scopes": ["a", "b"]}}, True),
    ({"init": {"exclude_scopes": [1]}}, False),
    ({"devices": ["cpu", {"name": "vulkan:0", "share": 2}]}, True),
    ({"devices": [{"nam": "cpu"}]}, False),
    ({"runn": {}}, False),
    ({"task": "cooking"}, False),
    ({"$schema": "schema.json", "base": "base/run.json", "description": "a note"}, True),
]


def read(path):
    """A config's text without comments. No config in configs/ has // inside a string."""
    with open(path, encoding="utf-8") as file:
        return json.loads(re.sub(r"(?m)^\s*//.*$|\s//\s.*$", "", file.read()))


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    failed = 0
    paths = glob.glob(os.path.join(folder, "**", "*.json"), recursive=True)
    paths = sorted(p for p in paths if os.path.basename(p) != "schema.json")
    for path in paths:
        for error in validator.iter_errors(read(path)):
            print(f"{path}: {'.'.join(map(str, error.path))}: {error.message}")
            failed = 1
    for value, right in CASES:
        if validator.is_valid(value) != right:
            print(f"{json.dumps(value)}: the schema {'refuses' if right else 'allows'} it")
            failed = 1
    undescribed = [f"{section}.{key}" for section, v in schema["properties"].items()
                   for key, option in v.get("properties", {}).items()
                   if not (option.get("description")
                           or all(o.get("description") for o in option.get("anyOf", [{}])))]
    if undescribed:
        print("without a description: " + ", ".join(undescribed))
        failed = 1
    if len(paths) < 3:
        print(f"{folder}: only {len(paths)} configs")
        failed = 1
    print(f"{len(paths)} configs, {len(CASES)} cases")
    return failed


sys.exit(main())
