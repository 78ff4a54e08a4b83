"""Processes that run durable plans and may be killed; they are forked from a process that has loaded everything.

It reads one line of JSON for each child from its standard input, ``{"do", "url", "marks", "out", …}``, and writes the
child's process id.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from tests.workflow.durable import steps

import neuroscript.workflow.durable.execution
from neuroscript import ExecutionPolicy, Host
from neuroscript.llm import Model, model
from neuroscript.workflow.durable import Worker, resume, run_durably
from neuroscript.workflow.trace.trace import Trace


def main() -> None:
    """Fork a child for each line, and kill the remaining children at the end.

    Ended children are not reaped before, so that no other process can get the id of one.
    """
    children = []
    print("ready", flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        if "model" in task:
            client(task["model"]).close()  # imports its packages once and not in every child
        child = os.fork()
        if not child:
            run_child(task)
        children.append(child)
        print(child, flush=True)
    for child in children:
        os.kill(child, signal.SIGKILL)


def run_child(task: dict[str, Any]) -> None:
    """Do the task of a child, write its result, and end the process."""
    out = Path(task["out"])
    try:
        text = json.dumps(do_task(task))
    except BaseException as error:
        text = json.dumps({"failed": f"{type(error).__name__}: {error}"})
    out.with_suffix(".part").write_text(text)
    out.with_suffix(".part").rename(out)
    os._exit(0)


def do_task(task: dict[str, Any]) -> dict[str, Any]:
    """Do the task of a child."""
    url, lease = task["url"], task.get("lease", 60.0)
    with steps.engine(Path(task["marks"]), **settings(task)) as engine:
        match task["do"]:
            case "run":
                return summary(
                    run_durably(
                        engine, steps.layered(task.get("seconds", 0.04)), url=url, run_id=task["run"], lease=lease
                    )
                )
            case "questions":
                plan = steps.questions(rerun=task["rerun"])
                return summary(run_durably(engine, plan, url=url, run_id=task["run"], lease=lease))
            case "resume":
                return summary(resume(engine, url, task["run"], lease=lease, local_calls=task.get("local", True)))
            case "wide":
                plan = steps.wide(task["count"], task.get("seconds", 0.02))
                trace = run_durably(
                    engine, plan, url=url, run_id=task["run"], lease=lease, local_calls=False, parallel=50
                )
                return summary(trace)
            case "poisoned":
                plan = steps.poisoned(task["honest"])
                return summary(
                    run_durably(engine, plan, url=url, run_id=task["run"], lease=lease, local_calls=False, parallel=50)
                )
            case _:
                with Worker(engine, url, parallel=task["parallel"], lease=lease) as worker:
                    Path(task["out"]).with_suffix(".id").write_text(worker.id)
                    worker.wait()
                return {}


def settings(task: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the engine: a model, if the task has the address of its server."""
    if "model" not in task:
        return {}
    return {"host": Host(llm=client(task["model"])), "policy": ExecutionPolicy(grants=["model:use:*"])}


def client(base_url: str) -> Model:
    """Return a client of a model server."""
    return model("tiny", base_url=base_url, api="openai-chat", attempts=1)


def summary(trace: Trace) -> dict[str, Any]:
    """Return the relevant parts of a trace."""
    return {
        "status": trace.status,
        "nodes": {
            node.name: {
                "status": node.status,
                "result": None if node.result is None else node.result.hex(),
                "code": "" if node.error is None else node.error["code"],
                "attempts": len(node.attempts),
            }
            for node in trace.nodes
        },
    }


if __name__ == "__main__":
    assert neuroscript.workflow.durable.execution
    main()
