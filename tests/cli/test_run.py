"""``neuroscript run``: a plan from a file, what it gives, and what a terminal shows meanwhile."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from tests.cli.conftest import ROOT, Ran, asked_of, command, process
from tests.llm.server import ModelServer, Raw, Said, refuses, says
from tests.terminals import Terminal

PLANS = ROOT / "docs" / "examples" / "plans"

GAVE: dict[str, tuple[tuple[str, ...], str, str]] = {
    "conditions.toml": ((), '{"icy": "Oslo: take skates"}\n', ""),
    "fallback.toml": (
        (),
        '{"instead": "THERE IS NO SUCH NUMBER"}\n',
        "neuroscript: divided: math.divide: a division by 0 has no result (the plan went on)\n",
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
        "nobody waits for ever\n",
        "neuroscript: sleeps: time.sleep: duration_seconds: expected an end before the deadline of the call, "
        "got one behind it (the plan went on)\n",
    ),
    "trace.toml": (
        (),
        '{"ends": ["succeeded", "failed"], "why": "quotient: math.divide: a division by 0 has no result"}\n',
        "neuroscript: quotient: math.divide: a division by 0 has no result (the plan went on)\n",
    ),
}
"""What each example is given, gives, and says."""


@pytest.mark.parametrize("name", GAVE)
def test_each_example_runs(name: str, tmp_path: Path) -> None:
    """From a clean clone, with the tools of our own distributions and no network."""
    words, out, err = GAVE[name]

    ran = command("run", str(PLANS / name), "--sandbox", str(tmp_path), *words, make_engine=None)

    assert Ran(0, out, err) == ran


def test_every_example_is_among_those() -> None:
    """So that none is left untried."""
    assert sorted(GAVE) == sorted(path.name for path in PLANS.iterdir())


def test_an_example_runs_in_a_process_of_its_own() -> None:
    """Inputs are words; what is said of it stands beside the output."""
    ran = process("run", "docs/examples/plans/conditions.toml", "--input", "city=São Paulo", "--input", "degrees=31")

    assert Ran(0, '{"warm": "São Paulo: take sandals"}\n') == ran


def test_a_node_is_tried_again_until_it_succeeds(tmp_path: Path) -> None:
    """The trace has each attempt; the ones before the last have failed, for the file was not there yet."""
    words = ("--sandbox", str(tmp_path), "--grant", "fs:*:late.txt", "--json")

    ran = command("run", str(PLANS / "retry.toml"), *words, make_engine=None)
    reads = json.loads(ran.out)["nodes"][2]
    codes = [each["code"] for each in reads["attempts"]]

    assert (0, "succeeded", "ok") == (ran.code, reads["status"], codes[-1])
    assert {"sandbox.notfound"} == set(codes[:-1])
    assert [*range(1, len(codes) + 1)] == [each["number"] for each in reads["attempts"]]


# What fails


def written(place: Path, text: str, name: str = "plan.toml") -> str:
    """Return the name of a file with a text."""
    file = place / name
    file.write_text(text)
    return str(file)


ECHO = '[nodes.a]\ntool = "probe.echo"\ninputs = { text = "%s" }\n'


def failing(tool: str, inputs: str = "{}", more: str = "") -> str:
    """Return a plan of a node that fails, and of one that needs it."""
    return (
        f'[nodes.bad]\ntool = "{tool}"\ninputs = {inputs}\n{more}\n[nodes.after]\ntool = "probe.echo"\n'
        'depends_on = ["bad"]\ninputs = { text = "after" }\n'
    )


@pytest.mark.parametrize(
    ("plan", "words", "code", "said"),
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
def test_the_first_node_that_halts_a_plan_says_how_it_ends(
    plan: str, words: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    """With the code that ``call`` would end with; each node that failed is told of, and how many never began."""
    ran = command("run", written(tmp_path, plan), *words)
    lines = ran.err.splitlines()

    assert (code, "") == (ran.code, ran.out)
    assert lines[0].startswith(f"neuroscript: bad: {said}"), lines
    assert ["neuroscript: the plan failed: bad failed; 1 not started"] == lines[1:]


def test_a_plan_that_can_not_run_says_everything_and_runs_nothing(tmp_path: Path) -> None:
    """A tool that is not there, an argument that does not fit, a refusal: each in a line, with 2."""
    plan = (
        '[nodes.said]\ntool = "probe.said"\ninputs = { text = "it runs" }\n'
        '[nodes.b]\ntool = "probe.ecko"\n[nodes.c]\ntool = "probe.tags"\ninputs = { nams = [] }\n'
        '[nodes.d]\ntool = "probe.trusted"\ninputs = { text = "x" }\n'
    )
    lines = [
        "nodes.b.tool: no tool is called probe.ecko; did you mean probe.echo?",
        "nodes.c.inputs.names: expected list of string, got nothing",
        "nodes.c.inputs.nams: expected only names, sep, limit, got an unknown name with list (did you mean names?)",
        "nodes.d.tool: probe.trusted: requires a trusted host",
    ]

    ran = command("run", written(tmp_path, plan))
    checked = command("run", written(tmp_path, plan), "--check")
    data = command("run", written(tmp_path, plan), "--check", "--json")

    assert Ran(2, "", "".join(f"neuroscript: plan.toml: {line}\n" for line in lines)) == ran == checked
    assert {"ok": False, "problems": lines} == json.loads(data.out)


def test_a_plan_is_checked_alone(tmp_path: Path) -> None:
    """Its inputs need not be there, and nothing runs."""
    plan = '[inputs]\ntext = "string"\n[nodes.said]\ntool = "probe.said"\ninputs = { text = "${input.text}" }\n'

    assert Ran(0, "plan.toml can run here\n") == command("run", written(tmp_path, plan), "--check")
    assert Ran(0, '{"ok": true, "problems": []}\n') == command("run", written(tmp_path, plan), "--check", "--json")


def test_a_file_that_is_no_plan_is_told_line_by_line(tmp_path: Path) -> None:
    """A cycle, a name that nobody has, a key that is none."""
    plan = (
        '[nodes.a]\ntool = "probe.echo"\ninputs = { text = "${b}" }\n'
        '[nodes.b]\ntool = "probe.echo"\ninputs = { text = "${a}" }\n'
    )

    ran = command("run", written(tmp_path, plan))
    odd = command("run", written(tmp_path, '[nodes.a]\ntool = "x.y"\nretries = 3\n'))

    assert Ran(2, "", "neuroscript: plan.toml:1: nodes.a: needs itself, by way of a < b < a\n") == ran
    assert (2, True) == (odd.code, odd.err.startswith("neuroscript: plan.toml:3: "))


# What it is given


INPUTS = (
    'output = ["${a}", "${input.n}"]\n[inputs]\nn = "int"\ntext = { type = "string", default = "none" }\n'
    '[nodes.a]\ntool = "probe.echo"\ninputs = { text = "${input.text}" }\n'
)


@pytest.mark.parametrize(
    ("words", "stdin", "expected"),
    [
        pytest.param(("--input", "n=3"), b"", Ran(0, '["none", 3]\n'), id="a default"),
        pytest.param(("--input", "n=3", "--input", "text=a=b"), b"", Ran(0, '["a=b", 3]\n'), id="both"),
        pytest.param(("--input-json", "-"), b'{"n": 4.0, "text": "t"}', Ran(0, '["t", 4]\n'), id="a file"),
        pytest.param((), b"", Ran(3, err="plan.inputs: n: expected int, got nothing\n"), id="one is missing"),
        pytest.param(
            ("--input", "n=x", "--input", "m=1"),
            b"",
            Ran(
                3,
                err="plan.inputs: n: expected int, got str (a text must be decimal digits, such as 42); "
                "m: expected only n, text, got an unknown name with str\n",
            ),
            id="one does not fit, and one is none",
        ),
        pytest.param(
            ("--input", "n=1", "--input", "n=2"),
            b"",
            Ran(3, err="plan.inputs: n: expected one value, got 2 values\n"),
            id="twice",
        ),
        pytest.param(("--input", "n"), b"", Ran(2, err="--input n: expected KEY=VALUE\n"), id="no pair"),
        pytest.param(
            ("--input", "n=1", "--input-json", "-"),
            b"{}",
            Ran(2, err="the inputs are words (--input) or a file (--input-json), not both\n"),
            id="two ways",
        ),
        pytest.param(
            ("--input-json", "-"), b"[1]", Ran(2, err="-: expected an object of inputs, got list\n"), id="no object"
        ),
    ],
)
def test_inputs_are_coerced_as_the_plan_declares_them(
    words: tuple[str, ...], stdin: bytes, expected: Ran, tmp_path: Path
) -> None:
    """As texts of a shell, or as JSON; what does not fit is told at once, before anything runs."""
    ran = command("run", written(tmp_path, INPUTS), *words, stdin=stdin)

    assert Ran(expected.code, expected.out, expected.err and f"neuroscript: {expected.err}") == ran


@pytest.mark.parametrize(
    "text",
    [ECHO % "here", '{"nodes": {"a": {"tool": "probe.echo", "inputs": {"text": "here"}}}}'],
    ids=["TOML", "JSON"],
)
def test_a_plan_comes_from_the_standard_input_too(text: str) -> None:
    """TOML, or JSON where it begins so."""
    ran = command("run", "-", stdin=text.encode())

    assert Ran(0, "here\n") == ran


def test_what_a_tool_prints_does_not_stand_in_the_json(tmp_path: Path) -> None:
    """It goes to the other stream; without ``--json`` it stands before the output."""
    plan = written(tmp_path, '[nodes.said]\ntool = "probe.said"\ninputs = { text = "hello" }\n')

    plain, data = command("run", plan), command("run", plan, "--json")

    assert Ran(0, "hello\nhello\n") == plain
    assert ("hello\n", "hello") == (data.err, json.loads(data.out)["output"])


def test_the_trace_is_saved_also_where_the_plan_fails(tmp_path: Path) -> None:
    """As JSON, and with the exit code of the failure."""
    file = tmp_path / "trace.json"

    ran = command("run", written(tmp_path, failing("probe.fails", '{ code = "x" }')), "--save", str(file))
    trace = json.loads(file.read_text())

    assert (1, "failed", ["failed", "unstarted"]) == (ran.code, trace["status"], [n["status"] for n in trace["nodes"]])


def test_a_trace_that_can_not_be_saved_is_no_success(tmp_path: Path) -> None:
    """The output is written all the same."""
    ran = command("run", written(tmp_path, ECHO % "out"), "--save", str(tmp_path / "no" / "trace.json"))

    assert (2, "out\n") == (ran.code, ran.out)
    assert ran.err.startswith("neuroscript: can not write ") and ran.err.endswith(": no such file or directory\n")


def test_the_trace_is_saved_also_where_nobody_takes_the_output(tmp_path: Path) -> None:
    """What a run has done is not lost with the pipe that its output goes to."""
    file = tmp_path / "trace.json"

    ran = process("run", str(PLANS / "sequence.toml"), "--save", str(file), shell=">/dev/full")

    assert (5, "succeeded") == (ran.code, json.loads(file.read_text())["status"])


def test_a_trail_is_kept_of_a_plan(tmp_path: Path) -> None:
    """Each node is a call like any other."""
    trail = tmp_path / "trail.jsonl"

    command("run", written(tmp_path, ECHO % "x"), "--audit", str(trail))

    assert ["intent", "outcome"] == [json.loads(line)["kind"] for line in trail.read_text().splitlines()[-2:]]


# On a terminal


def at(plan: str, *words: str, term: str = "xterm", size: tuple[int, int] = (24, 30), piped: bool = False) -> Terminal:
    """Return a terminal of so many lines and columns in which a plan runs."""
    argv = ["run", plan, *words]
    return Terminal(
        f"import os, sys, termios; os.environ.update(TERM={term!r}); termios.tcsetwinsize(0, {size})\n"
        f"{'os.dup2(os.open(os.devnull, os.O_WRONLY), 1)' * piped}\n"
        f"from neuroscript.cli import main; sys.exit(main({argv!r}))"
    )


NAP = '[nodes.nap]\ntool = "time.sleep"\ninputs = { duration_seconds = %s }\n'
DONE = '[nodes.done]\ntool = "io.print"\ninputs = { values = ["hello"] }\n'


def test_a_terminal_shows_what_runs_and_forgets_it(tmp_path: Path) -> None:
    """What a tool prints stands above; at the end nothing of it is left but the output. It has no colours."""
    terminal = at(written(tmp_path, NAP % "0.6" + DONE))

    seen = terminal.rest()
    terminal.close()

    assert "hello\r\n  nap  0 s\r\n1 of 2 done\r\n\x1b[2A\r\x1b[J" in seen
    assert seen.endswith('\x1b[J{"nap": true, "done": null}\r\n')
    assert {"1A", "2A", "J"} >= set(re.findall(r"\x1b\[(\d*[A-Za-z])", seen))


def test_no_line_is_wider_than_the_terminal(tmp_path: Path) -> None:
    """A line that is broken would be erased by halves. The name is cut, not the seconds; the output may go elsewhere."""
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


def test_a_question_has_the_terminal_to_itself(tmp_path: Path) -> None:
    """Nothing is drawn over it until it has been answered."""
    ask = '[nodes.ask]\ntool = "io.input"\ninputs = { message = "Name?" }\n'
    terminal = at(written(tmp_path, ask + NAP % "1"))

    before = terminal.see("Name? ")
    terminal.type("Ada\n")
    seen = terminal.rest()
    terminal.close()

    assert "of 2 done" not in before.partition("Name?")[2]
    assert seen.startswith("Ada\r\n") and seen.endswith('{"ask": "Ada", "nap": true}\r\n')


def test_an_approval_has_the_terminal_to_itself(tmp_path: Path) -> None:
    """The lines are gone while somebody is asked, and come again."""
    close = '[nodes.close]\ntool = "shop.close"\ninputs = { branch = "Oslo" }\n'
    terminal = at(
        written(tmp_path, close + NAP % "1"), "-p", str(ROOT / "docs" / "examples" / "shop.py"), size=(24, 80)
    )

    asked = terminal.see("[n] ")
    terminal.type("y\n")
    seen = terminal.rest()
    terminal.close()

    assert "of 2 done" not in asked.rpartition("\x1b[J")[2]
    assert seen.endswith('{"close": "Oslo is closed", "nap": true}\r\n')


def test_a_terminal_that_can_not_be_steered_gets_plain_lines(tmp_path: Path) -> None:
    """One for each node that has ended."""
    terminal = at(written(tmp_path, NAP % "0.1" + DONE), term="dumb")

    seen = terminal.rest()
    terminal.close()

    lines = ["hello", "done succeeded, 1 of 2 done", "nap succeeded, 2 of 2 done", '{"nap": true, "done": null}', ""]
    assert "\r\n".join(lines) == seen


def test_an_interrupt_ends_a_run_and_saves_what_there_is(tmp_path: Path) -> None:
    """With 130 and in one line; the node that ran says that it was interrupted."""
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
        pytest.param(says("It is cold."), Ran(0, "It is cold.\n"), id="answers"),
        pytest.param(
            refuses(),
            Ran(1, "that Oslo is cold\n", "neuroscript: the plan failed: synthesis: the model refused to answer\n"),
            id="refuses",
        ),
    ],
)
def test_a_model_is_asked_at_the_end_of_a_plan(
    step: Said | Raw, expected: Ran, server: ModelServer, tmp_path: Path
) -> None:
    """Its answer is what is written; where it gives none, what the plan gives, with an error."""
    server.script(step)

    ran = command(*asked_of(server, "run", written(tmp_path, ASKING)))

    assert expected == ran
    assert "that Oslo is cold" in server.requests[0].body["messages"][1]["content"]


def test_a_plan_that_asks_a_model_has_one_before_it_begins(tmp_path: Path) -> None:
    """A name that nobody knows ends the command; nothing has run."""
    ran = command("run", written(tmp_path, ASKING.replace("probe.echo", "probe.said")), "--model", "nobody")

    assert (2, "") == (ran.code, ran.out)
    assert "nobody" in ran.err and "cold" not in ran.err


GOOD = {"nodes": {"a": {"tool": "probe.echo", "inputs": {"text": "made"}}}}


def test_a_model_makes_a_plan_that_runs(server: ModelServer) -> None:
    """What it writes is what ``run`` takes; a bad one goes back to it."""
    server.script(says("a plan"), says(json.dumps(GOOD)))

    made = command(*asked_of(server, "plan", "Say it.", "--tools", "probe.e*"))
    ran = command("run", "-", stdin=made.out.encode())

    assert (0, "", GOOD) == (made.code, made.err, json.loads(made.out))
    assert "probe.tags" not in server.requests[0].body["messages"][0]["content"]
    assert Ran(0, "made\n") == ran


def test_a_model_that_makes_no_plan_is_told_of(server: ModelServer) -> None:
    """With the problems of its last one, and 2."""
    server.script(forever=says(json.dumps(GOOD).replace("echo", "ecko")))

    made = command(*asked_of(server, "plan", "Say it.", "--attempts", "2"))

    told = "no plan: nodes.a.tool: no tool is called probe.ecko; did you mean probe.echo?"
    assert Ran(2, "", f"neuroscript: {told}\n") == made
    assert 2 == len(server.requests)
