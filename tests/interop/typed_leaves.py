"""Count the leaves of public schemas that specs type: the tools of eight MCP servers and GitHub's OpenAPI description.

Run ``python -m tests.interop.typed_leaves DIRECTORY``. It installs the packages at the versions below in the directory,
with pip and npm, unless they are there. A leaf is a place of a scalar in a schema that names its type. It is typed if
the spec has the same type at that place, so that a value is coerced there and does not depend on a schema validator.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from neuroscript import ArgSpec, ArgType, ToolSpec, spec_to_schema
from neuroscript.coercion.schema_inspection import check_schema, resolve_pointer
from neuroscript.coercion.types import ELEMENTS, VALUES
from neuroscript.interop.mcp.client.accepted_definitions import Definition
from neuroscript.interop.mcp.client.definition import inspection_tool
from neuroscript.interop.openapi import from_openapi

PYTHON_SERVERS: Final = {
    "mcp-server-time": "2026.10.19",
    "mcp-server-fetch": "2026.10.24",
    "mcp-server-git": "2026.10.19",
}
NODE_SERVERS: Final = {
    "@modelcontextprotocol/server-filesystem": "2026.8.31",
    "@modelcontextprotocol/server-memory": "2026.8.31",
    "@modelcontextprotocol/server-everything": "2026.8.31",
    "@modelcontextprotocol/server-sequential-thinking": "2026.8.31",
    "@playwright/mcp": "0.0.83",
}
DESCRIPTION: Final = ("@octokit/openapi", "23.0.2", "package/generated/api.github.com.json")

TYPES: Final = {
    "string": ArgType.STRING,
    "integer": ArgType.INT,
    "number": ArgType.FLOAT,
    "boolean": ArgType.BOOL,
}
OUTER: Final = {**TYPES, "object": ArgType.MAP, "array": ArgType.SLICE_ANY}
SECONDS: Final = 120


class Leaves:
    """The leaves of one schema, each with whether a spec types it.

    Attributes:
        root: The schema or description that references point into.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root

    def of(self, schema: Any, spec: ArgSpec | None, above: tuple[int, ...] = ()) -> Iterator[bool]:
        """Yield whether each leaf is typed. A recursive schema has the leaves of its first level."""
        if not isinstance(schema, dict) or id(schema) in above:
            return
        inside = (*above, id(schema))
        if "$ref" in schema:
            yield from self.of(resolve_pointer(self.root, schema["$ref"]), spec, inside)
            return
        for word in ("anyOf", "oneOf", "allOf"):
            if isinstance(schema.get(word), list) and "type" not in schema:
                yield from self._alternatives(word, schema[word], spec, inside)
                return
        words = schema.get("type", [])
        words = [each for each in (words if isinstance(words, list) else [words]) if each != "null"]
        for word in words:
            yield from self._typed(word, schema, spec if len(words) == 1 else alternative(spec, word), inside)

    def _alternatives(self, word: str, ways: list[Any], spec: ArgSpec | None, above: tuple[int, ...]) -> Iterator[bool]:
        left = [way for way in ways if not (isinstance(way, dict) and way.get("type") == "null")]
        if word == "allOf" or len(left) < 2:
            for way in left:
                yield from self.of(way, spec, above)
            return
        rest = [*getattr(spec, "any_of", ())]
        for way in left:
            head: Any = way
            while isinstance(head, dict) and "$ref" in head:
                head = resolve_pointer(self.root, head["$ref"])
            kind = head.get("type") if isinstance(head, dict) else None
            fitting = [each for each in rest if isinstance(kind, str) and outer(each) is OUTER.get(kind)]
            names = {*head.get("properties", ())} if isinstance(head, dict) else set()
            best = max(fitting, key=lambda each: len(names & {key.name for key in each.keys}), default=None)
            if (
                best is None
                and spec is not None
                and not rest
                and isinstance(kind, str)
                and outer(spec) is OUTER.get(kind)
            ):
                best = spec
            yield from self.of(way, best, above)

    def _typed(self, word: str, schema: dict[str, Any], spec: ArgSpec | None, above: tuple[int, ...]) -> Iterator[bool]:
        if word in TYPES:
            yield spec is not None and spec.type is TYPES[word]
        elif word == "array":
            items, fixed = schema.get("items"), schema.get("prefixItems")
            if isinstance(fixed, list):
                specs = getattr(spec, "prefix_items", ()) or [None] * len(fixed)
                for each, rule in zip(fixed, specs, strict=False):
                    yield from self.of(each, rule, above)
            yield from self.of(items, item_of(spec), above)
        elif word == "object":
            keys = {key.name: key for key in spec.keys} if spec is not None else {}
            for name, each in schema.get("properties", {}).items():
                yield from self.of(each, keys.get(name), above)
            yield from self.of(schema.get("additionalProperties"), value_of(spec), above)


def outer(spec: ArgSpec) -> ArgType:
    """Return the type of a spec without its parts."""
    return ArgType.SLICE_ANY if spec.type in ELEMENTS else ArgType.MAP if spec.type in VALUES else spec.type


def alternative(spec: ArgSpec | None, word: str) -> ArgSpec | None:
    """Return the alternative of a union for the name of a type."""
    return next((each for each in getattr(spec, "any_of", ()) if outer(each) is OUTER.get(word)), None)


def item_of(spec: ArgSpec | None) -> ArgSpec | None:
    """Return the spec of the items of a list."""
    if spec is None or spec.type not in ELEMENTS:
        return None
    own = getattr(spec, "items", None)
    return own or ArgSpec("item", ELEMENTS[spec.type], keys=spec.keys, extra_keys=spec.extra_keys)


def value_of(spec: ArgSpec | None) -> ArgSpec | None:
    """Return the spec of the values of a map."""
    if spec is None or spec.type not in VALUES:
        return None
    return getattr(spec, "value_spec", None) or ArgSpec("value", VALUES[spec.type])


def argument_leaves(spec: ToolSpec) -> Iterator[bool]:
    """Yield whether each leaf of the arguments of a tool is typed."""
    schema = spec_to_schema(spec, exact=False)
    leaves = Leaves(schema)
    for arg in spec.args:
        yield from leaves.of(schema["properties"][arg.name], arg)


def result_leaves(spec: ToolSpec, root: Mapping[str, Any], schema: Any) -> Iterator[bool]:
    """Yield whether each leaf of the result of a tool is typed."""
    kind = ArgType.ANY if spec.return_type in (ArgType.VOID, ArgType.NIL) else spec.return_type
    yield from Leaves(root).of(schema, getattr(spec, "returns", None) or ArgSpec("result", kind))


def needs_validator(spec: ToolSpec) -> bool:
    """Return whether the arguments of a tool have constraints that its spec cannot express."""
    return bool(spec.schema) and check_schema(spec.schema).asks_more


def mcp_rows(tools: Iterable[Mapping[str, Any]]) -> Iterator[tuple[list[bool], list[bool], bool]]:
    """Yield the leaves of the arguments and of the result of each tool, and whether it needs a validator."""
    for data in tools:
        spec = inspection_tool(Definition(data["name"], dict(data)), "g").spec
        output = data.get("outputSchema")
        results: list[bool] = []
        if output is not None:
            properties = output.get("properties", {})
            is_wrapped = [*properties] == ["result"] and output.get("required") == ["result"]
            results = [*result_leaves(spec, output, properties["result"] if is_wrapped else output)]
        yield [*argument_leaves(spec)], results, needs_validator(spec)


def openapi_rows(document: dict[str, Any]) -> Iterator[tuple[list[bool], list[bool], bool]]:
    """Yield the same for each operation of a description."""
    loaded = from_openapi(document, group="g", skip=True)
    operations = {
        data.get("operationId", "").replace("/", "_").replace("-", "_"): data
        for item in document["paths"].values()
        for data in item.values()
        if isinstance(data, dict)
    }
    for tool in loaded.toolset:
        spec = tool.spec
        schema = response_schema(document, operations.get(spec.name, {}))
        yield [*argument_leaves(spec)], [*result_leaves(spec, document, schema)], needs_validator(spec)


def response_schema(document: dict[str, Any], operation: Mapping[str, Any]) -> Any:
    """Return the only JSON schema of the successful responses of an operation, or None."""
    found = []
    for status, response in operation.get("responses", {}).items():
        node = resolve_pointer(document, response["$ref"]) if "$ref" in response else response
        if status.startswith("2"):
            found += [media.get("schema") for name, media in node.get("content", {}).items() if "json" in name]
    return found[0] if len(found) == 1 else None


# Documents


def install(directory: Path) -> None:
    """Install the packages at their versions, unless they are there."""
    if not (directory / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", directory / "python"], check=True)
        wanted = [f"{name}=={version}" for name, version in PYTHON_SERVERS.items()]
        subprocess.run([directory / "python/bin/pip", "install", "--quiet", *wanted], check=True)
    if not (directory / "node_modules").exists():
        wanted = [f"{name}@{version}" for name, version in NODE_SERVERS.items()]
        npm = ["npm", "install", "--silent", "--ignore-scripts", "--prefix", directory]
        subprocess.run([*npm, *wanted], check=True)
        subprocess.run(
            ["npm", "pack", "--silent", "@".join(DESCRIPTION[:2])], cwd=directory, check=True, stdout=subprocess.DEVNULL
        )


def commands(directory: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the command of each server."""
    for name, version in PYTHON_SERVERS.items():
        yield f"{name} {version}", [f"{directory}/python/bin/{name}"]
    for name, version in NODE_SERVERS.items():
        word = "playwright-mcp" if name == "@playwright/mcp" else name.replace("@modelcontextprotocol/", "mcp-")
        extra = [str(directory)] if name.endswith("filesystem") else []
        yield f"{name} {version}", [f"{directory}/node_modules/.bin/{word}", *extra]


def listed_tools(command: list[str], directory: Path) -> list[dict[str, Any]]:
    """Return the tools that a server lists."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=directory
    ) as server:

        def request(number: int, method: str, **params: Any) -> Any:
            send(id=number, method=method, params=params)
            assert server.stdout is not None
            for line in server.stdout:
                message = json.loads(line)
                if message.get("id") == number and "method" not in message:
                    return message["result"]
            raise RuntimeError(method)

        def send(**message: Any) -> None:
            assert server.stdin is not None
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            server.stdin.flush()

        client = {"name": "typed-leaves", "version": "1"}
        request(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        send(method="notifications/initialized")
        tools: list[dict[str, Any]] = request(2, "tools/list")["tools"]
        server.kill()
        return tools


def github(directory: Path) -> dict[str, Any]:
    """Return GitHub's OpenAPI description."""
    name, version, member = DESCRIPTION
    archive = f"{name.removeprefix('@').replace('/', '-')}-{version}.tgz"
    with tarfile.open(directory / archive) as package:
        file = package.extractfile(member)
        assert file is not None
        found: dict[str, Any] = json.load(file)
        return found


def table(rows: Iterable[tuple[list[bool], list[bool], bool]]) -> str:
    """Return the counts of one source: tools, typed leaves of arguments and results, and tools with a validator."""
    count: Counter[str] = Counter()
    for arguments, results, is_validated in rows:
        count.update(tools=1, arguments=len(arguments), results=len(results), validated=int(is_validated))
        count.update(typed=sum(arguments), typed_results=sum(results))
    parts = (
        (count["typed"], count["arguments"]),
        (count["typed_results"], count["results"]),
    )
    shares = [f"{typed}/{total} ({typed / total:.1%})" if total else "-" for typed, total in parts]
    return f"{count['tools']} | {shares[0]} | {shares[1]} | {count['validated']}"


def main(directory: Path) -> None:
    """Print a table with one row for each source."""
    install(directory)
    print("source | tools | typed leaves of arguments | typed leaves of results | tools with a validator")
    every: list[tuple[list[bool], list[bool], bool]] = []
    for name, command in commands(directory):
        rows = [*mcp_rows(listed_tools(command, directory))]
        every += rows
        print(name, "|", table(rows))
    print("8 MCP servers |", table(every))
    print(f"{DESCRIPTION[0]} {DESCRIPTION[1]} |", table(openapi_rows(github(directory))))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
