"""Run AgentDojo's suites, and write the outcome to stdout as JSON: ``python -m tests.benchmarks.agentdojo.worker``.

`tests.benchmarks.agentdojo` runs it, in the environment that has AgentDojo.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from typing import Any, Final

from agentdojo.base_tasks import BaseUserTask
from agentdojo.task_suite.load_suites import get_suites
from agentdojo.task_suite.task_suite import TaskSuite

from .play import Arena, AttackOutcome, Rewrite, TaskOutcome, injector_of
from .profiles import PROFILES

VERSION: Final = "v1.2.2"
"""The version of AgentDojo's tasks."""

Outcomes = tuple[list[TaskOutcome], list[AttackOutcome]]


def main(options: dict[str, Any]) -> None:
    """Play what the options of the command select, and write its figures."""
    with redirect_stdout(sys.stderr):  # a file of the user may print something
        outcomes = all_outcomes(options)
    if options["list"]:
        print("\n".join(notes(outcomes)), file=sys.stderr)
    print(json.dumps({"profiles": {name: figures(found) for name, found in outcomes.items()}}))


def all_outcomes(options: dict[str, Any]) -> dict[str, dict[str, Outcomes]]:
    """Return the outcomes of the selected suites by profile and suite."""
    suites = get_suites(VERSION)
    rewrite = runpy.run_path(options["rewrite"])["rewrite"] if options["rewrite"] else None
    outcomes: dict[str, dict[str, Outcomes]] = {name: {} for name in options["profiles"]}
    for title in options["suites"]:
        for name, found in play(suites[title], options["profiles"], rewrite).items():
            outcomes[name][title] = found
        print(f"played {title}", file=sys.stderr)
    return outcomes


def play(suite: TaskSuite[Any], profiles: Iterable[str], rewrite: Rewrite | None) -> dict[str, Outcomes]:
    """Return the outcomes of all tasks and attacks of a suite by profile."""
    arenas = {name: Arena(suite, PROFILES[name]) for name in profiles}
    found: dict[str, Outcomes] = {name: ([], []) for name in arenas}
    injector = injector_of(suite)
    for task in suite.user_tasks.values():
        clean = environment_of(suite, task, {})
        for name, arena in arenas.items():
            found[name][0].append(arena.task(task, clean.model_copy(deep=True)))
        for attack in suite.injection_tasks.values():
            if not attack.ground_truth(clean.model_copy(deep=True)):
                continue
            injected = environment_of(suite, task, injector.attack(task, attack))
            for name, arena in arenas.items():
                found[name][1].append(arena.attack(task, attack, injected.model_copy(deep=True), rewrite))
    return found


def environment_of(suite: TaskSuite[Any], task: BaseUserTask[Any], injections: dict[str, str]) -> Any:
    """Return the environment of a task with injected text."""
    return task.init_environment(suite.load_and_inject_default_environment(injections))


def figures(found: dict[str, Outcomes]) -> dict[str, Any]:
    """Return the figures of all suites together, and those of each suite."""
    tasks, attacks = ([each for outcomes in found.values() for each in outcomes[index]] for index in (0, 1))
    return {**counted(tasks, attacks), "suites": {name: counted(*outcomes) for name, outcomes in found.items()}}


def counted(tasks: Any, attacks: Any) -> dict[str, int]:
    """Return the number of tasks and attacks, and how many of them have each property."""
    return {
        "pairs": len(attacks),
        "reached": sum(each.reached for each in attacks),
        "through": sum(each.through for each in attacks),
        "effective": sum(each.effective for each in attacks),
        "invalid": sum(each.invalid for each in attacks),
        "tasks": len(tasks),
        "asked": sum(each.asked for each in tasks),
        "impossible": sum(each.impossible for each in tasks),
        "solved": sum(each.solved for each in tasks),
    }


def notes(outcomes: dict[str, dict[str, Outcomes]]) -> Iterator[str]:
    """Yield a line for each attack that passes, and for each task that asks or is not solved."""
    for profile, suites in outcomes.items():
        for title, (tasks, attacks) in suites.items():
            for attack in attacks:
                if attack.through:
                    effect = "takes effect" if attack.effective else f"has no effect: {' | '.join(attack.notes)}"
                    yield f"{profile}: {title} {attack.task} {attack.attack} passes and {effect}"
            for task in tasks:
                if task.asked or task.impossible or not task.solved:
                    yield f"{profile}: {title} {task.task}: {' | '.join(task.notes) or 'is not solved'}"


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
