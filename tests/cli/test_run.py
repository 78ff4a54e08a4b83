"""``neuroscript run``: a plan from a file, its output, and its progress on a terminal."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from tests.cli.conftest import ROOT, CommandResult, asked_of, command, process
from tests.llm.server import ModelReply, ModelServer, Raw, refuses, says
from tests.terminals import Terminal

PLANS = ROOT / "docs" / "examples" / "plans"

GAVE: dict[str, tuple[tuple[str, ...], str, str]] = {
    "conditions.toml": ((), '{"icy": "Oslo: take skates"}\n', ""),
    "fallback.toml": (
        (),
        '{"instead": "THERE IS NO SUCH NUMBER"}\n',
        "neuroscript: divided: math.divide: division by zero (the plan continued)\n",
    ),
    "fan-out.toml": ((), "29 letters, the last word is line, md5 986f231beeaefac076dc907459c8aede\n", ""),
    "inputs.toml": (("--input", "days=3", "--input", "prices=[10, 2.5]"), "3 days cost 30.0 EUR\n", ""),
    "map.toml": ((), '{"lines": ["0: tea", "1: cake", "2: jam"], "taxed": [3.0, 4.8, 3.9], "dearest": 4.8}\n', ""),
    "nested.toml": ((), '{"of": "Ada", "sum": 12.0}\n', ""),
    "output.json": (
        (),
        '{"title": "a line of 6 words", "count": 6, "ends": ["be", "to"], "kind": "report"}\n',
        "",
    ),
    "retry.toml": (("--grant", "fs:*:late.txt"), "better late than never\n", ""),
    "sequence.toml": ((), "A PLAN\n", ""),
    "text.toml": (
        (),
        'Dear Ada, we are 3: ["Ada", "Edsger", "Grace"].\nA reference is written ${guests}.\n',
        "",
    ),
    "timeout.toml": (
        (),
        "the plan does not wait\n",
        "neuroscript: sleeps: time.sleep: duration_seconds: expected to end before the deadline of the call, "
        "got a longer time (the plan continued)\n",
    ),
    "trace.toml": (
        (),
        '{"ends": ["succeeded", "failed"], "why": "quotient: math.divide: division by zero"}\n',
        "neuroscript: quotient: math.divide: division by zero (the plan continued)\n",
    ),
}
"""Inputs, output and messages of each example."""


@pytest.mark.parametrize("name", GAVE)
def test_example_runs(name: str, tmp_path: Path) -> None:
    """It needs only the distributions of this project and no network."""
    words, out, err = GAVE[name]

    result = command("run", str(PLANS / name), "--sandbox", str(tmp_path), *words, make_engine=None)

    assert CommandResult(0, out, err) == result


def test_every_example_is_tested() -> None:
    assert sorted(GAVE) == sorted(path.name for path in PLANS.iterdir())


def test_example_runs_in_a_separate_process() -> None:
    """Inputs are arguments; messages go to stderr."""
    result = process("run", "docs/examples/plans/conditions.toml", "--input", "city=São Paulo", "--input", "degrees=31")

    assert CommandResult(0, '{"warm": "São Paulo: take sandals"}\n') == result


def test_node_is_retried_until_it_succeeds(tmp_path: Path) -> None:
    """The trace contains each attempt; the first ones failed because the file did not exist yet."""
    words = ("--sandbox", str(tmp_path), "--grant", "fs:*:late.txt", "--json")

    result = command("run", str(PLANS / "retry.toml"), *words, make_engine=None)
    reads = json.loads(result.out)["nodes"][2]
    codes = [each["code"] for each in reads["attempts"]]

    assert (0, "succeeded", "ok") == (result.code, reads["status"], codes[-1])
    assert {"sandbox.notfound"} == set(codes[:-1])
    assert [*range(1, len(codes) + 1)] == [each["number"] for each in reads["attempts"]]


# Failures


def written(place: Path, text: str, name: str = "plan.toml") -> str:
    """Return the name of a file with this content."""
    file = place / name
    file.write_text(text)
    return str(file)


ECHO = '[nodes.a]\ntool = "probe.echo"\ninputs = { text = "%s" }\n'


def failing(tool: str, inputs: str = "{}", more: str = "") -> str:
    """Return a plan with a node that fails, and one that needs it."""
    return (
        f'[nodes.bad]\ntool = "{tool}"\ninputs = {inputs}\n{more}\n[nodes.after]\ntool = "probe.echo"\n'
        'depends_on = ["bad"]\ninputs = { text = "after" }\n'
    )


@pytest.mark.parametrize(
    ("plan", "words", "code", "message"),
    [
        pytest.param(
            failing("probe.fails", '{ code = "x" }'),
            (),
            1,
            "probe.fails: it failed\\nwith \\x1b[31mx",
            id="a tool that fails",
        ),
        pytest.param(
            failing("probe.fails", '{ code = "return" }'),
            (),
            1,
            "probe.fails: result: expected string, got int",
            id="a result that is none",
        ),
        pytest.param(failing("probe.slow"), (), 124, "probe.slow: did not end within 0.01 s", id="a timeout"),
        pytest.param(
            failing("probe.tags", '{ names = "${input.names}" }') + '[inputs.names]\ntype = "any"\n',
            ("--input", "names=5"),
            3,
            "probe.tags: names: expected list of string, got str",
            id="arguments that come to fit nothing",
        ),
        pytest.param(failing("probe.deep"), (), 4, "probe.deep: nested calls may be at most 16 deep", id="a limit"),
    ],
)
def test_first_halting_node_sets_the_exit_code(
    plan: str, words: tuple[str, ...], code: int, message: str, tmp_path: Path
) -> None:
    """It is the exit code of ``call``; the failed nodes and the number of unstarted nodes are printed."""
    result = command("run", written(tmp_path, plan), *words)
    lines = result.err.splitlines()

    assert (code, "") == (result.code, result.out)
    assert lines[0].startswith(f"neuroscript: bad: {message}"), lines
    assert ["neuroscript: the plan failed: bad failed; 1 not started"] == lines[1:]


def test_invalid_plan_reports_every_problem(tmp_path: Path) -> None:
    """Unknown tools, invalid arguments and refusals have one line each; the exit code is 2, and nothing runs."""
    plan = (
        '[nodes.said]\ntool = "probe.said"\ninputs = { text = "it runs" }\n'
        '[nodes.b]\ntool = "probe.ecko"\n[nodes.c]\ntool = "probe.tags"\ninputs = { nams = [] }\n'
        '[nodes.d]\ntool = "probe.trusted"\ninputs = { text = "x" }\n'
    )
    lines = [
        "nodes.b.tool: unknown tool probe.ecko; did you mean probe.echo?",
        "nodes.c.inputs.names: expected list of string, got nothing",
        "nodes.c.inputs.nams: expected only names, sep, limit, got an unknown name of type list (did you mean names?)",
        "nodes.d.tool: probe.trusted: requires a trusted host",
    ]

    result = command("run", written(tmp_path, plan))
    checked = command("run", written(tmp_path, plan), "--check")
    data = command("run", written(tmp_path, plan), "--check", "--json")

    assert CommandResult(2, "", "".join(f"neuroscript: plan.toml: {line}\n" for line in lines)) == result == checked
    assert {"ok": False, "problems": lines} == json.loads(data.out)


def test_check_runs_nothing(tmp_path: Path) -> None:
    """It does not need the inputs."""
    plan = '[inputs]\ntext = "string"\n[nodes.said]\ntool = "probe.said"\ninputs = { text = "${input.text}" }\n'

    assert CommandResult(0, "plan.toml can run here\n") == command("run", written(tmp_path, plan), "--check")
    assert CommandResult(0, '{"ok": true, "problems": []}\n') == command(
        "run", written(tmp_path, plan), "--check", "--json"
    )


def test_invalid_plan_file_is_reported_line_by_line(tmp_path: Path) -> None:
    """It has a cycle, an unknown name and an unknown key."""
    plan = (
        '[nodes.a]\ntool = "probe.echo"\ninputs = { text = "${b}" }\n'
        '[nodes.b]\ntool = "probe.echo"\ninputs = { text = "${a}" }\n'
    )

    result = command("run", written(tmp_path, plan))
    odd = command("run", written(tmp_path, '[nodes.a]\ntool = "x.y"\nretries = 3\n'))

    assert CommandResult(2, "", "neuroscript: plan.toml:1: nodes.a: depends on itself: a < b < a\n") == result
    assert (2, True) == (odd.code, odd.err.startswith("neuroscript: plan.toml:3: "))


# Inputs


INPUTS = (
    'output = ["${a}", "${input.n}"]\n[inputs]\nn = "int"\ntext = { type = "string", default = "none" }\n'
    '[nodes.a]\ntool = "probe.echo"\ninputs = { text = "${input.text}" }\n'
)


@pytest.mark.parametrize(
    ("words", "stdin", "expected"),
    [
        pytest.param(("--input", "n=3"), b"", CommandResult(0, '["none", 3]\n'), id="a default"),
        pytest.param(("--input", "n=3", "--input", "text=a=b"), b"", CommandResult(0, '["a=b", 3]\n'), id="both"),
        pytest.param(("--input-json", "-"), b'{"n": 4.0, "text": "t"}', CommandResult(0, '["t", 4]\n'), id="a file"),
        pytest.param((), b"", CommandResult(3, err="plan.inputs: n: expected int, got nothing\n"), id="one is missing"),
        pytest.param(
            ("--input", "n=x", "--input", "m=1"),
            b"",
            CommandResult(
                3,
                err="plan.inputs: n: expected int, got str (a string must be a decimal integer, such as 42); "
                "m: expected only n, text, got an unknown name of type str\n",
            ),
            id="one does not fit, and one is none",
        ),
        pytest.param(
            ("--input", "n=1", "--input", "n=2"),
            b"",
            CommandResult(3, err="plan.inputs: n: expected one value, got 2 values\n"),
            id="twice",
        ),
        pytest.param(("--input", "n"), b"", CommandResult(2, err="--input n: expected KEY=VALUE\n"), id="no pair"),
        pytest.param(
            ("--input", "n=1", "--input-json", "-"),
            b"{}",
            CommandResult(2, err="pass the inputs with --input or with --input-json, not both\n"),
            id="two ways",
        ),
        pytest.param(
            ("--input-json", "-"),
            b"[1]",
            CommandResult(2, err="-: expected an object of inputs, got list\n"),
            id="no object",
        ),
    ],
)
def test_inputs_are_converted_to_the_types_of_the_plan(
    words: tuple[str, ...], stdin: bytes, expected: CommandResult, tmp_path: Path
) -> None:
    """They are strings or JSON; invalid ones are reported before anything runs."""
    result = command("run", written(tmp_path, INPUTS), *words, stdin=stdin)

    assert CommandResult(expected.code, expected.out, expected.err and f"neuroscript: {expected.err}") == result


@pytest.mark.parametrize(
    "text",
    [ECHO % "here", '{"nodes": {"a": {"tool": "probe.echo", "inputs": {"text": "here"}}}}'],
    ids=["TOML", "JSON"],
)
def test_plan_is_read_from_stdin(text: str) -> None:
    """As TOML, or as JSON if it begins like JSON."""
    result = command("run", "-", stdin=text.encode())

    assert CommandResult(0, "here\n") == result


def test_tool_output_is_not_in_the_json(tmp_path: Path) -> None:
    """It goes to stderr; without ``--json`` it precedes the output."""
    plan = written(tmp_path, '[nodes.said]\ntool = "probe.said"\ninputs = { text = "hello" }\n')

    plain, data = command("run", plan), command("run", plan, "--json")

    assert CommandResult(0, "hello\nhello\n") == plain
    assert ("hello\n", "hello") == (data.err, json.loads(data.out)["output"])


def test_trace_is_saved_if_the_plan_fails(tmp_path: Path) -> None:
    """It is JSON, and the exit code is that of the failure."""
    file = tmp_path / "trace.json"

    result = command("run", written(tmp_path, failing("probe.fails", '{ code = "x" }')), "--save", str(file))
    trace = json.loads(file.read_text())

    assert (1, "failed", ["failed", "unstarted"]) == (
        result.code,
        trace["status"],
        [n["status"] for n in trace["nodes"]],
    )


def test_unsaved_trace_is_an_error(tmp_path: Path) -> None:
    """The output is still printed."""
    result = command("run", written(tmp_path, ECHO % "out"), "--save", str(tmp_path / "no" / "trace.json"))

    assert (2, "out\n") == (result.code, result.out)
    assert result.err.startswith("neuroscript: cannot write ") and result.err.endswith(": no such file or directory\n")


def test_trace_is_saved_if_the_output_is_closed(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"

    result = process("run", str(PLANS / "sequence.toml"), "--save", str(file), shell=">/dev/full")

    assert (5, "succeeded") == (result.code, json.loads(file.read_text())["status"])


def test_nodes_are_audited(tmp_path: Path) -> None:
    """Each node is a call like any other."""
    trail = tmp_path / "trail.jsonl"

    command("run", written(tmp_path, ECHO % "x"), "--audit", str(trail))

    assert ["intent", "outcome"] == [json.loads(line)["kind"] for line in trail.read_text().splitlines()[-2:]]


# With a terminal


def at(plan: str, *words: str, term: str = "xterm", size: tuple[int, int] = (24, 30), piped: bool = False) -> Terminal:
    """Return a terminal of this size in which a plan runs."""
    argv = ["run", plan, *words]
    return Terminal(
        f"import os, sys, termios; os.environ.update(TERM={term!r}, NEUROSCRIPT_PLUGINS='neuroscript-std')\n"
        f"termios.tcsetwinsize(0, {size})\n"
        f"{'os.dup2(os.open(os.devnull, os.O_WRONLY), 1)' * piped}\n"
        f"from neuroscript.cli import main; sys.exit(main({argv!r}))"
    )


NAP = '[nodes.nap]\ntool = "time.sleep"\ninputs = { duration_seconds = %s }\n'
DONE = '[nodes.done]\ntool = "io.print"\ninputs = { values = ["hello"] }\n'


def test_terminal_shows_and_removes_the_progress(tmp_path: Path) -> None:
    """Tool output appears above it; at the end only the output remains. It has no colours."""
    terminal = at(written(tmp_path, NAP % "0.6" + DONE))

    seen = terminal.rest()
    terminal.close()

    assert "hello\r\n  nap  0 s\r\n1 of 2 done\r\n\x1b[2A\r\x1b[J" in seen
    assert seen.endswith('\x1b[J{"nap": true, "done": null}\r\n')
    assert {"1A", "2A", "J"} >= set(re.findall(r"\x1b\[(\d*[A-Za-z])", seen))


def test_no_line_is_wider_than_the_terminal(tmp_path: Path) -> None:
    """A wrapped line would be erased only partly. The name is cut, not the seconds; stdout may be redirected."""
    plan = (NAP % "0.4").replace("nodes.nap", f"nodes.{'n' * 60}")
    terminal = at(written(tmp_path, plan), size=(24, 12), piped=True)

    seen = terminal.rest()
    terminal.close()

    assert "  nnnn  0 s\r\n0 of 1 done\r\n" in seen


def test_no_more_lines_are_shown_than_the_terminal_has(tmp_path: Path) -> None:
    """The others are counted."""
    plan = (
        '[nodes.nap]\ntool = "time.sleep"\nmap = [0.5, 0.5, 0.5, 0.5, 0.5]\ninputs = { duration_seconds = "${item}" }\n'
    )
    terminal = at(written(tmp_path, plan), size=(5, 30))

    seen = terminal.rest()
    terminal.close()

    assert re.search(r"  nap\[\d\]  0 s\r\n  nap\[\d\]  0 s\r\n  and 3 more\r\n0 of 1 done\r\n", seen), seen


def test_progress_is_hidden_during_a_prompt(tmp_path: Path) -> None:
    """Nothing is drawn until it has been answered."""
    ask = '[nodes.ask]\ntool = "io.input"\ninputs = { message = "Name?" }\n'
    terminal = at(written(tmp_path, ask + NAP % "1"))

    before = terminal.see("Name? ")
    terminal.type("Ada\n")
    seen = terminal.rest()
    terminal.close()

    assert "of 2 done" not in before.partition("Name?")[2]
    assert seen.startswith("Ada\r\n") and seen.endswith('{"ask": "Ada", "nap": true}\r\n')


def test_progress_is_hidden_during_an_approval_prompt(tmp_path: Path) -> None:
    """The lines appear again afterwards."""
    close = '[nodes.close]\ntool = "shop.close"\ninputs = { branch = "Oslo" }\n'
    terminal = at(
        written(tmp_path, close + NAP % "1"), "-p", str(ROOT / "docs" / "examples" / "shop.py"), size=(24, 80)
    )

    request = terminal.see("[n] ")
    terminal.type("y\n")
    seen = terminal.rest()
    terminal.close()

    assert "of 2 done" not in request.rpartition("\x1b[J")[2]
    assert seen.endswith('{"close": "Oslo is closed", "nap": true}\r\n')


def test_dumb_terminal_gets_plain_lines(tmp_path: Path) -> None:
    """There is one line for each finished node."""
    terminal = at(written(tmp_path, NAP % "0.1" + DONE), term="dumb")

    seen = terminal.rest()
    terminal.close()

    lines = ["hello", "done succeeded, 1 of 2 done", "nap succeeded, 2 of 2 done", '{"nap": true, "done": null}', ""]
    assert "\r\n".join(lines) == seen


def test_interrupt_ends_a_run_and_saves_the_trace(tmp_path: Path) -> None:
    """The exit code is 130 with one line; the running node is marked as interrupted."""
    file = tmp_path / "trace.json"
    terminal = at(written(tmp_path, NAP % "20" + DONE), "--save", str(file))

    terminal.see("1 of 2 done\r\n")
    os.write(terminal.ours, b"\x03")
    rest = terminal.rest()
    terminal.close(130)
    trace = json.loads(file.read_text())

    assert rest.endswith("\r\x1b[Jneuroscript: interrupted\r\n")
    assert ("failed", "plan.interrupted") == (trace["status"], trace["error"]["code"])
    assert ["call.interrupted", "ok"] == [each["attempts"][0]["code"] for each in trace["nodes"]]


# With a model


ASKING = 'synthesis = "What does it say?"\n' + ECHO % "that Oslo is cold"


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        pytest.param(says("It is cold."), CommandResult(0, "It is cold.\n"), id="answers"),
        pytest.param(
            refuses(),
            CommandResult(
                1, "that Oslo is cold\n", "neuroscript: the plan failed: synthesis: the model refused to answer\n"
            ),
            id="refuses",
        ),
    ],
)
def test_synthesis_asks_the_model(
    step: ModelReply | Raw, expected: CommandResult, server: ModelServer, tmp_path: Path
) -> None:
    """Its answer is printed; without an answer, the output of the plan and an error."""
    server.script(step)

    result = command(*asked_of(server, "run", written(tmp_path, ASKING)))

    assert expected == result
    assert "that Oslo is cold" in server.requests[0].body["messages"][1]["content"]


def test_synthesis_needs_a_model_before_the_run(tmp_path: Path) -> None:
    """An unknown model ends the command, and nothing has run."""
    result = command("run", written(tmp_path, ASKING.replace("probe.echo", "probe.said")), "--model", "nobody")

    assert (2, "") == (result.code, result.out)
    assert "nobody" in result.err and "cold" not in result.err


GOOD = {"nodes": {"a": {"tool": "probe.echo", "inputs": {"text": "made"}}}}


def test_model_makes_a_plan_that_runs(server: ModelServer) -> None:
    """The printed plan is valid input of ``run``; an invalid plan goes back to the model."""
    server.script(says("a plan"), says(json.dumps(GOOD)))

    made = command(*asked_of(server, "plan", "Say it.", "--tools", "probe.e*"))
    result = command("run", "-", stdin=made.out.encode())

    assert (0, "", GOOD) == (made.code, made.err, json.loads(made.out))
    assert "probe.tags" not in server.requests[0].body["messages"][0]["content"]
    assert CommandResult(0, "made\n") == result


def test_model_without_a_valid_plan_is_reported(server: ModelServer) -> None:
    """It prints the problems of the last plan, and exits with 2."""
    server.script(forever=says(json.dumps(GOOD).replace("echo", "ecko")))

    made = command(*asked_of(server, "plan", "Say it.", "--attempts", "2"))

    reported = "no valid plan: nodes.a.tool: unknown tool probe.ecko; did you mean probe.echo?"
    assert CommandResult(2, "", f"neuroscript: {reported}\n") == made
    assert 2 == len(server.requests)
