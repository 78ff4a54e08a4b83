"""Policies on the command line: files and options, dry runs, rules without effect, and explanations."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import ROOT, CommandResult, command, process

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
    """A working directory with a plugin, and a permissive policy file that no option names."""
    (tmp_path / "plugin.py").write_text(PLUGIN)
    write(tmp_path / "neuroscript.toml", "[policy]\ngrants = ['*:*:*']\ntrusted = true\npreapproved = ['p.approved']\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def call(*words: str) -> CommandResult:
    return command("call", "-p", "plugin.py", "--sandbox", "box", "--create-sandbox", *words)


def put(*words: str) -> CommandResult:
    return call(*words, "p.put", "data/a", "hi")


# The policy file


def test_working_directory_is_not_searched(world: Path) -> None:
    """A file there grants nothing unless it is named."""
    assert put() == CommandResult(4, "", REFUSED)
    assert put("--policy", "neuroscript.toml") == CommandResult(0, "hi\n")
    assert put("--policy=neuroscript.toml") == CommandResult(0, "hi\n")


def test_own_policy_file_is_read(world: Path, config: Path) -> None:
    """It is in the user's configuration directory; a named file replaces it."""
    write(config, "policy.grants = ['fs:*:data/**']")
    write(world / "other.toml", "policy.grants = ['fs:*:other/**']")

    assert put() == CommandResult(0, "hi\n")
    assert put("--policy", "other.toml") == CommandResult(4, "", REFUSED)
    assert put("--policy", os.devnull) == CommandResult(4, "", REFUSED)


def test_invalid_or_unreadable_own_file_ends_the_command(world: Path, config: Path) -> None:
    """It might deny something."""
    write(config, "policy.grant = []")
    assert put() == CommandResult(
        2, "", "neuroscript: neuroscript.toml:1: policy.grant: unknown key; did you mean grants?\n"
    )
    config.unlink()
    config.symlink_to("nowhere")
    assert put() == CommandResult(2, "", "neuroscript: neuroscript.toml: cannot be read: no such file or directory\n")
    config.unlink()
    config.mkdir()
    assert put() == CommandResult(2, "", "neuroscript: neuroscript.toml: cannot be read: is a directory\n")


@pytest.mark.parametrize("home", [".", "config", ""])
def test_relative_configuration_directory_is_ignored(home: str, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be in the working directory; without another one, the user has no policy file."""
    for directory in ("neuroscript", "config/neuroscript", ".config/neuroscript"):
        write(world / directory / "neuroscript.toml", "policy.grants = ['*:*:*']")
    monkeypatch.setenv("XDG_CONFIG_HOME", home)
    monkeypatch.setenv("HOME", ".")

    found = config_file()

    assert found is None or (Path(found).is_absolute() and not Path(found).is_relative_to(world))


def test_process_reads_the_same_file(world: Path, config: Path) -> None:
    """Its environment comes from a shell; commands that call nothing do not read the file."""
    write(config, "policy.deny = ['math.*']\n")

    refused = "neuroscript: math.add: denied by the pattern 'math.*' in deny\n"
    assert process("call", "math.add", "1", "2") == CommandResult(4, "", refused)
    config.write_text("policy = 1")
    assert process("call", "math.add", "1", "2").code == 2
    assert process("list", "math.add").code == process("show", "math.add").code == 0


# Files and options combined


def test_grants_trust_and_denials_add_up(world: Path) -> None:
    """A tool that either denies is refused."""
    file = write(world / "a.toml", "policy.grants = ['fs:write:data/**']\npolicy.deny = ['p.many']\n")
    words = ("--policy", file)

    lacking = "neuroscript: p.put: needs fs:read:data/a; grant it with --grant 'fs:read:data/a'\n"
    assert put(*words) == CommandResult(4, "", lacking)
    assert put(*words, "--grant", "fs:read:data/**") == CommandResult(0, "hi\n")
    denied = "neuroscript: p.put: denied by the pattern 'p.p*' in deny\n"
    assert put(*words, "--grant", "fs:read:data/**", "--deny", "p.p*") == CommandResult(4, "", denied)
    assert call(*words, "--grant=*:*:*", "--allow", "p.many", "p.many", "[]").code == 4
    assert call(*words, "p.trusted").code == 4
    assert call(*words, "--trusted", "p.trusted") == CommandResult(0, "true\n")


def test_tool_must_be_allowed_by_file_and_options(world: Path) -> None:
    """``--allow`` always means "only these", and never extends the file."""
    words = ("--policy", write(world / "a.toml", "policy.allow = ['p.put', 'p.few']\npolicy.grants = ['fs:*:*']\n"))
    todo = "to allow in the policy file, and to --allow if you use that option"
    not_allowed = f"neuroscript: p.{{0}}: not matched by any allow pattern; add 'p.{{0}}' {todo}\n"

    assert put(*words).code == call(*words, "p.few", "[]").code == 0
    assert put(*words, "--allow", "p.*").code == 0
    assert put(*words, "--allow", "p.few", "--allow", "p.pu?").code == 0
    assert put(*words, "--allow", "p.few") == CommandResult(4, "", not_allowed.format("put"))
    assert call(*words, "--allow", "p.*", "p.many", "[]") == CommandResult(4, "", not_allowed.format("many"))


def test_options_allow_only_these_even_if_the_file_asks(world: Path) -> None:
    """``otherwise = "ask"`` is about the tools that the file does not allow, not about those of ``--allow``."""
    text = "[policy]\nallow = ['p.put']\notherwise = 'ask'\ngrants = ['fs:*:*']\n"
    words = ("--policy", write(world / "a.toml", text))

    assert put(*words) == CommandResult(0, "hi\n")
    assert call(*words, "p.few", "[]").err.startswith("neuroscript: p.few: needs approval; ")
    assert call(*words, "--allow", "p.few", "p.few", "[]").err.startswith("neuroscript: p.few: needs approval; ")
    assert call(*words, "--allow", "p.few", "p.many", "[]").err.startswith("neuroscript: p.many: not matched by any ")


def test_profile_is_selected_by_name(world: Path) -> None:
    """An unknown profile, or a profile without a file, ends the command."""
    file = write(world / "a.toml", "[policy]\ngrants = ['fs:*:*']\n[policy.profiles.careful]\ndeny = ['p.put']\n")
    words = ("--policy", file, "--profile")

    assert put(*words, "careful") == CommandResult(4, "", "neuroscript: p.put: denied by the pattern 'p.put' in deny\n")
    reported = "neuroscript: a.toml:3: policy.profiles.carefull: unknown profile; did you mean careful?\n"
    assert put(*words, "carefull") == CommandResult(2, "", reported)
    text = "--profile needs a policy file; add --policy FILE"
    assert put("--profile", "careful") == CommandResult(2, "", f"neuroscript: {text}\n")


def test_each_error_of_a_file_has_its_own_line(world: Path) -> None:
    """At most twenty are printed, with the number of the others."""
    file = write(world / "a.toml", "[policy]\nallow = 1\n" + "".join(f"x{index} = 1\n" for index in range(30)))

    result = put("--policy", file)

    lines = result.err.splitlines()
    assert (result.code, result.out, len(lines)) == (2, "", 21)
    assert lines[0] == "neuroscript: a.toml:2: policy.allow: must be an array of strings, in brackets"
    assert lines[1:21:19] == ["neuroscript: a.toml:3: policy.x0: unknown key", "neuroscript: a.toml: and 11 more"]


def test_options_without_effect_produce_a_warning(world: Path) -> None:
    """The call runs; ``policy check`` reports rules of the file."""
    file = write(world / "a.toml", "policy.grants = ['fs:*:*', 'net:read:*']\npolicy.deny = ['q.*']\n")
    idle = ("--deny", "q.x", "--deny", "p.many", "--grant", "net:read:a.com", "--grant", "env:read:H*", "--allow", "p")
    warning = "neuroscript: warning: no available tool matches --allow p, --deny q.x, --grant net:read:a.com\n"

    assert put("--policy", file) == CommandResult(0, "hi\n")
    assert put("--policy", file, *idle, "--allow", "*.put") == CommandResult(0, "hi\n", warning)
    line = b'{"name": "p.put", "arguments": ["data/a", "hi"]}'
    result = command(
        "execute", "-p", "plugin.py", "--dry-run", "--policy", file, *idle, "--allow", "*", "-", stdin=line
    )
    assert (result.code, result.err) == (0, warning)


# Dry runs


def test_dry_run_prints_the_decision(world: Path) -> None:
    """The exit code is that of the call; nothing runs, and no sandbox is created."""
    grant = ("--grant", "fs:*:data/**", "--dry-run")

    assert put(*grant) == CommandResult(0, "p.put: would run (allowed by *)\n")
    refused = "p.put: would be refused: needs fs:write:data/a (policy.capability, by grants)\n"
    assert put("--dry-run") == CommandResult(4, refused, REFUSED)
    assert call(*grant, "--deny", "*.put", "p.put") == CommandResult(
        4, "p.put: would be refused: is denied by the host (policy.denied, by *.put)\n"
    )
    assert call(*grant, "p.put", "x", "y", "z", "path=1") == CommandResult(
        3, "p.put: invalid arguments: expected at most 2 arguments, got 4; path: expected one value, got 2 values\n"
    )
    assert call(*grant, "p.pot") == CommandResult(
        2, "p.pot: would be refused: unknown tool p.pot; did you mean p.put? (tool.not_found)\n"
    )
    assert not (world / "box").exists()


def test_dry_run_json_is_the_decision(world: Path) -> None:
    """It is complete, in one line."""
    result = put("--dry-run", "--json")

    expected = {
        "tool": "p.put",
        "allowed": False,
        "rule": "grants",
        "code": "policy.capability",
        "need": "fs:write:data/a",
        "text": "needs fs:write:data/a",
        "retry": "host",
        "needs_approval": False,
        "remedy": (
            "p.put: needs fs:write:data/a, fs:read:data/a; "
            "grant it with --grant 'fs:write:data/a' --grant 'fs:read:data/a'"
        ),
        "needs": ["fs:write:data/a", "fs:read:data/a"],
        "grants": ["fs:write:data/a", "fs:read:data/a"],
        "flows": [],
    }
    assert (4, expected) == (result.code, json.loads(result.out))


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
"""Calls with different outcomes, none of which fails in the tool."""


@pytest.mark.parametrize("words", [(), ("--deny", "*"), ("--trusted",), ("--grant", "fs:*:*"), ("--strict",)])
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_dry_run_has_the_exit_code_of_the_call(case: tuple[str, ...], words: tuple[str, ...], world: Path) -> None:
    """With arguments and with a line of JSON; remedies and messages are the same."""
    dry, wet = (
        command("call", "-p", "plugin.py", "--sandbox", "box", "--create-sandbox", *words, *more, *case)
        for more in (["--dry-run"], [])
    )

    assert dry.code == (0 if wet.code == 1 else wet.code), (dry, wet)  # 1: the file does not exist
    if dry.err:
        assert (dry.code, dry.err) == (4, wet.err)
    elif "denied by" in wet.err:
        assert dry.out == f"{case[0]}: would be refused: is denied by the host (policy.denied, by {words[-1]})\n"
    elif dry.code:
        assert wet.err.removeprefix("neuroscript: ").removeprefix(f"{case[0]}: ").strip() in dry.out
    line = json.dumps({"id": "7", "name": case[0], "arguments": [*case[1:]]}).encode()
    result = command("execute", "-p", "plugin.py", *words, "--dry-run", "-", stdin=line)
    data = json.loads(result.out)
    assert data["id"] == "7"
    if not any("=" in word for word in case):
        assert (result.code, data["allowed"]) == (dry.code, dry.code == 0)


def test_dry_run_of_lines_decides_each() -> None:
    """This includes invalid lines; the exit code is that of the first call that would not run."""
    lines = b'{"name": "probe.echo", "arguments": ["a"]}\nnonsense\n{"name": "x"}\n'
    result = command("execute", "--dry-run", "-", stdin=lines)

    first, second, third = map(json.loads, result.out.splitlines())
    assert result.code == 3
    assert (first["allowed"], first["rule"]) == (True, "*")
    assert (second["line"], second["code"]) == (2, "arg.not_json")
    assert (third["tool"], third["code"]) == ("x", "tool.not_found")
    result = command("execute", "--dry-run", "--report", "-")
    text = "--report and --dry-run cannot be used together; omit one of them"
    assert result == CommandResult(2, "", f"neuroscript: {text}\n")


# Rules without effect


def check(*words: str) -> tuple[int, Any]:
    result = command("policy", "check", "-p", "plugin.py", "--json", *words)
    assert result.err == ""
    return result.code, json.loads(result.out)


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


def test_check_lists_unused_rules_and_tools_that_never_run(world: Path) -> None:
    """Each has a reason; the exit code is 1 if a rule has no effect."""
    code, found = check("--policy", write(world / "a.toml", CHECKED))

    assert (1, "a.toml") == (code, Path(found["file"]).name)
    assert [(each["where"], each["rule"], each["text"]) for each in found["unused_rules"]] == [
        ("allow", "q.*", "matches no tool"),
        ("deny", "probe.tagz", "matches no tool; did you mean probe.tags or probe.data?"),
        ("deny", "p.putt", "matches no tool; did you mean p.put?"),
        ("preapproved", "p.approve", "matches no tool; did you mean p.approved?"),
        ("limits.tool_calls", "p.fewer", "matches no tool; did you mean p.few?"),
        ("limits.rates", "*.x", "matches no tool"),
        ("grants", "net:read:*", "no tool needs it"),
    ]
    unusable = {each["tool"]: (each["code"], each["rule"], each["need"]) for each in found["unusable_tools"]}
    assert unusable.pop("p.trusted") == ("policy.trust", "trust", "trust")
    assert unusable.pop("p.many") == ("policy.capability", "grants", "env:read:HOME")
    assert unusable.pop("p.few") == ("", "limits.tool_calls", "")
    assert unusable.pop("probe.trusted") == ("policy.trust", "trust", "trust")
    assert {each[0] for each in unusable.values()} == {"policy.not_allowed"}
    assert not {"p.put", "p.approved", "probe.tags"} & unusable.keys()


def test_check_passes_if_every_rule_has_an_effect(world: Path) -> None:
    """Tools that may not run are listed, but that is intended."""
    file = write(world / "a.toml", "policy.allow = ['p.put', 'p.few']\npolicy.grants = ['fs:*:*']\n")

    code, found = check("--policy", file)

    assert (code, found["unused_rules"]) == (0, [])
    assert found["tools"] - len(found["unusable_tools"]) == 2
    assert check()[0] == 0


def test_pattern_of_tools_that_never_run_has_no_effect(world: Path) -> None:
    """This holds for options and for the file."""
    code, found = check("--allow", "p.put", "--allow", "p.few", "--grant", "fs:write:data/**")

    assert code == 1
    assert found["unused_rules"] == [
        {"where": "allow", "rule": "p.put", "text": "matches only tools that can never run"}
    ]
    assert found["unusable_tools"][-1]["tool"] != "p.few"


def test_check_prints_a_readable_page(world: Path) -> None:
    result = command(
        "policy", "check", "-p", "plugin.py", "--policy", write(world / "a.toml", CHECKED), "--allow", "p.*"
    )

    assert (result.code, result.err) == (1, "")
    assert "  limits.tool_calls  p.fewer     matches no tool; did you mean p.few?\n" in result.out
    assert "  p.many         needs env:read:HOME, which no grant can cover\n" in result.out
    assert "  p.few          is limited to 0 calls (limits.tool_calls)\n" in result.out
    assert "  not matched by any allow pattern: probe.danger, probe.data, probe.deep, " in result.out
    assert result.out.endswith(" tools: 2 can run, 17 cannot; 7 rules have no effect\n"), result.out


# Explanations


def explain(*words: str) -> tuple[list[tuple[str, str, str]], dict[str, Any]]:
    """Return the outcome of each check, and the decision."""
    result = command("policy", "explain", "--json", "-p", "plugin.py", *words)
    assert (result.code, result.err) == (0, ""), result
    data = json.loads(result.out)
    return [(each["name"], each["outcome"], each["rule"]) for each in data["checks"]], data["decision"]


def test_explain_shows_the_rule_of_each_check(world: Path) -> None:
    """For a call that would run: the allow pattern, the grant of each need, and the limits."""
    file = write(
        world / "a.toml",
        "[policy]\nallow = ['x.*', 'p.*']\ngrants = ['fs:read:*', 'fs:write:data/**']\n[policy.limits]\ncalls = 5\n",
    )
    checks, decision = explain("--policy", file, "p.put", "data/a", "text=hi")

    assert checks == [
        ("exists", "passes", ""),
        ("trust", "passes", ""),
        ("deny", "passes", ""),
        ("allow", "passes", "p.*"),
        ("arguments", "passes", ""),
        ("needs", "passes", "fs:write:data/**"),
        ("needs", "passes", "fs:read:*"),
        ("approval", "passes", ""),
        ("sources", "passes", "no effects"),
        ("sinks", "passes", "no effects"),
        ("flow", "passes", ""),
        ("limits", "passes", ""),
    ]
    assert (decision["allowed"], decision["rule"]) == (True, "p.*")


@pytest.mark.parametrize(
    ("words", "check", "code"),
    [
        (("p.trusted",), ("trust", "refuses", "trust"), "policy.trust"),
        (("--deny", "*.put", "p.put", "a", "b"), ("deny", "refuses", "*.put"), "policy.denied"),
        (("--allow", "p.many", "p.put", "a", "b"), ("allow", "refuses", "allow"), "policy.not_allowed"),
        (("p.put", "a"), ("arguments", "refuses", "arguments"), "arg.missing"),
        (("p.put", "a", "b", "c"), ("arguments", "refuses", "arguments"), "arg.count"),
        (("--grant", "fs:read:*", "p.put", "a", "b"), ("needs", "refuses", "grants"), "policy.capability"),
        (("--strict", "probe.waits", "1"), ("arguments", "refuses", "arguments"), "coercion.type"),
        (("--policy", "zero.toml", "probe.echo"), ("limits", "refuses", "limits.calls"), ""),
    ],
)
def test_explain_shows_the_check_that_refuses(
    words: tuple[str, ...], check: tuple[str, ...], code: str, world: Path
) -> None:
    """The decision agrees with it."""
    write(world / "zero.toml", "policy.limits.calls = 0")
    checks, decision = explain(*words)

    assert check in checks
    assert (decision["allowed"], decision["code"]) == (False, code)


def test_explain_without_arguments_shows_templates(world: Path) -> None:
    """Checks that depend on arguments are undecided, unless no argument can help."""
    checks, decision = explain("--grant", "fs:write:data/**", "p.put")

    assert checks[4:7] == [
        ("arguments", "depends", ""),
        ("needs", "depends", "fs:write:data/**"),
        ("needs", "refuses", "grants"),
    ]
    assert (decision["allowed"], decision["need"]) == (False, "fs:read:{path}")
    checks, decision = explain("--grant", "fs:*:data/**", "p.put")
    assert decision["allowed"] is True
    assert explain("p.few")[1]["allowed"] is True


def test_explain_accepts_input_json(world: Path) -> None:
    """Invalid JSON is reported as invalid arguments."""
    write(world / "args.json", '{"path": "data/a", "text": "hi"}')
    write(world / "bad.json", '{"path"')

    words = ("--grant", "fs:*:data/**", "--input-json")
    assert explain(*words, "args.json", "p.put")[1]["allowed"] is True
    checks, decision = explain(*words, "bad.json", "p.put")
    assert (("arguments", "refuses", "arguments") in checks, decision["code"]) == (True, "arg.not_json")
    result = command("policy", "explain", "--input-json", "args.json", "p.put", "x")
    assert result == CommandResult(
        2, "", "neuroscript: pass the arguments on the command line or with --input-json, not both\n"
    )


def test_explain_prints_a_readable_page(world: Path) -> None:
    """The only value in it is a path below the sandbox."""
    result = command("policy", "explain", "-p", "plugin.py", "--grant", "fs:write:data/**", "p.put", "data/a", "SECRET")

    assert result.code == 0
    assert (
        result.out
        == """\
p.put
  exists     passes                     the tool exists
  trust      passes                     not required
  deny       passes                     no pattern matches it
  allow      passes   *                 matches it
  arguments  passes                     the arguments are valid
  needs      passes   fs:write:data/**  fs:write:data/a (from fs:write:{path})
  needs      refuses  grants            fs:read:data/a (from fs:read:{path}), which no grant covers
  approval   passes                     not required
  sources    passes   no effects        its results carry untrusted, private
  sinks      passes   no effects        it sends its arguments to outside, public, money, people,
                                        code, storage
  flow       passes                     no rules
  limits     passes                     none

p.put: would be refused: needs fs:read:data/a (policy.capability, by grants)
p.put: needs fs:read:data/a; grant it with --grant 'fs:read:data/a'
"""
    )


def test_explain_of_an_unknown_tool_suggests_similar_ones() -> None:
    result = command("policy", "explain", "probe.ecko")

    assert result == CommandResult(2, "", "neuroscript: unknown tool probe.ecko; did you mean probe.echo?\n")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["policy"], "expected an action: check, explain (see neuroscript policy --help)"),
        (["policy", "what"], "unknown action what; choose from check, explain (see neuroscript policy --help)"),
        (["policy", "explain"], "expected the name of a tool (see neuroscript policy explain --help)"),
        (["policy", "check", "--grant", "x"], "execution policy: x is not a capability; "),
        (["policy", "check", "--policy"], "argument --policy: expected one argument"),
        (["policy", "check", "x"], "unexpected argument x (see neuroscript policy check --help)"),
        (["polcy"], "unknown command polcy; did you mean policy?"),
    ],
)
def test_invalid_arguments_are_a_usage_error(words: list[str], text: str) -> None:
    """There is one line, and exit code 2."""
    result = command(*words)

    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"neuroscript: {text}"), result.err


@pytest.mark.parametrize("words", [["policy"], ["policy", "check"], ["policy", "explain"]])
def test_each_action_has_help(words: list[str]) -> None:
    """It describes the policy file, or the exit codes."""
    result = command(*words, "--help")

    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("usage: neuroscript policy")


# Hostile files


def hostile(path: Path) -> None:
    """Fill a directory with files that are not policies."""
    whole = (ROOT / "tests" / "config" / "test_policy_file.py").read_bytes()
    (path / "directory").mkdir()
    os.mkfifo(path / "pipe")
    (path / "zero").symlink_to("/dev/zero")
    (path / "memory").symlink_to("/proc/self/mem")
    (path / "loop").symlink_to("loop")
    for name, data in {
        "python": whole,
        "random": random.Random(4).randbytes(5_000),
        "zeros": b"\0" * 1_000,
        "large": b"#" * 1_100_000,
        "utf-16": "[policy]".encode("utf-16"),
        "deep": b"policy.allow = " + b"[" * 50_000,
        "tables": b"policy = " + b"{a = " * 25_000,
        "keys": b"a." * 75_000 + b"b = 1",
        "digits": b"policy.limits.calls = " + b"9" * 100_000,
        "exponent": b"policy.limits.seconds = 1e99999999999999999999",
        "escapes": b'"\\u001b[2J" = 1\n["\\u202e"]\n',
        "patterns": b"policy.allow = [" + b'"*?*?*?*?*?*?x", ' * 2_000 + b"'a b']",
        "numbers": b"policy.allow = [" + b"1," * 25_000 + b"]",
        "unknown": b"".join(b"policy.x%d = 1\n" % index for index in range(5_000)),
    }.items():
        (path / name).write_bytes(data)


def test_hostile_files_produce_no_traceback(tmp_path: Path) -> None:
    """Each produces exit code 2 and printable lines within a time limit."""
    hostile(tmp_path)
    for path in sorted(tmp_path.iterdir()):
        result = command("policy", "check", "--policy", str(path))

        assert (path.name, 2, "") == (path.name, result.code, result.out)
        assert 1 <= len(result.err.splitlines()) <= 21, path.name
        assert all(line.startswith("neuroscript: ") and line.isprintable() for line in result.err.splitlines()), (
            path.name
        )
        assert str(tmp_path) not in result.err


WITH_POLICY = (("call", "math.add"), ("execute", "-"), ("policy", "check"), ("policy", "explain", "math.add"))
"""Commands that read a policy."""


@pytest.mark.parametrize("words", WITH_POLICY, ids=" ".join)
def test_each_command_reports_a_hostile_file(words: tuple[str, ...], tmp_path: Path) -> None:
    hostile(tmp_path)
    for name in ("directory", "pipe", "memory", "random", "deep", "nowhere", "a\udcff", "escapes"):
        result = command(*words, "--policy", str(tmp_path / name))

        assert (name, 2, "", True) == (name, result.code, result.out, result.err.startswith("neuroscript: ")), result


@pytest.mark.parametrize(("name", "words"), [*zip(("pipe", "memory", "a\udcff", "escapes"), WITH_POLICY, strict=True)])
def test_hostile_files_produce_no_traceback_in_a_process(name: str, words: tuple[str, ...], tmp_path: Path) -> None:
    """With a real shell."""
    hostile(tmp_path)

    result = process(*words, "--policy", str(tmp_path / name))

    assert (result.code, result.out, "Traceback" in result.err) == (2, "", False), result
    assert result.err.startswith("neuroscript: ")
