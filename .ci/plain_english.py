#!/usr/bin/env python3
"""List words and sentences that do not read as plain technical English.

Usage: plain_english.py [--summary] [--max RATE] [PATH ...]

Reads Markdown (outside code blocks) and the docstrings, comments and string literals of Python files. Without a PATH
it reads everything that the project publishes. The exit status is 0 for at most RATE findings (default: 1.0) per 1,000
words, 1 for more, and 2 if there was nothing to read. Long sentences are counted in Markdown only; f-strings are read
on Python 3.11, where they are one token. The rules that it checks are in CONTRIBUTING.md.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from pathlib import Path

# ruff: noqa: E501
BANNED = {  # a pattern that begins with (?-i) is case-sensitive
    r"\bcan not\b": "cannot",
    r"\b(whoever|whosoever|nobody|somebody)\b": "name the actor",
    r"\b(mend|mends|mended|mending)\b": "fix",
    r"\b(lend|lends|lent|lending)\b": "provide",
    r"\btold of\b|\b(?:is|are|be|was|were) told\b|\btells of\b|(?<!unless )\btold\b(?! (?:apart|otherwise|not to|to)\b)": "notify / report / log",
    r"\bthe house\b|\brooms?\b(?! (?:for|in|to|left|temperature)\b)|(?<![.\w])floors?\b(?![(\[]| division)": "architecture / module / layer",
    r"\bdoors?\b": "entry point",
    r"(?<!applicable )\blaws?\b": "check",
    r"\bthe trail\b|\baudit trail\b": "audit log",
    r'(?-i:(?:^|[.;:] +|""")(?:Of|For) (?:a|an|the|each) \w+,? (?:its|it|the|there) \w+)': "inverted clause",
    r"(?<!there )\bis no (?!longer|more|way|one|need|reason|such|op\b|effect|point|doubt|limit|default)\w+": "is not a",
    r"\bnames no\b|\bthere is none\b|\bnone such\b": "unknown / unsupported",
    r"(?-i:\b(thereof|therein|thereby|hence|whence|shall|wherefore)\b)": "plain word",
    r"\bstands? (in\b(?! for)|there|beside|before|behind|above|below)\b": "is / appears",
    r"(?<!\w)a text\b(?! (?:file|field|column|editor|representation|message|block|box|area|mode|stream|instance|delta|part|content))|(?<!help )\btexts\b|\btruth values?\b": "string / boolean",
    r"\bhas to bear\b|\bmust bear\b|\bfor good\b(?! \w)": "plain word",
    r"\bSource: (issue|contract|design|reliability|performance|peers|ecosystem|upstream\.md|seed-systems)": "points outside the repository",
}
RULES = [(re.compile(pattern, re.IGNORECASE), hint) for pattern, hint in BANNED.items()]
MAX_SENTENCE_WORDS = 34
PUBLISHED = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "src", "plugins", "tests")


def read_prose(path: Path) -> list[tuple[int, str]]:
    text = path.read_text(encoding="utf-8", errors="replace")
    return read_markdown(text) if path.suffix == ".md" else read_python(text)


def read_markdown(text: str) -> list[tuple[int, str]]:
    lines, fenced = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            lines.append((number, re.sub(r"`[^`]*`|\]\([^)]*\)|<[^>]*>", " ", line)))
    return lines


def read_python(text: str) -> list[tuple[int, str]]:
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and " " in token.string):
                for offset, line in enumerate(token.string.splitlines()):
                    found.append((token.start[0] + offset, re.sub(r"`+[^`]*`+", " ", line)))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass
    return found


def long_sentences(lines: list[tuple[int, str]]) -> list[tuple[int, int]]:
    long, start, words = [], 0, 0
    for number, line in lines:
        if not line.strip() or line.lstrip().startswith(("#", "|", "-", "*", ">>>")):
            start, words = 0, 0
            continue
        for piece in re.split(r"([.:;?!](?:\s|$))", line):
            start = start or number
            words += len(re.findall(r"[A-Za-z']+", piece))
            if re.fullmatch(r"[.:;?!](?:\s|$)", piece):
                if words > MAX_SENTENCE_WORDS:
                    long.append((start, words))
                start, words = 0, 0
    return long


def main(arguments: list[str]) -> int:
    summary = "--summary" in arguments
    most = 1.0
    if "--max" in arguments:
        at = arguments.index("--max")
        most = float(arguments[at + 1])
        arguments = arguments[:at] + arguments[at + 2 :]
    project = Path(__file__).parents[1]
    roots = [Path(each) for each in arguments if not each.startswith("-")] or [project / each for each in PUBLISHED]
    files = sorted(
        file
        for root in roots
        for file in ([root] if root.is_file() else [*root.rglob("*.md"), *root.rglob("*.py")])
        if not {".venv", "node_modules", ".git", "vectors"} & set(file.parts)
        and not any(p.startswith(".venv") for p in file.parts)
    )
    total, words, worst = 0, 0, []
    for file in files:
        lines = read_prose(file)
        count = sum(len(re.findall(r"[A-Za-z']+", line)) for _, line in lines)
        hits = [(n, hint, match.group()) for n, line in lines for rule, hint in RULES for match in rule.finditer(line)]
        if file.suffix == ".md":
            hits += [(n, f"{size} words in one sentence", "") for n, size in long_sentences(lines)]
        total, words = total + len(hits), words + count
        worst.append((len(hits), file))
        if not summary:
            for number, hint, what in sorted(hits):
                print(f"{file}:{number}: {what!r}: {hint}" if what else f"{file}:{number}: {hint}")
    if summary:
        for hits, file in sorted(worst, key=lambda each: -each[0])[:25]:
            print(f"{hits:5} {file}")
    rate = 1000 * total / max(words, 1)
    print(f"{total} findings in {words} words of {len(files)} files: {rate:.1f} per 1,000 words")
    return 2 if not words else int(rate > most)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
