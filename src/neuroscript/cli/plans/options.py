"""The words of ``neuroscript run`` and ``plan``: which plan, what it is given, who makes it, and how far it may go."""

from __future__ import annotations

from typing import Any, Final

from neuroscript.cli.chat.models import APIS, KEYS, MODEL, address
from neuroscript.cli.chat.options import clean, count
from neuroscript.cli.env.options import add_keeping, add_world
from neuroscript.cli.terminal.arguments import add_subparser

RUN: Final = f"""\
All of the plan is checked before anything of it runs. Each node is a call like any other, under the
same policy and limits. On a terminal, the nodes that run are shown as long as they do. Exits 0 where
the plan has succeeded, 2 where it can not run here, else as call does for the first node that halted
it.

A plan with a synthesis asks a model at its end.

{KEYS}"""

PLAN: Final = f"""\
The model is told of the tools that may be called, and of each problem with its plan until the plan
fits. The plan goes to the standard output, as JSON that neuroscript run takes; nothing of it runs.
Exits 2 where no plan fits.

{KEYS}"""


def add_run(commands: Any, layout: Any) -> None:
    """Add ``run`` to the *commands* of the parser."""
    parser = add_subparser(commands, layout, "run", "run a plan", json_help="the trace in one line", description=RUN)
    option = parser.add_argument
    option("--input", metavar="KEY=VALUE", action="append", default=[], help="give the plan an input, as call does")
    option("--input-json", metavar="JSON|FILE", help="take the inputs from a JSON object, or a file of it; - is stdin")
    option("--parallel", metavar="N", type=count, default=16, help="how many calls may run at once; else 16")
    option("--check", action="store_true", help="run nothing; say whether the plan can run here, and why not")
    option("--durable", metavar="URL", help="keep the run in a database: sqlite:///FILE, postgresql://USER@HOST/NAME")
    option("--run-id", metavar="ID", type=clean, help="what a durable run is called; else a word that nobody guesses")
    option("--save", metavar="FILE", help="write the trace down, as JSON, also where the plan fails")
    option("--strict", action="store_true", help="take exact types alone, and repair nothing")
    add_model(parser)
    add_world(parser, None)
    add_keeping(parser)
    option("file", metavar="PLAN", help="a file of TOML, or of JSON where its name ends so; - is stdin")


def add_plan(commands: Any, layout: Any) -> None:
    """Add ``plan`` to the *commands* of the parser."""
    json_help = "the plan in one line, not over several"
    parser = add_subparser(commands, layout, "plan", "have a model make a plan", json_help=json_help, description=PLAN)
    option = parser.add_argument
    option("--tools", metavar="PATTERN", action="append", default=[], help="use these alone, as in 'math.*'; else all")
    option("--attempts", metavar="N", type=count, default=3, help="how many plans it may make; else 3")
    option("--strict", action="store_true", help="take exact types alone, and repair nothing")
    add_model(parser)
    add_world(parser, None)
    option("goal", metavar="GOAL", type=clean, help="what the plan is for, as one word; - is stdin")


def add_model(parser: Any) -> None:
    """Add what says which model is asked."""
    option = parser.add_argument
    option(
        "--model", metavar="NAME", type=clean, help=f"which one; else that of {MODEL}, else the default model of llm"
    )
    option("--base-url", metavar="URL", type=address, help="the address of a server that follows an API")
    option("--api", choices=APIS, default="", help=f"what is spoken there: {', '.join(APIS)}; else the first")
    parser.set_defaults(answer=None, timeout=None, no_stream=True)
