"""An application that provides its own logger, variables, sandbox, prompter and model to tools."""

import logging
import sys
import tempfile
from pathlib import Path

from neuroscript import Engine, ExecutionPolicy, Host, Runtime, ToolPolicy, Toolset, Turn


class World:
    def ask(self, asked, **options):  # as a prompter it receives a string, as a model the turns so far
        return "Ada" if isinstance(asked, str) else Turn("assistant", asked[-1].content.upper())


def report(rt: Runtime, path: str) -> str:
    """Add the two numbers in a file, and let the model report the sum."""
    total = rt.call_tool("math.add", rt.call_tool("fs.read", [path]).split())
    rt.logger.info("%s adds up to %s", path, total)
    return rt.llm.ask([Turn("user", f"{rt.get_var('greeting')} {rt.prompt_user('Name?')}, {total}")]).content


logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(name)s: %(message)s")
world = {"logger": logging.getLogger("desk"), "prompter": World(), "llm": World(), "variables": {"greeting": "Dear"}}
(app := Toolset("app")).tool(policy=ToolPolicy(capabilities=("fs:read:{path}", "model:use")))(report)
with tempfile.TemporaryDirectory() as directory:
    Path(directory, "numbers.txt").write_text("2 40")
    host = Host(sandbox_dir=directory, **world)
    with Engine(host=host, policy=ExecutionPolicy(grants=["fs:read:*", "model:use:*"]), toolsets=[app]) as engine:
        print(engine.call("app.report", ["numbers.txt"]))
