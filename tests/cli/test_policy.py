"""Policies on the command line: files and words stated together, what would be, what has no effect, what decides."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import ROOT, Ran, command, process, start

from neuroscript.io.user_cache import config_file

PLUGIN = '''
"""Tools that need something."""

from neuroscript import Runtime, ToolPolicy


def register(registrar):
    tools = registrar.toolset("p")

    @tools.tool(policy=ToolPolicy(capabilities=("fs:write:{path}", "fs:read:{path}")))
    def put(rt: Runtime, path: str, text: str) -> str:
        """Write a file and read it again."""
        rt.fs.write_text(path, text)
        return rt.fs.read_text(path)

    @tools.tool(policy=ToolPolicy(capabilities=("fs:read:{paths}", "env:read:HOME")))
    def many(paths: list[str]) -> int:
        """Count paths."""
        return len(paths)

    @tools.tool(policy=ToolPolicy(capabilities=("fs:read:{paths}",)))
    def few(paths: list[str]) -> int:
        """Count paths."""
        return len(paths)

    @tools.tool(policy=ToolPolicy(requires_trust=True))
    def trusted() -> bool:
        """Tell whether it runs."""
        return True

    @tools.tool(policy=ToolPolicy(requires_approval=True))
    def approved() -> bool:
        """Tell whether it runs."""
        return True
'''

REFUSED = (
    "neuroscript: p.put: needs fs:write:data/a, fs:read:data/a; "
    "grant it with --grant 'fs:write:data/a' --grant 'fs:read:data/a'\n"
)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a plugin, and with a policy that permits everything, which nobody names."""
    (tmp_path / "plugin.py").write_text(PLUGIN)
    write(tmp_path / "neuroscript.toml", "[policy]\ngrants = ['*:*:*']\ntrusted = true\npreapproved = ['p.approved']\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def call(*words: str) -> Ran:
    return command("call", "-p", "plugin.py", "--sandbox", "box", "--create", *words)


def put(*words: str) -> Ran:
    return call(*words, "p.put", "data/a", "hi")


# Which file


def test_a_file_of_the_working_directory_is_not_read_unless_it_is_named(world: Path) -> None:
    """Whoever can put a file there gives nobody anything."""
    assert put() == Ran(4, "", REFUSED)
    assert put("--policy", "neuroscript.toml") == Ran(0, "hi\n")
    assert put("--policy=neuroscript.toml") == Ran(0, "hi\n")


def test_the_file_of_the_user_is_read_where_there_is_one(world: Path, config: Path) -> None:
    """In the directory of the user's configuration; one that is named stands in its place."""
    write(config, "policy.grants = ['fs:*:data/**']")
    write(world / "other.toml", "policy.grants = ['fs:*:other/**']")

    assert put() == Ran(0, "hi\n")
    assert put("--policy", "other.toml") == Ran(4, "", REFUSED)
    assert put("--policy", os.devnull) == Ran(4, "", REFUSED)


def test_a_file_of_the_user_that_is_wrong_or_hidden_ends_the_command(world: Path, config: Path) -> None:
    """It might deny something."""
    write(config, "policy.grant = []")
    assert put() == Ran(2, "", "neuroscript: neuroscript.toml:1: policy.grant: is not known; did you mean grants?\n")
    config.unlink()
    config.symlink_to("nowhere")
    assert put() == Ran(2, "", "neuroscript: neuroscript.toml: can not be read: no such file or directory\n")
    config.unlink()
    config.mkdir()
    assert put() == Ran(2, "", "neuroscript: neuroscript.toml: can not be read: is a directory\n")


@pytest.mark.parametrize("home", [".", "config", ""])
def test_a_relative_directory_of_configuration_is_none(home: str, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be one of the working directory; where the environment has no other, the user has none."""
    for directory in ("neuroscript", "config/neuroscript", ".config/neuroscript"):
        write(world / directory / "neuroscript.toml", "policy.grants = ['*:*:*']")
    monkeypatch.setenv("XDG_CONFIG_HOME", home)
    monkeypatch.setenv("HOME", ".")

    found = config_file()

    assert found is None or (Path(found).is_absolute() and not Path(found).is_relative_to(world))


def test_a_process_reads_the_same_file(world: Path, config: Path) -> None:
    """By the environment that a shell gives it; commands that call nothing do not read it."""
    write(config, "policy.deny = ['math.*']\n")

    refused = "neuroscript: math.add: denied by the pattern 'math.*' of deny\n"
    assert process("call", "math.add", "1", "2") == Ran(4, "", refused)
    config.write_text("policy = 1")
    assert process("call", "math.add", "1", "2").code == 2
    assert process("list", "math.add").code == process("show", "math.add").code == 0


# Files and words together


def test_grants_trust_and_denials_add_up(world: Path) -> None:
    """What either denies is refused."""
    file = write(world / "a.toml", "policy.grants = ['fs:write:data/**']\npolicy.deny = ['p.many']\n")
    words = ("--policy", file)

    lacking = "neuroscript: p.put: needs fs:read:data/a; grant it with --grant 'fs:read:data/a'\n"
    assert put(*words) == Ran(4, "", lacking)
    assert put(*words, "--grant", "fs:read:data/**") == Ran(0, "hi\n")
    denied = "neuroscript: p.put: denied by the pattern 'p.p*' of deny\n"
    assert put(*words, "--grant", "fs:read:data/**", "--deny", "p.p*") == Ran(4, "", denied)
    assert call(*words, "--grant=*:*:*", "--allow", "p.many", "p.many", "[]").code == 4
    assert call(*words, "p.trusted").code == 4
    assert call(*words, "--trusted", "p.trusted") == Ran(0, "true\n")


def test_only_what_the_file_and_the_words_allow_runs(world: Path) -> None:
    """``--allow`` always means only these; it gives nothing that the file does not."""
    words = ("--policy", write(world / "a.toml", "policy.allow = ['p.put', 'p.few']\npolicy.grants = ['fs:*:*']\n"))
    todo = "to allow in the policy file, and to --allow if you pass that"
    not_allowed = f"neuroscript: p.{{0}}: no pattern of allow matches it; add 'p.{{0}}' {todo}\n"

    assert put(*words).code == call(*words, "p.few", "[]").code == 0
    assert put(*words, "--allow", "p.*").code == 0
    assert put(*words, "--allow", "p.few", "--allow", "p.pu?").code == 0
    assert put(*words, "--allow", "p.few") == Ran(4, "", not_allowed.format("put"))
    assert call(*words, "--allow", "p.*", "p.many", "[]") == Ran(4, "", not_allowed.format("many"))


def test_a_profile_is_taken_by_name(world: Path) -> None:
    """One that is not there ends the command; so does one without a file."""
    file = write(world / "a.toml", "[policy]\ngrants = ['fs:*:*']\n[policy.profiles.careful]\ndeny = ['p.put']\n")
    words = ("--policy", file, "--profile")

    assert put(*words, "careful") == Ran(4, "", "neuroscript: p.put: denied by the pattern 'p.put' of deny\n")
    told = "neuroscript: a.toml:3: policy.profiles.carefull: there is no such profile; did you mean careful?\n"
    assert put(*words, "carefull") == Ran(2, "", told)
    text = "--profile names a part of a policy file, and there is none; name it with --policy"
    assert put("--profile", "careful") == Ran(2, "", f"neuroscript: {text}\n")


def test_each_fault_of_a_file_has_a_line_of_its_own(world: Path) -> None:
    """At most twenty, and how many there are besides."""
    file = write(world / "a.toml", "[policy]\nallow = 1\n" + "".join(f"x{index} = 1\n" for index in range(30)))

    ran = put("--policy", file)

    lines = ran.err.splitlines()
    assert (ran.code, ran.out, len(lines)) == (2, "", 21)
    assert lines[0] == "neuroscript: a.toml:2: policy.allow: must be an array of texts, in brackets"
    assert lines[1:21:19] == ["neuroscript: a.toml:3: policy.x0: is not known", "neuroscript: a.toml: and 11 more"]


def test_words_that_touch_no_tool_are_warned_of(world: Path) -> None:
    """In one sentence, and the call goes on; what the file says in vain is for ``policy check`` to tell."""
    file = write(world / "a.toml", "policy.grants = ['fs:*:*', 'net:read:*']\npolicy.deny = ['q.*']\n")
    idle = ("--deny", "q.x", "--deny", "p.many", "--grant", "net:read:a.com", "--grant", "env:read:H*", "--allow", "p")
    warning = "neuroscript: warning: no tool here is touched by --allow p, --deny q.x, --grant net:read:a.com\n"

    assert put("--policy", file) == Ran(0, "hi\n")
    assert put("--policy", file, *idle, "--allow", "*.put") == Ran(0, "hi\n", warning)
    line = b'{"name": "p.put", "arguments": ["data/a", "hi"]}'
    ran = command("execute", "-p", "plugin.py", "--dry-run", "--policy", file, *idle, "--allow", "*", "-", stdin=line)
    assert (ran.code, ran.err) == (0, warning)


# What would be


def test_a_dry_run_says_what_would_become_of_a_call(world: Path) -> None:
    """With the exit code that the call would have had; nothing runs, and no sandbox is made."""
    grant = ("--grant", "fs:*:data/**", "--dry-run")

    assert put(*grant) == Ran(0, "p.put: would run (* allows it)\n")
    refused = "p.put: would be refused: needs fs:write:data/a (policy.capability, by grants)\n"
    assert put("--dry-run") == Ran(4, refused, REFUSED)
    assert call(*grant, "--deny", "*.put", "p.put") == Ran(
        4, "p.put: would be refused: is denied by the host (policy.denied, by *.put)\n"
    )
    assert call(*grant, "p.put", "x", "y", "z", "path=1") == Ran(
        3, "p.put: does not fit: expected at most 2 arguments, got 4; path: expected one value, got 2 values\n"
    )
    assert call(*grant, "p.pot") == Ran(
        2, "p.pot: would be refused: no tool is called p.pot; did you mean p.put? (tool.not_found)\n"
    )
    assert not (world / "box").exists()


def test_a_dry_run_as_json_is_the_decision(world: Path) -> None:
    """All of it, in one line."""
    ran = put("--dry-run", "--json")

    expected = {
        "tool": "p.put",
        "allowed": False,
        "rule": "grants",
        "code": "policy.capability",
        "need": "fs:write:data/a",
        "text": "needs fs:write:data/a",
        "retry": "host",
        "asks": False,
        "remedy": (
            "p.put: needs fs:write:data/a, fs:read:data/a; "
            "grant it with --grant 'fs:write:data/a' --grant 'fs:read:data/a'"
        ),
        "needs": ["fs:write:data/a", "fs:read:data/a"],
        "grants": ["fs:write:data/a", "fs:read:data/a"],
    }
    assert (4, expected) == (ran.code, json.loads(ran.out))


CASES = (
    ("math.add", "1", "2"),
    ("math.add", "1", "x"),
    ("math.add", "1", "2", "num1=3"),
    ("math.ad", "1"),
    ("fs.read", "a"),
    ("fs.read", "../a"),
    ("fs.read",),
    ("crypto.signjwt",),
    ("probe.danger", "{}"),
    ("probe.trusted", "x"),
    ("p.put", "a", "b"),
    ("p.trusted",),
    ("p.approved",),
)
"""Calls of which each ends in another way, and none fails in its tool."""


@pytest.mark.parametrize("words", [(), ("--deny", "*"), ("--trusted",), ("--grant", "fs:*:*"), ("--strict",)])
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_a_dry_run_ends_as_the_call_does(case: tuple[str, ...], words: tuple[str, ...], world: Path) -> None:
    """With the same code, by words and by a line of JSON; stderr has the same remedy, or stdout the same text."""
    dry, wet = (
        command("call", "-p", "plugin.py", "--sandbox", "box", "--create", *words, *more, *case)
        for more in (["--dry-run"], [])
    )

    assert dry.code == (0 if wet.code == 1 else wet.code), (dry, wet)  # 1: a file that is not there
    if dry.err:
        assert (dry.code, dry.err) == (4, wet.err)
    elif "denied by" in wet.err:
        assert dry.out == f"{case[0]}: would be refused: is denied by the host (policy.denied, by {words[-1]})\n"
    elif dry.code:
        assert wet.err.removeprefix("neuroscript: ").removeprefix(f"{case[0]}: ").strip() in dry.out
    line = json.dumps({"id": "7", "name": case[0], "arguments": [*case[1:]]}).encode()
    ran = command("execute", "-p", "plugin.py", *words, "--dry-run", "-", stdin=line)
    data = json.loads(ran.out)
    assert data["id"] == "7"
    if not any("=" in word for word in case):
        assert (ran.code, data["allowed"]) == (dry.code, dry.code == 0)


def test_a_dry_run_of_lines_tells_of_each() -> None:
    """Also of lines that are no calls; the code is that of the first that would not run."""
    lines = b'{"name": "probe.echo", "arguments": ["a"]}\nnonsense\n{"name": "x"}\n'
    ran = command("execute", "--dry-run", "-", stdin=lines)

    first, second, third = map(json.loads, ran.out.splitlines())
    assert ran.code == 3
    assert (first["allowed"], first["rule"]) == (True, "*")
    assert (second["line"], second["code"]) == (2, "arg.not_json")
    assert (third["tool"], third["code"]) == ("x", "tool.not_found")
    ran = command("execute", "--dry-run", "--report", "-")
    text = "--report tells what became of calls, and --dry-run makes none; leave out one of them"
    assert ran == Ran(2, "", f"neuroscript: {text}\n")


# What has no effect


def check(*words: str) -> tuple[int, Any]:
    ran = command("policy", "check", "-p", "plugin.py", "--json", *words)
    assert ran.err == ""
    return ran.code, json.loads(ran.out)


CHECKED = """\
[policy]
allow = ["p.*", "q.*", "probe.tags"]
deny = ["probe.tagz", "p.putt"]
grants = ["fs:*:data/**", "net:read:*"]
preapproved = ["p.approve"]

[policy.limits]
tool_calls = {"p.few" = 0, "p.fewer" = 1}
rates = {"*.x" = "1/minute"}
"""


def test_a_check_tells_rules_without_effect_and_tools_that_never_run(world: Path) -> None:
    """Each with the reason; the code is 1 where a rule has no effect."""
    code, found = check("--policy", write(world / "a.toml", CHECKED))

    assert (1, "a.toml") == (code, Path(found["file"]).name)
    assert [(each["where"], each["rule"], each["text"]) for each in found["idle"]] == [
        ("allow", "q.*", "matches no tool"),
        ("deny", "probe.tagz", "matches no tool; did you mean probe.tags or probe.data?"),
        ("deny", "p.putt", "matches no tool; did you mean p.put?"),
        ("preapproved", "p.approve", "matches no tool; did you mean p.approved?"),
        ("limits.tool_calls", "p.fewer", "matches no tool; did you mean p.few?"),
        ("limits.rates", "*.x", "matches no tool"),
        ("grants", "net:read:*", "covers nothing that a tool needs"),
    ]
    never = {each["tool"]: (each["code"], each["rule"], each["need"]) for each in found["never"]}
    assert never.pop("p.trusted") == ("policy.trust", "trust", "trust")
    assert never.pop("p.many") == ("policy.capability", "grants", "env:read:HOME")
    assert never.pop("p.few") == ("", "limits.tool_calls", "")
    assert never.pop("probe.trusted") == ("policy.trust", "trust", "trust")
    assert {each[0] for each in never.values()} == {"policy.not_allowed"}
    assert not {"p.put", "p.approved", "probe.tags"} & never.keys()


def test_nothing_is_wrong_where_each_rule_has_an_effect(world: Path) -> None:
    """Tools that may not run are told of, but that is what the policy says."""
    file = write(world / "a.toml", "policy.allow = ['p.put', 'p.few']\npolicy.grants = ['fs:*:*']\n")

    code, found = check("--policy", file)

    assert (code, found["idle"]) == (0, [])
    assert found["tools"] - len(found["never"]) == 2
    assert check()[0] == 0


def test_a_pattern_of_tools_that_can_never_run_has_no_effect(world: Path) -> None:
    """It looks as if it allowed something; words are looked at as the file is."""
    code, found = check("--allow", "p.put", "--allow", "p.few", "--grant", "fs:write:data/**")

    assert code == 1
    assert found["idle"] == [{"where": "allow", "rule": "p.put", "text": "matches only tools that can never run"}]
    assert found["never"][-1]["tool"] != "p.few"


def test_a_check_is_a_page_for_people(world: Path) -> None:
    """The same, in words and numbers."""
    ran = command("policy", "check", "-p", "plugin.py", "--policy", write(world / "a.toml", CHECKED), "--allow", "p.*")

    assert (ran.code, ran.err) == (1, "")
    assert "  limits.tool_calls  p.fewer     matches no tool; did you mean p.few?\n" in ran.out
    assert "  p.many         needs env:read:HOME, which no grant can cover\n" in ran.out
    assert "  p.few          is limited to no call at all (limits.tool_calls)\n" in ran.out
    assert "  no pattern of allow matches probe.danger, probe.data, probe.deep, " in ran.out
    assert ran.out.endswith(" tools: 2 can run, 17 never; 7 rules have no effect\n"), ran.out


# What decides


def explain(*words: str) -> tuple[list[tuple[str, str, str]], dict[str, Any]]:
    """Return what each gate says, and the outcome."""
    ran = command("policy", "explain", "--json", "-p", "plugin.py", *words)
    assert (ran.code, ran.err) == (0, ""), ran
    data = json.loads(ran.out)
    return [(each["name"], each["says"], each["rule"]) for each in data["gates"]], data["outcome"]


def test_each_gate_is_explained_with_the_rule_that_decides(world: Path) -> None:
    """A call that would run: which pattern allows it, which grant covers which need, which limits count."""
    file = write(
        world / "a.toml",
        "[policy]\nallow = ['x.*', 'p.*']\ngrants = ['fs:read:*', 'fs:write:data/**']\n[policy.limits]\ncalls = 5\n",
    )
    gates, outcome = explain("--policy", file, "p.put", "data/a", "text=hi")

    assert gates == [
        ("found", "passes", ""),
        ("trust", "passes", ""),
        ("deny", "passes", ""),
        ("allow", "passes", "p.*"),
        ("fits", "passes", ""),
        ("needs", "passes", "fs:write:data/**"),
        ("needs", "passes", "fs:read:*"),
        ("approval", "passes", ""),
        ("limits", "passes", ""),
    ]
    assert (outcome["allowed"], outcome["rule"]) == (True, "p.*")


@pytest.mark.parametrize(
    ("words", "gate", "code"),
    [
        (("p.trusted",), ("trust", "refuses", "trust"), "policy.trust"),
        (("--deny", "*.put", "p.put", "a", "b"), ("deny", "refuses", "*.put"), "policy.denied"),
        (("--allow", "p.many", "p.put", "a", "b"), ("allow", "refuses", "allow"), "policy.not_allowed"),
        (("p.put", "a"), ("fits", "refuses", "arguments"), "arg.missing"),
        (("p.put", "a", "b", "c"), ("fits", "refuses", "arguments"), "arg.count"),
        (("--grant", "fs:read:*", "p.put", "a", "b"), ("needs", "refuses", "grants"), "policy.capability"),
        (("--strict", "probe.waits", "1"), ("fits", "refuses", "arguments"), "coercion.type"),
        (("--policy", "zero.toml", "probe.echo"), ("limits", "refuses", "limits.calls"), ""),
    ],
)
def test_the_gate_that_refuses_is_told(words: tuple[str, ...], gate: tuple[str, ...], code: str, world: Path) -> None:
    """And it is what the outcome says."""
    write(world / "zero.toml", "policy.limits.calls = 0")
    gates, outcome = explain(*words)

    assert gate in gates
    assert (outcome["allowed"], outcome["code"]) == (False, code)


def test_without_arguments_the_templates_are_shown(world: Path) -> None:
    """What the arguments decide is open, unless no argument can help."""
    gates, outcome = explain("--grant", "fs:write:data/**", "p.put")

    assert gates[4:7] == [("fits", "open", ""), ("needs", "open", "fs:write:data/**"), ("needs", "refuses", "grants")]
    assert (outcome["allowed"], outcome["need"]) == (False, "fs:read:{path}")
    gates, outcome = explain("--grant", "fs:*:data/**", "p.put")
    assert outcome["allowed"] is True
    assert explain("p.few")[1]["allowed"] is True


def test_arguments_of_a_file_are_explained(world: Path) -> None:
    """JSON as ``call`` takes it; what is none does not fit."""
    write(world / "args.json", '{"path": "data/a", "text": "hi"}')
    write(world / "bad.json", '{"path"')

    words = ("--grant", "fs:*:data/**", "--input-json")
    assert explain(*words, "args.json", "p.put")[1]["allowed"] is True
    gates, outcome = explain(*words, "bad.json", "p.put")
    assert (("fits", "refuses", "arguments") in gates, outcome["code"]) == (True, "arg.not_json")
    ran = command("policy", "explain", "--input-json", "args.json", "p.put", "x")
    assert ran == Ran(2, "", "neuroscript: the arguments are words or a file (--input-json), not both\n")


def test_an_explanation_is_a_page_for_people(world: Path) -> None:
    """No value but a path below the sandbox stands in it."""
    ran = command("policy", "explain", "-p", "plugin.py", "--grant", "fs:write:data/**", "p.put", "data/a", "SECRET")

    assert ran.code == 0
    assert (
        ran.out
        == """\
p.put
  found     passes                     there is such a tool
  trust     passes                     requires none
  deny      passes                     no pattern matches it
  allow     passes   *                 matches it
  fits      passes                     the arguments fit
  needs     passes   fs:write:data/**  fs:write:data/a (of fs:write:{path})
  needs     refuses  grants            fs:read:data/a (of fs:read:{path}), which no grant covers
  approval  passes                     requires none
  limits    passes                     none

p.put: would be refused: needs fs:read:data/a (policy.capability, by grants)
p.put: needs fs:read:data/a; grant it with --grant 'fs:read:data/a'
"""
    )


def test_no_such_tool_can_not_be_explained() -> None:
    """With names that are spelt alike."""
    ran = command("policy", "explain", "probe.ecko")

    assert ran == Ran(2, "", "neuroscript: no tool is called probe.ecko; did you mean probe.echo?\n")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["policy"], "a question is missing: check, explain (see neuroscript policy --help)"),
        (["policy", "what"], "unknown question what; there are check, explain (see neuroscript policy --help)"),
        (["policy", "explain"], "the name of a tool is missing (see neuroscript policy explain --help)"),
        (["policy", "check", "--grant", "x"], "execution policy: x is not a capability; "),
        (["policy", "check", "--policy"], "argument --policy: expected one argument"),
        (["policy", "check", "x"], "unexpected argument x (see neuroscript policy check --help)"),
        (["polcy"], "no command is called polcy; did you mean policy?"),
    ],
)
def test_bad_words_are_a_matter_of_usage(words: list[str], text: str) -> None:
    """One line, and exit code 2."""
    ran = command(*words)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"neuroscript: {text}"), ran.err


@pytest.mark.parametrize("words", [["policy"], ["policy", "check"], ["policy", "explain"]])
def test_each_question_has_help(words: list[str]) -> None:
    """Which says where a policy comes from, or when the codes differ."""
    ran = command(*words, "--help")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("usage: neuroscript policy")


# Hostile files


def hostile(path: Path) -> None:
    """Fill a directory with files that are no policies."""
    whole = (ROOT / "tests" / "core" / "test_policyfile.py").read_bytes()
    (path / "directory").mkdir()
    os.mkfifo(path / "pipe")
    (path / "zero").symlink_to("/dev/zero")
    (path / "memory").symlink_to("/proc/self/mem")
    (path / "loop").symlink_to("loop")
    for name, data in {
        "python": whole,
        "random": random.Random(4).randbytes(5_000),
        "zeros": b"\0" * 1_000,
        "large": b"#" * 2_000_000,
        "utf-16": "[policy]".encode("utf-16"),
        "deep": b"policy.allow = " + b"[" * 200_000,
        "tables": b"policy = " + b"{a = " * 100_000,
        "keys": b"a." * 300_000 + b"b = 1",
        "digits": b"policy.limits.calls = " + b"9" * 100_000,
        "exponent": b"policy.limits.seconds = 1e99999999999999999999",
        "escapes": b'"\\u001b[2J" = 1\n["\\u202e"]\n',
        "patterns": b"policy.allow = [" + b'"*?*?*?*?*?*?x", ' * 2_000 + b"'a b']",
        "numbers": b"policy.allow = [" + b"1," * 100_000 + b"]",
        "unknown": b"".join(b"policy.x%d = 1\n" % index for index in range(20_000)),
    }.items():
        (path / name).write_bytes(data)


def test_no_file_gives_a_traceback(tmp_path: Path) -> None:
    """Each ends in exit code 2 and printable lines, soon."""
    hostile(tmp_path)
    for path in sorted(tmp_path.iterdir()):
        ran = command("policy", "check", "--policy", str(path))

        assert (path.name, 2, "") == (path.name, ran.code, ran.out)
        assert 1 <= len(ran.err.splitlines()) <= 21, path.name
        assert all(line.startswith("neuroscript: ") and line.isprintable() for line in ran.err.splitlines()), path.name
        assert str(tmp_path) not in ran.err


@pytest.mark.parametrize("name", ["directory", "pipe", "memory", "random", "deep", "nowhere", "a\udcff", "escapes"])
def test_nor_in_a_process_of_its_own(name: str, tmp_path: Path) -> None:
    """Through a real shell's doors, for each command that reads a policy."""
    hostile(tmp_path)
    children = [
        start(*words, "--policy", str(tmp_path / name))
        for words in (["call", "math.add"], ["execute", "-"], ["policy", "check"], ["policy", "explain", "math.add"])
    ]
    for child in children:
        out, err = child.communicate(b"", timeout=60)
        assert (child.returncode, out, b"Traceback" in err, err.startswith(b"neuroscript: ")) == (
            2,
            b"",
            False,
            True,
        ), err
