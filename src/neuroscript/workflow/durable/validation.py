"""The checks that a plan can run durably, in addition to the checks that it can run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from neuroscript.coercion.types import ArgType
from neuroscript.engine.session import Session
from neuroscript.errors import SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.spec.tool_spec import ArgSpec
from neuroscript.workflow.plan.flows import InputLabels
from neuroscript.workflow.plan.model import Node, Plan
from neuroscript.workflow.plan.validation import check

STORED_PLAINLY: Final = "is secret, and a durable run stores inputs and arguments unencrypted in its database"
"""Why a plan with a secret input or argument is refused, unless the host allows it."""


def check_durable(session: Session, plan: Plan, keep_secrets: bool, labels: InputLabels | None = None) -> None:
    """Raise a `SpecError` with everything that prevents a plan from running here durably.

    Args:
        keep_secrets: Whether secret inputs and arguments may be stored in the database.
        labels: The labels of inputs, by name.
    """
    problems = list(check(session, plan, labels=labels))
    if not problems:
        problems += [] if keep_secrets else _secrets(session, plan)
        problems += _handles(session, plan)
    if problems:
        raise SpecError(f"plan {quote_untrusted(plan.name)}" if plan.name else "plan", problems)


def _secrets(session: Session, plan: Plan) -> Iterator[str]:
    for arg in plan.inputs:
        if arg.holds_secret:
            yield f"inputs.{arg.name}: {STORED_PLAINLY}"
    for node in plan.nodes:
        for arg in session._entry(node.tool).pipeline.tool.spec.args:
            if arg.holds_secret and node.inputs.get(arg.name) is not None:
                yield f"nodes.{node.name}.inputs.{arg.name}: {STORED_PLAINLY}"


def _handles(session: Session, plan: Plan) -> Iterator[str]:
    for node in plan.nodes:
        if ArgType.HANDLE in _types(session, node):
            yield f"nodes.{node.name}.tool: takes or returns a handle, which is valid only in the process that made it"


def _types(session: Session, node: Node) -> Iterator[ArgType]:
    spec = session._entry(node.tool).pipeline.tool.spec
    yield spec.return_type
    for arg in (*spec.args, *([spec.returns] if spec.returns is not None else [])):
        yield from _types_in(arg)


def _types_in(arg: ArgSpec) -> Iterator[ArgType]:
    yield arg.type
    for each in arg.nested:
        yield from _types_in(each)
