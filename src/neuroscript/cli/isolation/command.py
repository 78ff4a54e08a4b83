"""``neuroscript isolation check``: prove each layer of the confinement, and list what every worker may read."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from neuroscript.cli.env.engine import MakeEngine
from neuroscript.cli.terminal.argument_parser import add_subparser
from neuroscript.cli.terminal.exit_codes import FAILED, OK, UsageError
from neuroscript.cli.terminal.inputs import count_of
from neuroscript.cli.terminal.output import EMPTY, Cell, Output, Rows, Style, cell, line
from neuroscript.cli.terminal.printing import show
from neuroscript.isolation.confinement import available, read_list
from neuroscript.isolation.system_calls import LIBC

if TYPE_CHECKING:
    from neuroscript.isolation.check import Proof

ACTIONS: Final = ("check",)

ISOLATION: Final = """\
A policy can run tools in worker processes, which the kernel confines. The layers of that confinement
differ between machines."""

CHECK: Final = """\
Tries each attack twice, in processes of its own: without confinement, where it has to succeed, and under
one layer alone, or under all of them together. Starts a worker, and prints the layers that confine it.
Also lists what every worker may read. Exits 1 if an attack is not blocked, otherwise 0."""

STYLES: Final[dict[str, Style]] = {
    "blocked": "good",
    "not blocked": "bad",
    "not provable here": "dim",
    "not available": "mended",
}

INDENT: Final = 2


def add_isolation(commands: Any, layout: Any) -> None:
    """Add the command with its action to the *commands* of the parser."""
    help = "show what confines isolated tools"
    parser = add_subparser(commands, layout, "isolation", help, description=ISOLATION)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    help = "try to break each layer of the confinement"
    add_subparser(actions, layout, "check", help, json_help="print the result as JSON", description=CHECK)


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Print what the attacks achieved, and return 1 if one is not blocked, otherwise 0.

    Raises:
        UsageError: There is no action.
    """
    if options.action is None:
        raise UsageError(f"expected an action: {', '.join(ACTIONS)} (see neuroscript isolation --help)")
    from neuroscript.cli.isolation.probe import layers_of_a_worker

    proofs = _prove()
    used = layers_of_a_worker()
    layers, places, added = available(), read_list(), _added_by_network()
    if options.json:
        output.json(
            {
                "ok": not any(each.outcome == "not blocked" for each in proofs),
                "layers": [
                    {"layer": name, "available": not reason, "reason": reason} for name, reason in layers.items()
                ],
                "worker": used,
                "attacks": [each._asdict() for each in proofs],
                "read": places,
                "read_with_network": added,
            }
        )
    else:
        show(_blocks(layers, used, proofs, places, added), output)
    return FAILED if any(each.outcome == "not blocked" for each in proofs) else OK


def _prove() -> Sequence[Proof]:
    """Return what the attacks achieved; none is tried where the kernel confines nothing."""
    if LIBC is None:
        return ()
    from neuroscript.isolation.check import prove

    return prove()


def _added_by_network() -> tuple[str, ...]:
    before = read_list()
    return tuple(place for place in read_list(network=True) if place not in before)


def _blocks(
    layers: dict[str, str], used: Sequence[str], proofs: Sequence[Proof], places: Sequence[str], added: Sequence[str]
) -> Iterator[Rows]:
    yield line("layers", "title")
    yield Rows(tuple(_layer_row(name, reason) for name, reason in layers.items()), indent=INDENT)
    yield from (EMPTY, line("layers of a worker", "title"), line(", ".join(used) or "none", indent=INDENT))
    if proofs:
        yield from (EMPTY, line("attacks", "title"))
        yield Rows(tuple(map(_proof_row, proofs)), indent=INDENT)
    yield from (EMPTY, line("every worker may read", "title"))
    yield from (line(place, indent=INDENT) for place in places)
    yield from (EMPTY, line("with the network also", "title"))
    yield from (line(place, indent=INDENT) for place in added)
    yield from (EMPTY, line(_summary(proofs)))


def _layer_row(name: str, reason: str) -> tuple[Cell, ...]:
    state = cell("not available", "mended") if reason else cell("available", "good")
    return cell(name, "name"), state, cell(reason)


def _proof_row(proof: Proof) -> tuple[Cell, ...]:
    return cell(proof.layer, "name"), cell(proof.attack), cell(proof.outcome, STYLES[proof.outcome]), cell(proof.reason)


def _summary(proofs: Sequence[Proof]) -> str:
    counts: Counter[str] = Counter(each.outcome for each in proofs)
    return f"{count_of(len(proofs), 'attack')}: " + ", ".join(f"{counts[name]} {name}" for name in STYLES)
