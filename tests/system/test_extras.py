"""Behavior without extras: each feature that needs one says which, and everything else works.

A new extra, or a new module that needs one, fails here until it has a row.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
from tests.core_only import SOURCE, alone, installed

from neuroscript._imports import install_hint

DURABLE: Final = "durable runs need SQLAlchemy"
LLM: Final = "needs that package"
SERVING: Final = "serving over MCP needs its SDK"
SERVING_HTTP: Final = "serving over HTTP needs Starlette and uvicorn"
TAKING: Final = "loading LangChain tools needs langchain-core"

MODULES: Final = {
    "neuroscript.cli.chat.llm_toolbox": (f"the toolbox for llm {LLM}", "llm"),
    "neuroscript.cli.terminal.rich_pages": ("coloured pages need rich", "cli"),
    "neuroscript.gateway.gateway": ("a gateway needs the SDK of MCP", "gateway"),
    "neuroscript.gateway.http": ("a gateway needs the SDK of MCP", "gateway"),
    "neuroscript.gateway.metrics": ("metrics of a gateway need prometheus-client", "gateway"),
    "neuroscript.interop.fastmcp.export": ("tools for FastMCP need it", "fastmcp"),
    "neuroscript.interop.fastmcp.load": ("tools of FastMCP need it", "fastmcp"),
    "neuroscript.interop.http_server.guard": (SERVING_HTTP, "serve"),
    "neuroscript.interop.http_server.listener": (SERVING_HTTP, "serve"),
    "neuroscript.interop.inspect_ai": ("tools for Inspect need inspect-ai", "inspect-ai"),
    "neuroscript.interop.langchain.load": (TAKING, "langchain"),
    "neuroscript.interop.langchain.export": ("tools for LangChain need langchain-core", "langchain"),
    "neuroscript.interop.langchain.schemas": (TAKING, "langchain"),
    "neuroscript.interop.llm.export": (f"exporting tools to llm {LLM}", "llm"),
    "neuroscript.interop.llm.load": (f"loading tools of llm {LLM}", "llm"),
    "neuroscript.interop.mcp.server.elicitation": (SERVING, "mcp"),
    "neuroscript.interop.http_server.metadata": (SERVING_HTTP, "serve"),
    "neuroscript.interop.http_server.access_tokens": ("verifying access tokens needs PyJWT and HTTPX", "mcp"),
    "neuroscript.interop.http_server.introspection": ("verifying access tokens needs PyJWT and HTTPX", "mcp"),
    "neuroscript.interop.http_server.issuer_keys": ("verifying access tokens needs PyJWT and HTTPX", "mcp"),
    "neuroscript.interop.mcp.client.login": ("reaching an MCP server needs the SDK of MCP", "mcp"),
    "neuroscript.interop.mcp.client.oauth": ("reaching an MCP server needs the SDK of MCP", "mcp"),
    "neuroscript.interop.mcp.server.principals": (SERVING, "mcp"),
    "neuroscript.interop.mcp.client.size_limits": ("reaching an MCP server needs the SDK of MCP", "mcp"),
    "neuroscript.interop.mcp.server.client_session": (SERVING, "mcp"),
    "neuroscript.interop.mcp.client.answers": ("reaching an MCP server needs the SDK of MCP", "mcp"),
    "neuroscript.interop.mcp.client.tasks": ("reaching an MCP server needs the SDK of MCP", "mcp"),
    "neuroscript.interop.mcp.client.sdk": ("reaching an MCP server needs the SDK of MCP", "mcp"),
    "neuroscript.interop.mcp.server.http": (SERVING, "mcp"),
    "neuroscript.interop.mcp.server.logs": (SERVING, "mcp"),
    "neuroscript.interop.mcp.client.pending_requests": ("reaching an MCP server needs the SDK of MCP", "mcp"),
    "neuroscript.interop.mcp.server.prompts": (SERVING, "mcp"),
    "neuroscript.interop.mcp.server.request": (SERVING, "mcp"),
    "neuroscript.interop.mcp.server.request_states": (SERVING, "mcp"),
    "neuroscript.interop.mcp.server.resources": (SERVING, "mcp"),
    "neuroscript.interop.mcp.server.served_calls": (SERVING, "mcp"),
    "neuroscript.interop.mcp.server.serve": (SERVING, "mcp"),
    "neuroscript.interop.mcp.server.standard_input": (SERVING, "mcp"),
    "neuroscript.interop.mcp.server.tasks": (SERVING, "mcp"),
    "neuroscript.interop.mcp.client.transports": ("reaching an MCP server needs the SDK of MCP", "mcp"),
    "neuroscript.interop.arguments_model": ("classes of arguments need Pydantic", "pydantic"),
    "neuroscript.interop.crewai": ("tools for CrewAI need it", "crewai"),
    "neuroscript.interop.google_adk": ("tools for Google ADK need it", "google-adk"),
    "neuroscript.interop.llama_index": ("tools for LlamaIndex need llama-index-core", "llama-index"),
    "neuroscript.interop.openapi.serve": (SERVING_HTTP, "serve"),
    "neuroscript.interop.openai_agents": ("tools for the OpenAI Agents SDK need it", "openai-agents"),
    "neuroscript.interop.opentelemetry": ("tracing needs OpenTelemetry", "otel"),
    "neuroscript.interop.pydantic_ai": ("a toolset for Pydantic AI needs it", "pydantic-ai"),
    "neuroscript.state.postgresql": ("shared state in PostgreSQL needs psycopg and psycopg-pool", "state"),
    "neuroscript.workflow.durable.dispatcher": (DURABLE, "durable"),
    "neuroscript.workflow.durable.calls": (DURABLE, "durable"),
    "neuroscript.workflow.durable.database": (DURABLE, "durable"),
    "neuroscript.workflow.durable.leader": (DURABLE, "durable"),
    "neuroscript.workflow.durable.inspection": (DURABLE, "durable"),
    "neuroscript.workflow.durable.outcomes": (DURABLE, "durable"),
    "neuroscript.workflow.durable.pool": (DURABLE, "durable"),
    "neuroscript.workflow.durable.retention": (DURABLE, "durable"),
    "neuroscript.workflow.durable.rows": (DURABLE, "durable"),
    "neuroscript.workflow.durable.execution": (DURABLE, "durable"),
    "neuroscript.workflow.durable.run_records": (DURABLE, "durable"),
    "neuroscript.workflow.durable.schema": (DURABLE, "durable"),
    "neuroscript.workflow.durable.takeover": (DURABLE, "durable"),
    "neuroscript.workflow.durable.wakeup": (DURABLE, "durable"),
    "neuroscript.workflow.durable.worker_registry": (DURABLE, "durable"),
    "neuroscript.workflow.durable.worker": (DURABLE, "durable"),
}
"""The modules that cannot be imported without an extra: the feature that needs it, and the extra."""

LOADED_BY: Final = {
    "neuroscript.publishing.hatch": "hatchling",
    "neuroscript.testing.plugin": "pytest",
}
"""Modules that are loaded by the program that they require."""

NOT_LOADED: Final = {"console", "docs", "msgspec"}
"""Extras that no feature can lack: the site's, and one for classes of annotations, which do not exist without it."""

NUMPY: Final = """
from neuroscript import from_function

def do(many: int) -> int:
    '''Do it.

    Parameters
    ----------
    many : int
        How often.
    '''

from_function(do, group="g")
"""

TWO_TYPES: Final = """
from neuroscript import spec_from_schema

spec_from_schema("do", {"properties": {"it": {"anyOf": [{"type": "integer"}, {"const": "all"}]}}}, group="g")
"""

LINES: Final = (
    (
        "cli",
        "from neuroscript.cli import main; main(['completion', 'bash'])",
        f"neuroscript: completion needs argcomplete; install it with: {install_hint('cli')}\n",
    ),
    (
        "durable",
        "from neuroscript.workflow.durable import run_durably",
        f"ModuleNotFoundError: durable runs need SQLAlchemy; install it with: {install_hint('durable')}",
    ),
    (
        "durable",
        "from neuroscript.cli import main; main(['runs', 'list', 'sqlite:///runs.sqlite'])",
        f"neuroscript: durable runs need SQLAlchemy; install it with: {install_hint('durable')}\n",
    ),
    (
        "functions",
        NUMPY,
        f"SpecError: do: its docstring is not in Google style; to read other styles: {install_hint('functions')}",
    ),
    (
        "llm",
        "from neuroscript.llm import model; model('tiny')",
        "LLMError: the package llm, which resolves model names, is not installed; "
        f"install it with: {install_hint('llm')}",
    ),
    (
        "llm",
        "from neuroscript.llm import model; model('tiny', base_url='http://127.0.0.1:1')",
        f"LLMError: the SDK of OpenAI is not installed; install it with: {install_hint('llm')}",
    ),
    (
        "llm",
        "from neuroscript.cli import main; main(['models', 'list'])",
        "neuroscript: the package llm, which resolves model names, is not installed; "
        f"install it with: {install_hint('llm')}\n",
    ),
    (
        "fastmcp",
        "from neuroscript.interop.agentheaven import ToolSpec; ToolSpec.from_function(lambda: None, name='it').to_fastmcp()",
        f"ModuleNotFoundError: tools for FastMCP need it; install it with: {install_hint('fastmcp')}",
    ),
    (
        "fastmcp",
        "from neuroscript.interop.fastmcp import from_fastmcp",
        f"ModuleNotFoundError: tools of FastMCP need it; install it with: {install_hint('fastmcp')}",
    ),
    (
        "crewai",
        "from neuroscript.interop.crewai import to_crewai",
        f"ModuleNotFoundError: tools for CrewAI need it; install it with: {install_hint('crewai')}",
    ),
    (
        "google-adk",
        "from neuroscript.interop.google_adk import to_google_adk",
        f"ModuleNotFoundError: tools for Google ADK need it; install it with: {install_hint('google-adk')}",
    ),
    (
        "llama-index",
        "from neuroscript.interop.llama_index import to_llama_index",
        "ModuleNotFoundError: tools for LlamaIndex need llama-index-core; "
        f"install it with: {install_hint('llama-index')}",
    ),
    (
        "inspect-ai",
        "from neuroscript.interop.inspect_ai import to_inspect_ai",
        f"ModuleNotFoundError: tools for Inspect need inspect-ai; install it with: {install_hint('inspect-ai')}",
    ),
    (
        "langchain",
        "from neuroscript.interop.langchain import from_langchain",
        "ModuleNotFoundError: loading LangChain tools needs langchain-core; "
        f"install it with: {install_hint('langchain')}",
    ),
    (
        "llm",
        "from neuroscript.interop.llm import to_llm",
        f"ModuleNotFoundError: exporting tools to llm needs that package; install it with: {install_hint('llm')}",
    ),
    (
        "anthropic",
        "from neuroscript.llm import model; model('tiny', base_url='http://127.0.0.1:1', api='anthropic')",
        f"LLMError: the SDK of Anthropic is not installed; install it with: {install_hint('anthropic')}",
    ),
    (
        "mcp",
        "from neuroscript.interop.mcp import serve",
        f"ModuleNotFoundError: serving over MCP needs its SDK; install it with: {install_hint('mcp')}",
    ),
    (
        "mcp",
        "from neuroscript.interop.mcp import from_mcp; from_mcp(['true'], group='g')",
        f"SpecError: mcp: the MCP SDK is not installed; install it with: {install_hint('mcp')}",
    ),
    (
        "mcp",
        "from neuroscript.cli import main; main(['mcp', 'serve'])",
        f"neuroscript: serving over MCP needs its SDK; install it with: {install_hint('mcp')}\n",
    ),
    (
        "mcp",
        "from neuroscript.cli import main; main(['mcp', 'tools', '--group', 'g', '--', 'true'])",
        f"neuroscript: mcp: the MCP SDK is not installed; install it with: {install_hint('mcp')}\n",
    ),
    (
        "mcp",
        "from neuroscript.interop.agentheaven import ToolSpec; ToolSpec.from_function(lambda: None, name='it').to_mcp()",
        f"ModuleNotFoundError: ToolSpec.to_mcp needs the SDK of MCP; install it with: {install_hint('mcp')}",
    ),
    (
        "openai-agents",
        "from neuroscript.interop.openai_agents import to_openai_agents",
        "ModuleNotFoundError: tools for the OpenAI Agents SDK need it; "
        f"install it with: {install_hint('openai-agents')}",
    ),
    (
        "pydantic-ai",
        "from neuroscript.interop.pydantic_ai import to_pydantic_ai",
        f"ModuleNotFoundError: a toolset for Pydantic AI needs it; install it with: {install_hint('pydantic-ai')}",
    ),
    (
        "otel",
        "from neuroscript.interop.opentelemetry import OpenTelemetry",
        f"ModuleNotFoundError: tracing needs OpenTelemetry; install it with: {install_hint('otel')}",
    ),
    (
        "schema",
        TWO_TYPES,
        "SpecError: g.do: the schema has constraints that a spec cannot express; "
        f"install the validator with: {install_hint('schema')}",
    ),
)
"""For each extra, an action without it, and the complete output."""


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that contains only the installed core and its dependencies."""
    return installed(tmp_path_factory.mktemp("core"))


def output_without_extras(core: Path, code: str, *words: str) -> Any:
    """Return the JSON that code writes in a process that can import only the core."""
    done = alone(core, code, *words, env={"HOME": str(core), "LLM_USER_PATH": str(core)})
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def bringing() -> set[str]:
    """Return the extras for users; `test`, `bench`, `docs` and `dev` are for development."""
    extras = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    ours = re.compile(r"neuroscript\b")
    libraries = {name for name, wanted in extras.items() if not all(map(ours.match, wanted))}
    return libraries - {"test", "bench", "docs", "dev"}


def test_each_extra_has_a_row() -> None:
    rows = {extra for extra, _, _ in LINES} | {extra for _, extra in MODULES.values()}

    assert bringing() - NOT_LOADED == rows


SAID: Final = """
import contextlib, io, json

def said(lines):
    received = io.StringIO()
    with contextlib.redirect_stdout(received), contextlib.redirect_stderr(received):
        try:
            exec(lines, {"__name__": "row"})
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return received.getvalue()

print(json.dumps([said(lines) for lines in json.loads(sys.argv[1])]))
"""


def test_missing_extra_is_named(core: Path) -> None:
    """This covers code, commands and imports."""
    received = output_without_extras(core, SAID, json.dumps([lines for _, lines, _ in LINES]))

    assert [sentence for _, _, sentence in LINES] == received
    assert all(install_hint(extra) in sentence for extra, _, sentence in LINES)


WALKED: Final = """
import json, pkgutil
from importlib import import_module
import neuroscript

failed, names = {}, [each.name for each in pkgutil.walk_packages(neuroscript.__path__, "neuroscript.")]
for name in names:
    try:
        import_module(name)
    except ImportError as error:
        failed[name] = str(error)
print(json.dumps([len(names), failed]))
"""


def test_each_module_can_be_imported_or_names_its_extra(core: Path) -> None:
    """No other import error reaches the user."""
    count, failed = output_without_extras(core, WALKED)

    console = f"the web console needs Starlette, uvicorn and Jinja2; install it with: {install_hint('console')}"
    assert count > 200
    assert failed == {
        "neuroscript.console": console,  # so the walk finds none of its modules
        **{name: f"{what}; install it with: {install_hint(extra)}" for name, (what, extra) in MODULES.items()},
        **{name: f"No module named '{library}'" for name, library in LOADED_BY.items()},
    }


def test_public_names_work_without_extras(core: Path) -> None:
    """All names of the root package are covered."""
    code = "import json, neuroscript; print(json.dumps([hasattr(neuroscript, name) for name in neuroscript.__all__]))"

    assert all(output_without_extras(core, code))
