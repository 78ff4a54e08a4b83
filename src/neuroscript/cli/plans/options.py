"""Options of ``neuroscript run`` and ``neuroscript plan``."""

from __future__ import annotations

from typing import Any, Final

from neuroscript.cli.chat.models import APIS, KEYS, MODEL, address
from neuroscript.cli.chat.options import clean, count
from neuroscript.cli.env.options import add_environment, add_recording
from neuroscript.cli.terminal.argument_parser import add_subparser

RUN: Final = f"""\
The whole plan is validated before it runs. Each node is a tool call under the same policy and limits
as any other. A terminal shows the nodes that are running. Exits 0 if the plan succeeds, 2 if it cannot
run here, otherwise as call does for the first node that halted the plan.

A plan with a synthesis asks a model at the end.

{KEYS}"""

PLAN: Final = f"""\
The model receives the tools that may be called here, and the problems of each invalid plan, until its
plan is valid. The plan is printed to stdout as JSON for neuroscript run; nothing is run. Exits 2 if
the model makes no valid plan.

{KEYS}"""


def add_run(commands: Any, layout: Any) -> None:
    """Add ``run`` to the *commands* of the parser."""
    json_help = "print the trace as one line of JSON"
    parser = add_subparser(commands, layout, "run", "run a plan", json_help=json_help, description=RUN)
    option = parser.add_argument
    option("--input", metavar="KEY=VALUE", action="append", default=[], help="set an input of the plan")
    option("--input-json", metavar="JSON|FILE", help="read the inputs from a JSON object or a file; - is stdin")
    option("--parallel", metavar="N", type=count, default=16, help="maximum concurrent calls; default 16")
    option("--check", action="store_true", help="run nothing; print whether the plan can run here, and why not")
    option("--durable", metavar="URL", help="store the run in a database: sqlite:///FILE, postgresql://USER@HOST/NAME")
    option("--run-id", metavar="ID", type=clean, help="id of the durable run; default: a random id")
    option("--save", metavar="FILE", help="write the trace to a file as JSON, even if the plan fails")
    option("--strict", action="store_true", help="accept only exact types; convert nothing")
    add_model(parser)
    add_environment(parser, None)
    add_recording(parser)
    option("file", metavar="PLAN", help="the plan: JSON if the name ends in .json, otherwise TOML; - is stdin")


def add_plan(commands: Any, layout: Any) -> None:
    """Add ``plan`` to the *commands* of the parser."""
    json_help = "print the plan in one line"
    parser = add_subparser(commands, layout, "plan", "have a model make a plan", json_help=json_help, description=PLAN)
    option = parser.add_argument
    option(
        "--tools",
        metavar="PATTERN",
        action="append",
        default=[],
        help="use only matching tools, such as 'math.*'; default: all",
    )
    option("--attempts", metavar="N", type=count, default=3, help="maximum plans that the model may make; default 3")
    option("--strict", action="store_true", help="accept only exact types; convert nothing")
    add_model(parser)
    add_environment(parser, None)
    option("goal", metavar="GOAL", type=clean, help="the goal of the plan, in quotes; - is stdin")


def add_model(parser: Any) -> None:
    """Add the options that select the model."""
    option = parser.add_argument
    option("--model", metavar="NAME", type=clean, help=f"the model; default: {MODEL}, then the default model of llm")
    option("--base-url", metavar="URL", type=address, help="base URL of a model server")
    option("--api", choices=APIS, default="", help=f"API of the model server: {', '.join(APIS)}; default: the first")
    parser.set_defaults(answer_type=None, timeout=None, no_stream=True)
