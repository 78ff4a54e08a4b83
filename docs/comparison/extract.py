#!/usr/bin/env python3
"""Extract the calls with a wrong argument type from recorded model output: ``extract.py CLONE``.

CLONE is a clone of https://github.com/HuanzhiMao/BFCL-Result. It contains the responses of 71 models to the questions
of the Berkeley Function Calling Leaderboard, and the verdict of its checker on each response. The script reads the
latest date, and the two categories of Python functions in which one call is expected. It writes ``model_calls.json``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

# ruff: noqa: S603, S607, T201

SCORES: Final = "2024-08-11/score"
CATEGORIES: Final = ("simple", "multiple_function")
ERRORS: Final = ("type_error:simple", "type_error:nested", "simple_function_checker:unexpected_param")
OUTPUT: Final = Path(__file__).with_name("model_calls.json")


def main(clone: str) -> None:
    """Write the distinct calls, each with the number of responses that contain it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", clone, *words], capture_output=True, text=True, check=True).stdout

    files = [
        name
        for name in git("ls-tree", "-r", "--name-only", "HEAD", f"{SCORES}/").splitlines()
        if Path(name).name.removesuffix("_score.json") in CATEGORIES
    ]
    counted: Counter[str] = Counter()
    responses, faulty_models = 0, set()
    for name in files:
        summary, *failures = (json.loads(line) for line in git("show", f"HEAD:{name}").splitlines() if line)
        responses += summary["total_count"]
        for failure in failures:
            if failure["error_type"] in ERRORS:
                counted[json.dumps(call_of(failure), sort_keys=True)] += 1
                faulty_models.add(failure["model_name"])
    data: dict[str, Any] = {
        "source": f"https://github.com/HuanzhiMao/BFCL-Result at {git('rev-parse', 'HEAD').strip()}, {SCORES}",
        "responses": responses,
        "models": len({Path(name).parent for name in files}),
        "models with wrong types": len(faulty_models),
        "calls": [json.loads(call) | {"responses": count} for call, count in counted.most_common()],
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in data.items() if key != "calls"]
    calls = ",\n".join(f"  {json.dumps(each)}" for each in data["calls"])
    lines.append(f' "calls": [\n{calls}\n ]')
    OUTPUT.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{counted.total()} of {responses} responses, {len(counted)} distinct calls")
    print("\n".join(table_of_mistakes(data["calls"])))


def call_of(failure: dict[str, Any]) -> dict[str, Any]:
    """Return the function, what the model sent, and the values that the checker accepts."""
    ((name, accepted),) = failure["possible_answer"].items()
    ((_, arguments),) = failure["model_result_decoded"][0].items()
    functions = failure["prompt"]["function"]
    functions = functions if isinstance(functions, list) else [functions]
    (parameters,) = (each["parameters"] for each in functions if each["name"] == name)
    return {
        "function": name,
        "parameters": without_descriptions(parameters),
        "arguments": arguments,
        "accepted": accepted,
    }


def without_descriptions(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a schema that decides about types."""
    result: dict[str, Any] = {key: schema[key] for key in ("type", "enum", "required") if key in schema}
    if "properties" in schema:
        result["properties"] = {name: without_descriptions(each) for name, each in schema["properties"].items()}
    if "items" in schema:
        result["items"] = without_descriptions(schema["items"])
    return result


def table_of_mistakes(calls: list[dict[str, Any]]) -> list[str]:
    """Return the lines of a Markdown table: each kind of mistake, with its responses and distinct calls."""
    responses: Counter[str] = Counter()
    distinct: Counter[str] = Counter()
    for call in calls:
        for kind in set(mistakes(call)):
            responses[kind] += call["responses"]
            distinct[kind] += 1
    lines = ["| what the model sent | responses | distinct calls |", "|---|---|---|"]
    kinds = sorted(responses, key=lambda kind: (kind == OTHER, -responses[kind]))
    return lines + [f"| {kind} | {responses[kind]} | {distinct[kind]} |" for kind in kinds]


def mistakes(call: dict[str, Any]) -> Iterator[str]:
    """Yield the kind of each wrong argument of a call."""
    for name, value in call["arguments"].items():
        schema = call["parameters"]["properties"].get(name)
        if schema is None:
            yield "an unknown argument"
        elif value is None:
            yield "null"
        elif schema["type"] == "array" and type(value) is list:
            yield from wrong_items({type(each) for each in value} - {TYPES[schema["items"]["type"]]}, schema)
        elif type(value) is not TYPES[schema["type"]] and (schema["type"], type(value)) != ("float", int):
            yield WRONG_VALUES.get((schema["type"], type(value)), OTHER)


def wrong_items(types: set[type], schema: dict[str, Any]) -> Iterator[str]:
    """Yield the kind of a list with items of other types than the declared one."""
    if types:
        (found,) = types
        yield WRONG_ITEMS.get((schema["items"]["type"], found), OTHER)


TYPES: Final = {"string": str, "integer": int, "float": float, "boolean": bool, "array": list, "dict": dict}
OTHER: Final = "something else"
WRONG_VALUES: Final = {
    ("boolean", str): 'a string for a boolean, such as `"True"`',
    ("array", str): "a string for a list, such as `\"['10', '9']\"` or `\"War\"`",
    ("dict", str): 'a string for an object, such as `"unknown"`',
    ("string", int): "a number for a string",
}
WRONG_ITEMS: Final = {
    ("float", int): "whole numbers in a list of floats, such as `[1, 3]`",
    ("float", str): "strings in a list of numbers",
    ("integer", str): "strings in a list of numbers",
    ("integer", type(None)): "null in a list of integers",
}


if __name__ == "__main__":
    main(sys.argv[1])
