"""Arguments into exact values, in the order of a spec: once as a plain walk, and once as statements to be compiled.

The walk (`bound`) is what the contract says: it knows every rule and finds every problem. The
statements (`positional`, `named`) only see what needs no second look, such as an int where an int is declared; at the
first doubt they hand the whole call over to the walk. The tests run every case through both.

Source: contract sections 2 and 3; performance.md part 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from neuroscript.argtypes import ELEMENTS, LISTS, ArgType
from neuroscript.checks import instance, require
from neuroscript.coercion import ABSENT, absent, bounded, further, given, members
from neuroscript.errors import UNSET, ArgumentError, Problem
from neuroscript.scalars import EXACT, READINGS, Misfit
from neuroscript.spec import ArgSpec, ToolSpec
from neuroscript.values import bulk_text, by_text, items_of
from neuroscript.walk import FAILED, LAX, MISSING, Coercion, Exceeded, Walk, type_name

SPEC: Final = instance(ToolSpec)

SHORT: Final = 12
"""Up to this length a list is looked through item by item, above it in bulk; there the two cost the same."""


def bind(spec: ToolSpec, args: Sequence[object]) -> tuple[Any, ...]:
    """Return one exact value for each argument of *spec*, in order.

    Args:
        args: What the caller gave, a list or a tuple; may be shorter than the spec, never longer unless it is variadic.

    Returns:
        A tuple as long as ``spec.args``, each value of the exact built-in its `ArgType` names, or None for an optional
        one that was not given. Of a variadic spec, each further value follows.

    Raises:
        ArgumentError: With every problem found, not only the first.

    Source: contract section 3; upstream ``validateAndCoerceArgs``.
    """
    if type(spec) is not ToolSpec:
        require("bind", spec=(spec, SPEC))
    return bound(spec, LAX, args, by_name=False)


def bind_named(spec: ToolSpec, mapping: Mapping[str, object]) -> tuple[Any, ...]:
    """Return the same as `bind` for arguments by name, a dict; a variadic argument is given as a list."""
    if type(spec) is not ToolSpec:
        require("bind_named", spec=(spec, SPEC))
    return bound(spec, LAX, mapping, by_name=True)


class CallWalk(Walk):
    """The walk over the arguments of one call.

    Attributes:
        spec: The tool; it is set where a problem was noted.
    """

    spec: ToolSpec

    def problems(self) -> list[Problem]:
        """Return what was noted."""
        from neuroscript.problems import Rules, problems_of

        args = self.spec.args
        return problems_of(self, Rules(args, further=args[-1] if self.spec.variadic else None))


def bound(spec: ToolSpec, coercion: Coercion, args: object, *, by_name: bool) -> tuple[Any, ...]:
    """Return the exact values of what was given, on the terms of *coercion*, or raise an `ArgumentError`."""
    walk = CallWalk(coercion)
    try:
        values = _by_name(walk, spec, args) if by_name else _by_position(walk, spec, args)
    except (Exceeded, RecursionError) as end:
        walk.ended(end)
    if walk.noted:
        walk.spec = spec
        raise ArgumentError(walk.problems, spec.full_name, walk.noted)
    if spec.schema:
        _ask_schema(spec, values)
    return tuple([None if value is ABSENT else value for value in values])


def _ask_schema(spec: ToolSpec, values: list[Any]) -> None:
    """Hold exact values to what a schema asks beyond the spec; an argument without a value is not there for it."""
    from neuroscript.beyond import checker_of
    from neuroscript.jsonable import plain

    checker = checker_of(spec.schema)
    if checker is None:
        return
    by_name = spec.by_name(values)
    rules = {arg.name: arg for arg in spec.args}
    given = {
        name: plain(value)
        for name, value in by_name.items()
        if value is not ABSENT and (value is not None or rules[name].nullable)
    }
    problems = checker.problems(given)
    if problems:
        raise ArgumentError(problems, spec.full_name)


def _by_position(walk: Walk, spec: ToolSpec, args: Any) -> list[Any]:
    items = args if type(args) is tuple else _in_order(spec, args)
    rules = spec.args[:-1] if spec.variadic else spec.args
    count = len(items)
    values: list[Any] = []
    for index, rule in enumerate(rules):
        where = (None, rule.name)
        values.append(given(walk, rule, items[index], where) if index < count else absent(walk, rule, where))
    if spec.variadic:
        return [*values, *_further(walk, spec, items[len(rules) :])]
    if count > len(rules):
        walk.note(None, Misfit("arg.count", f"at most {len(rules)} arguments"), str(count))
    return values


def _in_order(spec: ToolSpec, args: Any) -> Sequence[Any]:
    kind = type(args)
    if issubclass(kind, list):
        return list.__getitem__(args, slice(None))
    if issubclass(kind, tuple):
        return tuple.__getitem__(args, slice(None))
    hint = "arguments by name go to call_named" if issubclass(kind, dict) else ""
    raise _not_arguments(spec, "a list or tuple of arguments", args, hint)


def _by_name(walk: Walk, spec: ToolSpec, mapping: Any) -> list[Any]:
    if not issubclass(type(mapping), dict):
        hint = "arguments in order go to call" if issubclass(type(mapping), (list, tuple)) else ""
        raise _not_arguments(spec, "a dict of arguments by name", mapping, hint)
    by_name = by_text(walk, [*dict.items(mapping)], None)
    rest = by_name.pop(spec.args[-1].name, ABSENT) if spec.variadic else ABSENT
    fixed = spec.args[:-1] if spec.variadic else spec.args
    found = members(walk, fixed, by_name, False, None)
    values = [found.get(rule.name, ABSENT) for rule in fixed]
    return [*values, *_further(walk, spec, _listed(walk, spec, rest))] if spec.variadic else values


def _listed(walk: Walk, spec: ToolSpec, rest: object) -> Any:
    if rest is ABSENT or rest is None:
        return []
    rule = spec.args[-1]
    return items_of(walk, LISTS.get(rule.type, ArgType.SLICE_ANY), rest, (None, rule.name))


def _further(walk: Walk, spec: ToolSpec, items: Any) -> list[Any]:
    rule = spec.args[-1]
    where = (None, rule.name)
    if items is FAILED:
        return []
    if not items and rule.required:
        walk.note(where, MISSING, "nothing")
    return [further(walk, rule, item, (where, index)) for index, item in enumerate(items)]


def _not_arguments(spec: ToolSpec, expected: str, given: object, hint: str) -> ArgumentError:
    return ArgumentError([Problem("", "arg.type", expected, type_name(given), hint)], tool=spec.full_name)


class Source:
    """The text of a function under construction, and the objects that it names.

    Objects are named in the order in which they come up, so that two tools of one shape have one text, which is
    compiled once.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.heads: list[str] = []
        self.objects: list[object] = []

    def add(self, text: str, *lines: str, indent: int = 0) -> None:
        """Add lines, each *indent* levels in."""
        self.lines.extend("    " * indent + line for line in (text, *lines))

    def head(self, line: str) -> None:
        """Add a line that is executed once, when the function is made."""
        self.heads.append(line)

    def inner(self) -> Source:
        """Return an empty source that names its objects together with this one, and has its head."""
        inner = Source()
        inner.objects, inner.heads = self.objects, self.heads
        return inner

    def name(self, thing: object) -> str:
        """Return the name by which the text may call *thing*."""
        self.objects.append(thing)
        return f"k{len(self.objects) - 1}"


def positional(spec: ToolSpec, coercion: Coercion, source: Source, doubt: str, mark: str = "pass") -> bool:
    """Add the statements that bind the list or tuple ``given`` to ``a0``, ``a1`` …; *doubt* is the way out.

    Args:
        mark: What is executed where a value had to be changed.

    Returns:
        Whether there are any; False where every call would have to take the way out.
    """
    if not _may_be_fast(spec, coercion):
        return False
    names = _names(spec)
    optional = sum(1 for arg in spec.args if not arg.required)
    last_required = max((index for index, arg in enumerate(spec.args) if arg.required), default=-1)
    source.add("if type(given) is not tuple and type(given) is not list:", f"    {doubt}")
    if optional and last_required < len(names) - 1:
        source.add("count = len(given)")
        for count in range(len(names), last_required, -1):
            source.add(f"{'if' if count == len(names) else 'elif'} count == {count}:")
            source.add(f"{_tupled(names[:count])} = given", indent=1)
            for name, arg in zip(names[count:], spec.args[count:], strict=True):
                source.add(f"{name} = {_default(arg, source)}", indent=1)
        source.add("else:", f"    {doubt}")
    else:
        _add_unpacking(names, "given", source, doubt)
    _add_checks(spec, coercion, source, doubt, mark)
    return True


def named(spec: ToolSpec, coercion: Coercion, source: Source, doubt: str, mark: str = "pass") -> bool:
    """Add the statements that bind the dict ``given`` to ``a0``, ``a1`` …, as `positional` does."""
    if not _may_be_fast(spec, coercion):
        return False
    names = _names(spec)
    keys = [source.name(arg.name) for arg in spec.args]
    source.add("if type(given) is not dict:", f"    {doubt}")
    if all(arg.required for arg in spec.args):
        _add_key_check(len(names), source, "given", doubt)
        _add_lookups(names, "given", keys, source, doubt)
    else:
        _add_optional_lookups(spec, names, keys, source, doubt)
    _add_checks(spec, coercion, source, doubt, mark)
    return True


def _add_lookups(names: Sequence[str], what: str, keys: Sequence[str], source: Source, doubt: str) -> None:
    if names:
        source.add("try:", *(f"    {name} = {what}[{key}]" for name, key in zip(names, keys, strict=True)))
        source.add("except KeyError:", f"    {doubt}")


def _add_optional_lookups(
    spec: ToolSpec, names: Sequence[str], keys: Sequence[str], source: Source, doubt: str
) -> None:
    source.add("try:", "    for key in given:", "        if type(key) is not str:", f"            {doubt}")
    source.add("except RuntimeError:", f"    {doubt}", "count = len(given)")
    for name, key, arg in zip(names, keys, spec.args, strict=True):
        source.add(f"if {key} in given:", f"    {name} = given[{key}]", "    count -= 1")
        source.add("else:", f"    {doubt if arg.required else f'{name} = {_default(arg, source)}'}")
    source.add("if count:", f"    {doubt}")


def _names(spec: ToolSpec) -> list[str]:
    return [f"a{index}" for index in range(len(spec.args))]


def _add_unpacking(names: Sequence[str], what: str, source: Source, doubt: str, indent: int = 0) -> None:
    source.add("try:", f"    {_tupled(names)} = {what}", "except ValueError:", f"    {doubt}", indent=indent)


def _tupled(names: Sequence[str]) -> str:
    return f"({', '.join(names)},)" if names else "()"


def _default(arg: ArgSpec, source: Source) -> str:
    return "None" if arg.default is UNSET or arg.default is None else source.name(arg.default)


def _may_be_fast(spec: ToolSpec, coercion: Coercion) -> bool:
    """Tell whether the statements can speak for some calls: every required argument is of a kind that they know."""
    if spec.variadic or _asks_more(spec) or coercion.sizes.depth < 2 or coercion.sizes.nodes < _fixed_nodes(spec):
        return False
    return all(_is_plain(arg) or _is_list(arg) or _is_declared(arg) or _may_be_omitted(arg) for arg in spec.args)


def _asks_more(spec: ToolSpec) -> bool:
    if not spec.schema:
        return False
    from neuroscript.foreign import looked_at

    return looked_at(spec.schema).asks_more


def _fixed_nodes(spec: ToolSpec) -> int:
    """Return how many values there are whatever is given, list items apart."""
    return sum(1 + (0 if arg.type in ELEMENTS else len(arg.keys)) for arg in spec.args)


def _is_plain(arg: ArgSpec) -> bool:
    return arg.type in EXACT


def _is_list(arg: ArgSpec) -> bool:
    return arg.element in EXACT and arg.type in ELEMENTS and not bounded(arg) and arg.default is UNSET


def _is_declared(arg: ArgSpec) -> bool:
    plain = all(_is_plain(key) for key in arg.keys)
    return bool(arg.keys) and plain and not arg.extra_keys and not bounded(arg) and arg.default is UNSET


def _may_be_omitted(arg: ArgSpec) -> bool:
    return not arg.required and arg.default is UNSET


def _add_checks(spec: ToolSpec, coercion: Coercion, source: Source, doubt: str, mark: str) -> None:
    sized = any(arg.element in (ArgType.STRING, ArgType.BLOB) or arg.keys for arg in spec.args)
    counted = any(arg.type in ELEMENTS for arg in spec.args)
    if sized:
        source.add("text = 0")
    if counted:
        source.add(f"nodes = {_fixed_nodes(spec)}")
    for name, arg in zip(_names(spec), spec.args, strict=True):
        _add_check(name, arg, coercion, source, doubt, mark, mark)
    if sized:  # four bytes a character at the most
        source.add(f"if text > {coercion.sizes.text // 4}:", f"    {doubt}")
    if counted:
        source.add(f"if nodes > {coercion.sizes.nodes}:", f"    {doubt}")


def _add_check(name: str, arg: ArgSpec, coercion: Coercion, source: Source, doubt: str, store: str, mark: str) -> None:
    """Add what makes *name* exact; *store* keeps a value that had to be changed where it came from, and marks it."""
    inner = source.inner()
    if _is_plain(arg):
        _add_plain(name, arg, coercion, inner, doubt, store)
    elif _is_list(arg):
        _add_list(name, arg, inner, doubt)
    elif _is_declared(arg):
        _add_declared(name, arg, coercion, inner, doubt, mark)
    else:
        inner.add(doubt)
    if arg.required and not arg.nullable:
        source.add(*inner.lines)
        return
    if not arg.required and arg.default is not UNSET and arg.default is not None and not arg.nullable:
        source.add(f"if {name} is None:", f"    {name} = {source.name(arg.default)}", f"    {store}")
    source.add(f"if {name} is not None:")
    source.add(*inner.lines, indent=1)


def _add_plain(name: str, arg: ArgSpec, coercion: Coercion, source: Source, doubt: str, store: str) -> None:
    reading = source.name(READINGS[coercion.mode][arg.type])
    source.add(f"if not ({EXACT[arg.type].format(name)}):", f"    {name} = {reading}({name})")
    source.add(f"    if type({name}) is Misfit:", f"        {doubt}", f"    {store}")
    if arg.type in (ArgType.STRING, ArgType.BLOB):
        source.add(f"text += len({name})")
    if arg.choices:
        source.add(f"if {name} not in {source.name(frozenset(arg.choices))}:", f"    {doubt}")
    for bound_of_it, wrong in ((arg.minimum, "<"), (arg.maximum, ">")):
        if bound_of_it is not None:
            source.add(f"if {name} {wrong} {source.name(bound_of_it)}:", f"    {doubt}")
    for length, wrong in ((arg.min_length, "<"), (arg.max_length, ">")):
        if length is not None:
            source.add(f"if len({name}) {wrong} {source.name(length)}:", f"    {doubt}")


def _add_list(name: str, arg: ArgSpec, source: Source, doubt: str) -> None:
    has_text = arg.element is ArgType.STRING
    source.add(f"if type({name}) is not list:", f"    {doubt}", f"{name} = {name}[:]", f"nodes += len({name})")
    source.add(f"if len({name}) > {SHORT}:", f"    size = bulk_text({source.name(arg.element)}, {name})")
    source.add("    if size < 0:", f"        {doubt}", *(["    text += size"] if has_text else []))
    source.add("else:", f"    for item in {name}:", f"        if not ({EXACT[arg.element].format('item')}):")
    source.add(f"            {doubt}", *(["        text += len(item)"] if has_text else []))


def _add_declared(name: str, arg: ArgSpec, coercion: Coercion, source: Source, doubt: str, mark: str) -> None:
    """Add what copies a map, or each map of a list, and then looks at the copy, which nobody else can change."""
    keys = [source.name(key.name) for key in arg.keys]
    key_text = sum(len(key.name) for key in arg.keys)
    if arg.type not in ELEMENTS:
        source.add(f"if type({name}) is not dict:", f"    {doubt}", f"{name} = {name}.copy()", f"text += {key_text}")
        _add_key_check(len(keys), source, name, doubt)
        _add_members(name, arg, keys, coercion, source, doubt, mark)
        return
    source.add(f"if type({name}) is not list:", f"    {doubt}", f"maps = {name}[:]", f"{name} = []")
    source.add(f"nodes += {1 + len(keys)} * len(maps)", f"text += {key_text} * len(maps)")
    seen, these = ([f"{letter}{index}" for index in range(len(keys))] for letter in "sn")
    source.add(f"{_tupled(seen)} = {_tupled(keys)}", "for item in maps:")
    inner = source.inner()
    inner.add("if type(item) is not dict:", f"    {doubt}", "item = item.copy()")
    _add_unpacking(these, "item", inner, doubt)
    inner.add(f"if not ({' and '.join(f'{a} is {b}' for a, b in zip(these, seen, strict=True))}):")
    inner.add(f"    if not ({_all_texts(these)}):", f"        {doubt}", f"    {_tupled(seen)} = {_tupled(these)}")
    _add_members("item", arg, keys, coercion, inner, doubt, mark)
    source.add(*inner.lines, f"{name}.append(item)", indent=1)


def _add_members(
    name: str, arg: ArgSpec, keys: Sequence[str], coercion: Coercion, source: Source, doubt: str, mark: str
) -> None:
    _add_lookups([f"v{index}" for index in range(len(keys))], name, keys, source, doubt)
    for index, (key, spec) in enumerate(zip(keys, arg.keys, strict=True)):
        _add_check(f"v{index}", spec, coercion, source, doubt, f"{name}[{key}] = v{index}; {mark}", mark)


def _add_key_check(count: int, source: Source, what: str, doubt: str) -> None:
    """Add what makes sure that a dict has *count* keys, all of them texts, before any is looked up."""
    names = [f"n{index}" for index in range(count)]
    _add_unpacking(names, what, source, doubt)
    if names:
        source.add(f"if not ({_all_texts(names)}):", f"    {doubt}")


def _all_texts(names: Sequence[str]) -> str:
    return " and ".join(f"type({name}) is str" for name in names)


GLOBALS: Final = {"Misfit": Misfit, "bulk_text": bulk_text}
"""What the statements may name besides their own objects."""
