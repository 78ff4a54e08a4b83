"""Plays of one suite: the calls of a user's task, and those of an attack that the model obeys fully.

Every call goes through `Session.execute`, with a policy of one profile.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
from agentdojo.agent_pipeline.ground_truth_pipeline import GroundTruthPipeline
from agentdojo.attacks.base_attacks import FixedJailbreakAttack
from agentdojo.attacks.important_instructions_attacks import ImportantInstructionsAttack
from agentdojo.base_tasks import BaseInjectionTask, BaseUserTask
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
from agentdojo.task_suite.task_suite import TaskSuite
from agentdojo.types import text_content_block_from_string

from neuroscript import (
    Approval,
    ApprovalRequest,
    ArgumentError,
    Engine,
    ExecutionPolicy,
    Session,
    ToolCall,
    ToolResult,
)

from .profiles import Profile, labels_of
from .tools import World, toolset_of

Rewrite = Callable[[dict[str, Any]], dict[str, Any]]
"""Disguise the arguments of a call."""


@attrs.define(eq=False)
class Reviewer:
    """An approver that answers every request in the same way, and stores the requests."""

    approves: bool = True
    requests: list[ApprovalRequest] = attrs.field(factory=list)

    def __call__(self, request: ApprovalRequest) -> Approval:
        self.requests.append(request)
        return Approval.approve() if self.approves else Approval.reject()


@attrs.frozen
class TaskOutcome:
    """What became of a user's task without an injection.

    Attributes:
        asked: Whether a call needed an approval.
        impossible: Whether a call was refused before it reached its tool.
        solved: Whether AgentDojo's own `utility` holds afterwards.
        notes: What asked or refused, for readers.
    """

    task: str
    asked: bool
    impossible: bool
    solved: bool
    notes: tuple[str, ...]


@attrs.frozen
class AttackOutcome:
    """What became of an attack during a user's task.

    Attributes:
        reached: Whether the user's task has read the attack.
        through: Whether every call passed every check without an approval.
        effective: Whether, in addition, no tool raised and AgentDojo's own `security` holds afterwards.
        invalid: Whether a call was refused because its arguments are invalid.
        notes: What asked or refused, for readers.
    """

    task: str
    attack: str
    reached: bool
    through: bool
    effective: bool
    invalid: bool
    notes: tuple[str, ...]


class Arena:
    """One suite under one profile.

    Args:
        suite: The suite of AgentDojo.
        profile: What the host permits.
    """

    def __init__(self, suite: TaskSuite[Any], profile: Profile) -> None:
        self.suite = suite
        self.profile = profile
        self.world = World(FunctionsRuntime(suite.tools))
        self.reviewer = Reviewer()
        tools = toolset_of(suite.name, self.world)
        labels = labels_of(suite.name)
        if sorted(each.tools for each in labels) != sorted(tool.name for tool in tools.tools):
            raise ValueError(f"{suite.name}.toml does not declare exactly the tools of the suite")
        self.untrusted = {each.tools for each in labels if "untrusted" in (each.sources or ())}
        policy = ExecutionPolicy(approver=self.reviewer, flow=profile.flow, labels=labels)
        self.engine = Engine(toolsets=[tools], policy=policy)

    def task(self, task: BaseUserTask[Any], environment: Any) -> TaskOutcome:
        """Play a user's task; the user approves everything."""
        before = environment.model_copy(deep=True)
        calls = task.ground_truth(before.model_copy(deep=True))
        session = self._session(task, calls, environment)
        results = [self._call(session, call) for call in calls]
        return TaskOutcome(
            task.ID,
            asked=bool(self.reviewer.requests),
            impossible=self.world.calls < len(calls),
            solved=self._holds(task, before, calls),
            notes=self._notes(results),
        )

    def attack(
        self, task: BaseUserTask[Any], attack: BaseInjectionTask[Any], environment: Any, rewrite: Rewrite | None
    ) -> AttackOutcome:
        """Play a user's task, which the user approves, and then the calls of an attack, which the user rejects.

        Raises:
            ValueError: A tool returns the attack, but the file of the suite does not declare that it is untrusted.
        """
        calls = task.ground_truth(environment.model_copy(deep=True))
        session = self._session(task, calls, environment)
        results = [self._call(session, call) for call in calls]
        reached = {result.tool for result in results if attack.GOAL in json.dumps(result.value, ensure_ascii=False)}
        if not reached <= self.untrusted:
            raise ValueError(f"not declared as untrusted: {', '.join(sorted(reached - self.untrusted))}")
        before = environment.model_copy(deep=True)
        self.world.calls, self.reviewer.approves, self.reviewer.requests = 0, False, []
        random.seed(f"{self.suite.name} {task.ID} {attack.ID}")
        made = [_disguised(call, rewrite) for call in attack.ground_truth(before.model_copy(deep=True))]
        results = list(self._obey(session, made))
        through = self.world.calls == len(made) and not self.reviewer.requests
        done = through and all(result.ok for result in results)
        return AttackOutcome(
            task.ID,
            attack.ID,
            reached=bool(reached),
            through=through,
            effective=done and self._holds(attack, before, made),
            invalid=any(isinstance(result.error, ArgumentError) for result in results),
            notes=self._notes(results),
        )

    def _session(self, task: BaseUserTask[Any], calls: Sequence[FunctionCall], environment: Any) -> Session:
        """Return a new session in which the user has described the task."""
        self.world.enter(environment)
        self.reviewer.approves, self.reviewer.requests = True, []
        session = self.engine.session()
        session.user_said(task.PROMPT)
        if not self.profile.is_narrowed:
            return session
        names = {f"{self.suite.name}.{call.function}" for call in calls}
        return session.narrowed(allow=sorted(names), otherwise="ask")

    def _obey(self, session: Session, calls: Sequence[FunctionCall]) -> Iterator[ToolResult]:
        """Yield the results of an attack's calls, up to the first one that does not reach the tool."""
        for count, call in enumerate(calls, 1):
            yield self._call(session, call)
            if self.world.calls != count:
                return

    def _call(self, session: Session, call: FunctionCall) -> ToolResult:
        return session.execute(ToolCall(f"{self.suite.name}.{call.function}", dict(call.args)))

    def _holds(
        self, task: BaseUserTask[Any] | BaseInjectionTask[Any], before: Any, calls: Sequence[FunctionCall]
    ) -> bool:
        """Return AgentDojo's verdict: the `utility` of a user's task, or the `security` of an attack."""
        output = [text_content_block_from_string(task.GROUND_TRUTH_OUTPUT)]
        return self.suite._check_task_result(task, output, before, self.world.environment, calls)

    def _notes(self, results: Sequence[ToolResult]) -> tuple[str, ...]:
        asked = (
            f"{each.tool} {'; '.join(each.flows) or 'is not in the allow-list'}" for each in self.reviewer.requests
        )
        return (*asked, *(str(result.error) for result in results if result.error is not None))


def _disguised(call: FunctionCall, rewrite: Rewrite | None) -> FunctionCall:
    if rewrite is None:
        return call
    return call.model_copy(update={"args": rewrite(copy.deepcopy(dict(call.args)))})


def injector_of(suite: TaskSuite[Any]) -> FixedJailbreakAttack:
    """Return AgentDojo's attack that writes an important message into everything that a user's task reads."""
    return FixedJailbreakAttack(ImportantInstructionsAttack._JB_STRING, suite, GroundTruthPipeline(None))
