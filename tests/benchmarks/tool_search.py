"""Compare our search for tools with that of FastMCP: ``python -m tests.benchmarks.tool_search``.

The functions and questions are those of the Berkeley Function Calling Leaderboard. A catalogue contains all functions
with different names; the questions are those of which the leaderboard states which functions answer them. Half of the
questions were used to choose the weights of the index; the figures are of the other half.

The command makes an environment with the leaderboard, a tokenizer, and the vocabulary of one that litellm contains,
once. No code of the leaderboard or of litellm runs.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any, Final

import attrs
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools import Tool as FastMCPTool

from neuroscript import ToolIndex, ToolInfo, ToolPolicy, ToolSpec, spec_from_schema
from neuroscript.interop.mcp import to_mcp
from neuroscript.interop.mcp.server.tool_search import ToolSearch, model_text
from neuroscript.names import to_snake_case

ROOT: Final = Path(__file__).resolve().parents[2]
ENVIRONMENT: Final = ROOT / f".venv-{sys.version_info.major}.{sys.version_info.minor}-bfcl"
DATA_PACKAGES: Final = ("bfcl-eval==2026.3.23", "litellm==1.110.2")
"""Packages of which only data files are used, so they are installed without what they depend on."""
TOKENIZER: Final = "tiktoken==0.14.0"
ENCODING: Final = "o200k_base"
PAGE: Final = ROOT / "docs" / "how-to" / "offer-many-tools.md"
RESULTS: Final = PAGE.with_suffix(".json")
"""The figures that the documentation states."""
BEGIN, END = "<!-- tool search: begin -->\n", "<!-- tool search: end -->\n"

RANKS: Final = (1, 5, 10)
PYTHON: Final = ("simple_python", "multiple", "parallel", "parallel_multiple")
CATALOGUES: Final[dict[str, tuple[str, ...]]] = {"the four Python categories": PYTHON, "all categories": ()}
"""The categories of each catalogue; none stands for all whose files contain functions."""

TYPES: Final = {
    **dict.fromkeys(("dict", "HashMap", "Hashtable", "object"), "object"),
    **dict.fromkeys(("tuple", "ArrayList", "Array", "array"), "array"),
    **dict.fromkeys(("float", "double", "number"), "number"),
    **dict.fromkeys(("long", "byte", "short", "Bigint", "integer"), "integer"),
    **dict.fromkeys(("Boolean", "boolean"), "boolean"),
    **dict.fromkeys(("String", "char", "string"), "string"),
}
"""JSON Schema's name for each type of the leaderboard; other types become any."""

COUNT_TOKENS: Final = """
import json, sys, tiktoken
encoding = tiktoken.get_encoding(sys.argv[1])
print(json.dumps([len(encoding.encode(text, disallowed_special=())) for text in json.load(sys.stdin)]))
"""

Figures = dict[str, Any]


@attrs.frozen
class Question:
    """A question of a user, and the canonical names of the functions that answer it."""

    id: str
    text: str
    answers: frozenset[str]

    @property
    def is_for_tuning(self) -> bool:
        """Whether it was used to choose the weights."""
        return hashlib.sha256(self.id.encode()).digest()[-1] % 2 == 0


@attrs.frozen
class Catalogue:
    """Functions with different names, as ours and as the leaderboard's, and questions.

    Attributes:
        documents: The number of functions in the files, of which many are equal or have equal names.
    """

    specs: tuple[ToolSpec, ...]
    functions: tuple[dict[str, Any], ...]
    questions: tuple[Question, ...]
    documents: int


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print the figures, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.tool_search",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}, and the table of {PAGE.name}")
    parser.add_argument("--check", action="store_true", help=f"exit 1 if a figure differs from {RESULTS.name}")
    parser.add_argument("--tuning", action="store_true", help="use the questions with which the weights were chosen")
    options = parser.parse_args(words)
    figures = measure(is_for_tuning=options.tuning)
    print("\n".join(table(figures)))
    print(json.dumps(figures["times"]))
    if options.write:
        write(figures)
    return int(options.check and without_times(figures) != without_times(json.loads(RESULTS.read_text())))


def measure(*, is_for_tuning: bool = False) -> Figures:
    """Return the figures of both catalogues."""
    python, data = environment()
    figures: Figures = {"encoding": ENCODING, "packages": [*DATA_PACKAGES, TOKENIZER], "catalogues": {}, "times": {}}
    for name, categories in CATALOGUES.items():
        catalogue = read(data, categories)
        questions = [each for each in catalogue.questions if each.is_for_tuning == is_for_tuning]
        started = time.perf_counter()
        index = ToolIndex(catalogue.specs)
        seconds = time.perf_counter() - started
        ours, times = recalls(questions, lambda text, index=index: [spec.full_name for spec in index.search(text, 10)])
        theirs, their_times = recalls(questions, fastmcp_search(catalogue))
        figures["catalogues"][name] = {
            "documents": catalogue.documents,
            "functions": len(catalogue.specs),
            "questions": len(questions),
            "neuroscript": ours,
            "FastMCP": theirs,
            "tokens": tokens(python, catalogue.specs, index, questions),
        }
        figures["times"][name] = {
            "index seconds": round(seconds, 3),
            "query ms": round(1_000 * median(times), 2),
            "FastMCP query ms": round(1_000 * median(their_times), 2),
        }
    return figures


def recalls(questions: Sequence[Question], search: Callable[[str], list[str]]) -> tuple[dict[str, float], list[float]]:
    """Return the mean share of the right functions among the first results, by their number, and the seconds."""
    shares: dict[str, list[float]] = {str(rank): [] for rank in RANKS}
    seconds = []
    for question in questions:
        started = time.perf_counter()
        found = search(question.text)
        seconds.append(time.perf_counter() - started)
        for rank in RANKS:
            shares[str(rank)].append(len(question.answers.intersection(found[:rank])) / len(question.answers))
    return {rank: round(mean(each), 4) for rank, each in shares.items()}, seconds


def fastmcp_search(catalogue: Catalogue) -> Callable[[str], list[str]]:
    """Return a search with FastMCP's transform over the same functions, under their original names."""
    transform = BM25SearchTransform(max_results=max(RANKS))
    tools = [
        FastMCPTool(name=each["name"], description=each["description"], parameters=each["parameters"])
        for each in catalogue.functions
    ]
    canonical = {each["name"]: spec.full_name for each, spec in zip(catalogue.functions, catalogue.specs, strict=True)}

    def search(text: str) -> list[str]:
        return [canonical[tool.name] for tool in asyncio.run(transform._search(tools, text))]

    return search


def tokens(
    python: str, specs: Sequence[ToolSpec], index: ToolIndex[ToolSpec], questions: Sequence[Question]
) -> Figures:
    """Return the tokens of all definitions, of the two tools, and of the results of a search, on average.

    A model reads the name, the description and the schema of each, as compact JSON.
    """
    names = {spec.full_name: each for spec, each in zip(specs, to_mcp(specs), strict=True)}
    two = ToolSearch(0).definitions([ToolInfo(spec, ToolPolicy(), "host") for spec in specs])
    results = [model_text([names[spec.full_name] for spec in index.search(each.text)]) for each in questions]
    texts = [model_text([*names.values()]), model_text(two), *results]
    library = str(Path(python).parents[1])
    vocabulary = next(Path(library).rglob("litellm/litellm_core_utils/tokenizers"))
    done = subprocess.run(
        [python, "-c", COUNT_TOKENS, ENCODING],
        input=json.dumps(texts),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "TIKTOKEN_CACHE_DIR": str(vocabulary), "PYTHONPATH": ""},
    )
    whole, search, *found = json.loads(done.stdout)
    return {
        "all": whole,
        "search and call": search,
        "result": round(mean(found)),
        "percent": round(100 * (search + mean(found)) / whole, 2),
    }


def read(data: Path, categories: Sequence[str] = ()) -> Catalogue:
    """Return the functions and questions of some categories, or of all.

    Of functions with equal names, the first one counts. Names that differ only in case or style are equal.
    """
    functions: dict[str, tuple[ToolSpec, dict[str, Any]]] = {}
    questions: list[Question] = []
    documents = 0
    for file in sorted(data.glob("BFCL_v4_*.json")):
        category = file.stem.removeprefix("BFCL_v4_")
        if (categories and category not in categories) or category == "format_sensitivity":
            continue
        answers = {each["id"]: each["ground_truth"] for each in lines(data / "possible_answer" / file.name)}
        for row in lines(file):
            for function in row.get("function", ()):
                documents += 1
                name = canonical_name(function["name"])
                if name not in functions:
                    functions[name] = spec_of(name, function), function
            if "function" in row and row["id"] in answers:
                right = frozenset(canonical_name(name) for call in answers[row["id"]] for name in call)
                text = " ".join(turn["content"] for turn in row["question"][0] if turn["role"] == "user")
                questions.append(Question(row["id"], text, right))
    specs, originals = zip(*functions.values(), strict=True)
    return Catalogue(specs, originals, tuple(questions), documents)


def lines(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file of the leaderboard, or nothing if there is no such file."""
    if file.exists():
        yield from (json.loads(line) for line in file.read_text().splitlines() if line.strip())


def canonical_name(name: str) -> str:
    """Return the name of a function as that of a tool; functions without a module are in the group ``tools``."""
    *group, word = [to_snake_case(part) or "x" for part in name.split(".")]
    return ".".join([*(group or ["tools"]), word])


def spec_of(name: str, function: dict[str, Any]) -> ToolSpec:
    """Return a function of the leaderboard as a tool."""
    schema = {**converted(function["parameters"]), "type": "object"}
    return spec_from_schema(name, schema, description=function["description"])


def converted(node: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of the leaderboard as JSON Schema, with what a search reads: names, descriptions and choices."""
    found: dict[str, Any] = {key: node[key] for key in ("description",) if key in node}
    if node.get("type") in TYPES:
        found["type"] = TYPES[node["type"]]
    if "properties" in node:
        found["properties"] = {key: converted(each) for key, each in node["properties"].items()}
        found["required"] = [key for key in node.get("required") or () if key in found["properties"]]
    if isinstance(node.get("items"), dict):
        found["items"] = converted(node["items"])
    if node.get("enum") and found.get("type") != "array":
        found["enum"] = node["enum"]
    return found


def environment() -> tuple[str, Path]:
    """Return the interpreter of the environment, which is made if its packages have changed, and the data files."""
    python = str(ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    digest = hashlib.sha256(" ".join([*DATA_PACKAGES, TOKENIZER]).encode()).hexdigest()
    made = ENVIRONMENT / f"made-for-{digest[:12]}"
    if not made.exists():
        print(f"installing {', '.join([*DATA_PACKAGES, TOKENIZER])} …", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
        pip = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", *DATA_PACKAGES], check=True, stdout=sys.stderr)
        subprocess.run([*pip, TOKENIZER], check=True, stdout=sys.stderr)
        made.touch()
    return python, next(ENVIRONMENT.rglob("bfcl_eval/data"))


def table(figures: Figures) -> Iterator[str]:
    """Yield the lines of a Markdown table with a row for each catalogue and search."""
    yield "| catalogue | search | recall@1 | recall@5 | recall@10 |"
    yield "|---|---|---|---|---|"
    for name, each in figures["catalogues"].items():
        size = f"{name}: {each['functions']:,} functions, {each['questions']:,} questions"
        for search in ("neuroscript", "FastMCP"):
            cells = (f"{100 * each[search][str(rank)]:.1f} %" for rank in RANKS)
            yield f"| {size} | {search} | {' | '.join(cells)} |"
    yield ""
    yield "| catalogue | all definitions | the two tools | results of a search | share |"
    yield "|---|---|---|---|---|"
    for name, each in figures["catalogues"].items():
        count = each["tokens"]
        cells = [f"{count[key]:,}" for key in ("all", "search and call", "result")]
        yield f"| {name} | {' | '.join(cells)} | {count['percent']:.1f} % |"


def write(figures: Figures) -> None:
    """Write the stored figures, and the table of the page."""
    RESULTS.write_text(json.dumps(figures, indent=1) + "\n")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    text = "\n".join(table(figures))
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n\n{END}{rest.partition(END)[2]}")


def without_times(figures: Figures) -> Figures:
    """Return the figures that every machine measures alike."""
    return {key: each for key, each in figures.items() if key != "times"}


if __name__ == "__main__":
    sys.exit(main())
