"""``neuroscript plan``: have a model make a plan for a goal, and validate it without running it."""

from __future__ import annotations

import json
from argparse import Namespace

from neuroscript.cli.chat.conversation import open_model
from neuroscript.cli.env.engine import MakeEngine, open_engine
from neuroscript.cli.terminal.exit_codes import OK, USAGE, UsageError
from neuroscript.cli.terminal.inputs import STDIN, text_of
from neuroscript.cli.terminal.output import Output
from neuroscript.cli.terminal.spinner import Spinner
from neuroscript.errors import SpecError
from neuroscript.workflow.plan.file import plan_to_data
from neuroscript.workflow.plan.planner import make_plan


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Have a model make a plan, print it, and return the exit code.

    Raises:
        UsageError: The goal is empty or cannot be read.
        LLMError: There is no model, or it does not answer.
    """
    goal = text_of(STDIN) if options.goal == STDIN else options.goal
    if not goal.strip():
        raise UsageError("the goal is empty (see neuroscript plan --help)")
    waiting = Spinner(not options.json)
    with open_model(options) as model, open_engine(make_engine, output, options, llm=model) as engine:
        waiting.start()
        try:
            plan = make_plan(engine, model, goal, tools=options.tools or "*", attempts=options.attempts)
        except SpecError as error:
            waiting.stop()
            for problem in error.problems:
                output.say(f"no valid plan: {problem}")
            return USAGE
        finally:
            waiting.stop()
    data = plan_to_data(plan)
    if options.json:
        output.json(data)
    else:
        output.text(json.dumps(data, indent=2))
    return OK
