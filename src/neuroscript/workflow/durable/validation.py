"""What keeps a plan from being durable, besides what keeps it from running at all.

Source: issue "Beyond one machine"; contract section 5, secrets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from neuroscript.coercion.types import ArgType
from neuroscript.engine.session import Session
from neuroscript.errors import SpecError
from neuroscript.io.text import shown
from neuroscript.workflow.plan.model import Node, Plan
from neuroscript.workflow.plan.validation import check

KEPT: Final = "is secret, and what a durable run is given stands in its database as it is"
"""Why a plan is refused that hands a secret on, unless its host says that this may be."""


def check_durable(session: Session, plan: Plan, keep_secrets: bool) -> None:
    """Raise a `SpecError` with everything that keeps a plan from being run here, and from being durable.

    Args:
        keep_secrets: Whether secret inputs and arguments may stand in the database.
    """
    problems = list(check(session, plan))
    if not problems:
        problems += [] if keep_secrets else _secrets(session, plan)
        problems += _handles(session, plan)
    if problems:
        raise SpecError(f"plan {shown(plan.name)}" if plan.name else "plan", problems)


def _secrets(session: Session, plan: Plan) -> Iterator[str]:
    for arg in plan.inputs:
        if arg.holds_secret:
            yield f"inputs.{arg.name}: {KEPT}"
    for node in plan.nodes:
        for arg in session._entry(node.tool).line.tool.spec.args:
            if arg.holds_secret and node.inputs.get(arg.name) is not None:
                yield f"nodes.{node.name}.inputs.{arg.name}: {KEPT}"


def _handles(session: Session, plan: Plan) -> Iterator[str]:
    for node in plan.nodes:
        if ArgType.HANDLE in _types(session, node):
            yield f"nodes.{node.name}.tool: takes or gives a handle, which only the process knows that has made it"


def _types(session: Session, node: Node) -> Iterator[ArgType]:
    spec = session._entry(node.tool).line.tool.spec
    yield spec.return_type
    for arg in spec.args:
        yield arg.type
