"""The expected form of each parameter of the public plan functions."""

from __future__ import annotations

from typing import Final

from neuroscript.coercion.parameters import BY_NAME, Form, instance, object_form, optional
from neuroscript.engine.session import Session
from neuroscript.workflow.plan.model import Plan

SESSION: Final = instance(Session, "pass an Engine or one of its sessions")
PLAN: Final = instance(Plan, "load_plan, plan_from_data and planned return one")
INPUTS: Final = optional(BY_NAME)
MODEL: Final = object_form("a model", "ask")
NUMBER: Final = Form("an integer", lambda value: type(value) is int)
PATTERNS: Final = Form(
    "a pattern of tools, or a collection of them",
    lambda value: isinstance(value, str) or hasattr(value, "__iter__"),
)
