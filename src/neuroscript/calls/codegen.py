"""Generated code that binds arguments: the statements of a compiled pipeline that check and convert plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count
from typing import Final

from neuroscript.coercion.constraints import check_bounds
from neuroscript.coercion.context import CoercionSettings
from neuroscript.coercion.scalars import TRUTHS, Rejection, is_unicode
from neuroscript.coercion.types import BUILTINS, ELEMENTS, EXACT, READINGS, VALUES, ArgType
from neuroscript.coercion.values import coerce_ints_fast, coerce_list_fast
from neuroscript.errors import UNSET
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec

MAX_DEPTH: Final = 8
"""Deeper arguments take the general path: Python limits how many blocks may be nested."""

MAX_SPECS: Final = 200
"""Arguments of more specs take the general path, because compiling them would take longer than many calls save."""

BULK_MIN_ITEMS: Final = 12
"""Up to this length a list is checked item by item, above it in bulk; at this length both cost the same."""


INLINE: Final[Mapping[ArgType, tuple[str, str]]] = {
    ArgType.INT: ("type({0}) is str and {0}.isdigit() and len({0}) < 19 and {0}.isascii()", "int({0})"),
    ArgType.FLOAT: (EXACT[ArgType.INT], "float({0})"),
    ArgType.BOOL: ("type({0}) is str and {0} in truths", "truths[{0}]"),
}
"""The most frequent conversion of some types in lax mode: when it applies, and the value. It saves a call."""


class CodeWriter:
    """The text of a function under construction, and the objects that it names.

    Objects are named in the order in which they occur, so two tools of the same shape have the same text, which is
    compiled once.

    Attributes:
        is_repeated: Whether the lines are executed once for each item of a list.
    """

    def __init__(self) -> None:
        self.is_repeated = False
        self.lines: list[str] = []
        self.heads: list[str] = []
        self.objects: list[object] = []
        self.levels = count(1)

    def add(self, *lines: str, indent: int = 0) -> None:
        """Add lines, each *indent* levels in."""
        self.lines.extend("    " * indent + line for line in lines)

    def head(self, line: str) -> None:
        """Add a line that is executed once, when the function is made."""
        self.heads.append(line)

    def inner(self) -> CodeWriter:
        """Return an empty source that shares its object names and its head with this one."""
        inner = CodeWriter()
        inner.objects, inner.heads, inner.levels = self.objects, self.heads, self.levels
        inner.is_repeated = self.is_repeated
        return inner

    def loop(self) -> CodeWriter:
        """Return an inner source whose lines are executed once for each item of a list."""
        inner = self.inner()
        inner.is_repeated = True
        return inner

    def name(self, thing: object) -> str:
        """Return the name by which the text refers to *thing*."""
        self.objects.append(thing)
        return f"k{len(self.objects) - 1}"


def write_positional_binding(
    spec: ToolSpec, coercion: CoercionSettings, source: CodeWriter, doubt: str, mark: str = "pass"
) -> bool:
    """Add the statements that bind the list or tuple ``given`` to ``a0``, ``a1`` and so on.

    Args:
        doubt: The statement to execute where the general path must decide.
        mark: The statement to execute where a value was converted.

    Returns:
        Whether any statement was added; False where every call would take the general path.
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


def write_named_binding(
    spec: ToolSpec, coercion: CoercionSettings, source: CodeWriter, doubt: str, mark: str = "pass"
) -> bool:
    """Add the statements that bind the dict ``given`` to ``a0``, ``a1`` and so on."""
    names_text = sum(len(arg.name.encode()) for arg in spec.args)
    if not _may_be_fast(spec, coercion) or coercion.sizes.text < names_text:
        return False
    names = _names(spec)
    keys = [source.name(arg.name) for arg in spec.args]
    source.add("if type(given) is not dict:", f"    {doubt}")
    if all(arg.required for arg in spec.args):
        _add_key_check(len(names), source, "given", doubt)
        _add_lookups(names, "given", keys, source, doubt)
    else:
        _add_optional_lookups(spec, names, keys, source, doubt)
    _add_checks(spec, coercion, source, doubt, mark, names_text)
    return True


def _add_lookups(names: Sequence[str], what: str, keys: Sequence[str], source: CodeWriter, doubt: str) -> None:
    if names:
        source.add("try:", *(f"    {name} = {what}[{key}]" for name, key in zip(names, keys, strict=True)))
        source.add("except KeyError:", f"    {doubt}")


def _add_optional_lookups(
    spec: ToolSpec, names: Sequence[str], keys: Sequence[str], source: CodeWriter, doubt: str
) -> None:
    source.add("try:", "    for key in given:", "        if type(key) is not str:", f"            {doubt}")
    source.add("except RuntimeError:", f"    {doubt}", "count = len(given)")
    for name, key, arg in zip(names, keys, spec.args, strict=True):
        source.add(f"if {key} in given:", f"    {name} = given[{key}]", "    count -= 1")
        source.add("else:", f"    {doubt if arg.required else f'{name} = {_default(arg, source)}'}")
    source.add("if count:", f"    {doubt}")


def _names(spec: ToolSpec) -> list[str]:
    return [f"a{index}" for index in range(len(spec.args))]


def _add_unpacking(names: Sequence[str], what: str, source: CodeWriter, doubt: str, indent: int = 0) -> None:
    source.add("try:", f"    {_tupled(names)} = {what}", "except ValueError:", f"    {doubt}", indent=indent)


def _tupled(names: Sequence[str]) -> str:
    return f"({', '.join(names)},)" if names else "()"


def _default(arg: ArgSpec, source: CodeWriter) -> str:
    return "None" if arg.default is UNSET or arg.default is None else source.name(arg.default)


def _may_be_fast(spec: ToolSpec, coercion: CoercionSettings) -> bool:
    """Return whether the statements can handle some calls: they know the type of every required argument."""
    depth = max((_depth(arg) for arg in spec.args), default=0)
    sizes = coercion.sizes
    if spec.variadic or _asks_more(spec) or sizes.depth < max(2, depth) or sizes.nodes < _fixed_nodes(spec):
        return False
    if depth > MAX_DEPTH or sum(map(_width, spec.args)) > MAX_SPECS or _adapts_builtins(coercion):
        return False
    return all(_is_known(arg) or _may_be_omitted(arg) for arg in spec.args)


def _adapts_builtins(coercion: CoercionSettings) -> bool:
    """Return whether the host converts a class that the statements check themselves."""
    return any(cls in BUILTINS.values() for cls, _ in coercion.adapters)


def _width(arg: ArgSpec) -> int:
    """Return the number of specs that an argument consists of."""
    return 1 + sum(map(_width, arg.nested))


def _asks_more(spec: ToolSpec) -> bool:
    if not spec.schema:
        return False
    from neuroscript.coercion.schema_inspection import check_schema

    return check_schema(spec.schema).asks_more


def _fixed_nodes(spec: ToolSpec) -> int:
    """Return the number of values that every call has, list items not counted."""
    return sum(map(_values_in, spec.args))


def _values_in(arg: ArgSpec) -> int:
    """Return the number of values that a value of an argument consists of, without the items of lists."""
    return 1 + (0 if arg.type in ELEMENTS else sum(map(_values_in, arg.keys)))


def _depth(arg: ArgSpec) -> int:
    """Return how many containers the values of an argument are nested in, itself included."""
    inner = max((_depth(each) for each in (*arg.keys, *arg.nested)), default=0)
    return inner + (arg.type in ELEMENTS) + (bool(arg.keys) or arg.type in VALUES)


def _has_lists(arg: ArgSpec) -> bool:
    return arg.type in ELEMENTS or any(map(_has_lists, arg.keys))


def _is_known(arg: ArgSpec) -> bool:
    return _is_plain(arg) or _is_text(arg) or _is_list(arg) or _is_declared(arg) or _is_sequence(arg)


def _is_plain(arg: ArgSpec) -> bool:
    return arg.type in EXACT and not arg.is_refined


def _is_text(arg: ArgSpec) -> bool:
    return bool(arg.format) and not check_bounds(arg)


def _is_sequence(arg: ArgSpec) -> bool:
    if arg.items is None or arg.unique_items:
        return False
    return not check_bounds(arg) and arg.default is UNSET and _is_known(arg.items)


def _is_list(arg: ArgSpec) -> bool:
    is_list = arg.element in EXACT and arg.type in ELEMENTS and not arg.is_refined
    return is_list and not check_bounds(arg) and arg.default is UNSET


def _is_declared(arg: ArgSpec) -> bool:
    return (
        bool(arg.keys)
        and all(map(_is_known, arg.keys))
        and not arg.is_refined
        and not check_bounds(arg)
        and arg.default is UNSET
    )


def _may_be_omitted(arg: ArgSpec) -> bool:
    return not arg.required and arg.default is UNSET


def _add_checks(
    spec: ToolSpec, coercion: CoercionSettings, source: CodeWriter, doubt: str, mark: str, names_text: int = 0
) -> None:
    """Add what makes each argument exact; *names_text* is the size of the names that the caller passed, in bytes."""
    sized = any(arg.element in (ArgType.STRING, ArgType.BLOB) or arg.keys or arg.items for arg in spec.args)
    counted = any(map(_has_lists, spec.args))
    if sized:
        source.add("text = 0")
    if counted:
        source.add(f"nodes = {_fixed_nodes(spec)}")
    checks = source.inner()
    for name, arg in zip(_names(spec), spec.args, strict=True):
        _add_check(name, arg, coercion, checks, doubt, mark, mark)
    gathers = any(GATHER in line for line in checks.lines)
    source.add(*["strings = []"] * gathers, *checks.lines)
    if gathers:
        _add_strings("strings", source, doubt)
    if sized:  # a character has at most four bytes
        source.add(f"if text > {(coercion.sizes.text - names_text) // 4}:", f"    {doubt}")
    if counted:
        source.add(f"if nodes > {coercion.sizes.nodes}:", f"    {doubt}")


GATHER: Final = "strings.append("
"""What gathers the strings of a list, because checking many short strings at once takes half the time."""


def _add_strings(strings: str, source: CodeWriter, doubt: str) -> None:
    """Add what checks and counts a list of strings."""
    source.add(f"joined = join({strings})", "if not (joined.isascii() or is_unicode(joined)):", f"    {doubt}")
    source.add("text += len(joined)")


def _add_check(
    name: str, arg: ArgSpec, coercion: CoercionSettings, source: CodeWriter, doubt: str, store: str, mark: str
) -> None:
    """Add what makes *name* exact; *store* writes a converted value back to where it came from, and marks it."""
    inner = source.inner()
    if _is_plain(arg):
        _add_plain(name, arg, coercion, inner, doubt, store)
    elif _is_list(arg):
        _add_list(name, arg, coercion, inner, doubt, store)
    elif _is_text(arg):
        _add_text(name, arg, coercion, inner, doubt, store)
    elif _is_declared(arg):
        _add_declared(name, arg, coercion, inner, doubt, mark)
    elif arg.items is not None and _is_sequence(arg):
        _add_sequence(name, arg.items, coercion, inner, doubt, mark)
    else:
        inner.add(doubt)
    if arg.required and not arg.nullable:
        source.add(*inner.lines)
        return
    if not arg.required and arg.default is not UNSET and arg.default is not None and not arg.nullable:
        source.add(f"if {name} is None:", f"    {name} = {source.name(arg.default)}", f"    {store}")
    source.add(f"if {name} is not None:")
    source.add(*inner.lines, indent=1)


def _add_plain(name: str, arg: ArgSpec, coercion: CoercionSettings, source: CodeWriter, doubt: str, store: str) -> None:
    reading = source.name(READINGS[coercion.mode][arg.type])
    is_gathered = source.is_repeated and arg.type is ArgType.STRING
    source.add(f"if type({name}) is not str:" if is_gathered else f"if not ({EXACT[arg.type].format(name)}):")
    read = [f"{name} = {reading}({name})", f"if type({name}) is Misfit:", f"    {doubt}"]
    if coercion.mode == "lax" and arg.type in INLINE:
        test, value = (text.format(name) for text in INLINE[arg.type])
        source.add(f"if {test}:", f"    {name} = {value}", "else:", indent=1)
        source.add(*read, indent=2)
    else:
        source.add(*read, indent=1)
    source.add(store, indent=1)
    if arg.type in (ArgType.STRING, ArgType.BLOB):
        source.add(f"{GATHER}{name})" if is_gathered else f"text += len({name})")
    if arg.choices:
        source.add(f"if {name} not in {source.name(frozenset(arg.choices))}:", f"    {doubt}")
    for bound_of_it, wrong in ((arg.lowest, "<"), (arg.highest, ">")):
        if bound_of_it is not None:
            source.add(f"if {name} {wrong} {source.name(bound_of_it)}:", f"    {doubt}")
    for length, wrong in ((arg.min_length, "<"), (arg.max_length, ">")):
        if length is not None:
            source.add(f"if len({name}) {wrong} {source.name(length)}:", f"    {doubt}")


def _add_text(name: str, arg: ArgSpec, coercion: CoercionSettings, source: CodeWriter, doubt: str, store: str) -> None:
    """Add what reads a string in a format, or a number as a decimal; other values take the general path."""
    from neuroscript.coercion.string_formats import FORMATS, read_format

    read = source.name(partial(read_format, arg.format, mode=coercion.mode))
    is_canonical = FORMATS[arg.format].is_canonical
    is_other = f"type({name}) is not str"
    if arg.format == "decimal":
        is_other += f" and type({name}) is not int and type({name}) is not float"
    if not arg.holds_text and (arg.nullable or not arg.required):
        is_other = f"{is_other} or {name} == '' or {name} == 'null'"  # which stand for no value
    quick = "False" if is_canonical is None else f"type({name}) is str and {source.name(is_canonical)}({name})"
    source.add(f"if not ({quick}):", f"    if {is_other}:", f"        {doubt}", f"    canonical = {read}({name})")
    source.add("    if type(canonical) is Misfit:", f"        {doubt}", f"    if canonical != {name}:")
    source.add(f"        {name} = canonical", f"        {store}", f"text += len({name})")


def _add_list(name: str, arg: ArgSpec, coercion: CoercionSettings, source: CodeWriter, doubt: str, store: str) -> None:
    item = f"i{next(source.levels)}"
    source.add(f"if type({name}) is not list:", f"    {doubt}", f"{name} = {name}.copy()", f"count = len({name})")
    source.add("nodes += count")
    if arg.element is ArgType.STRING:
        source.add(f"for {item} in {name}:", f"    if type({item}) is not str:", f"        {doubt}")
        _add_strings(name, source, doubt)
        return
    if arg.element is ArgType.INT and coercion.mode == "lax":
        source.add(f"if count > {BULK_MIN_ITEMS}:", f"    items = bulk_ints({name})", "    if items is None:")
        source.add(f"        {doubt}", f"    if items is not {name}:", f"        {name} = items", f"        {store}")
    else:
        source.add(f"if count > {BULK_MIN_ITEMS}:", f"    if bulk({source.name(arg.element)}, {name}) < 0:")
        source.add(f"        {doubt}")
    source.add("else:", f"    for {item} in {name}:", f"        if not ({EXACT[arg.element].format(item)}):")
    source.add(f"            {doubt}")


def _add_sequence(
    name: str, rule: ArgSpec, coercion: CoercionSettings, source: CodeWriter, doubt: str, mark: str
) -> None:
    """Add what copies a list whose items have a *rule* of their own, and makes each of them exact."""
    level = next(source.levels)
    items, item = f"l{level}", f"i{level}"
    source.add(f"if type({name}) is not list:", f"    {doubt}", f"{items} = {name}.copy()", f"{name} = []")
    source.add(f"nodes += {_values_in(rule)} * len({items})", f"for {item} in {items}:")
    inner = source.loop()
    _add_check(item, rule, coercion, inner, doubt, mark, mark)
    source.add(*inner.lines, f"{name}.append({item})", indent=1)


def _add_declared(
    name: str, arg: ArgSpec, coercion: CoercionSettings, source: CodeWriter, doubt: str, mark: str
) -> None:
    """Add what copies a map, or each map of a list, and then checks the copy, which no other code can change."""
    keys = [source.name(key.name) for key in arg.keys]
    key_text = sum(len(key.name) for key in arg.keys)
    level = next(source.levels)
    if arg.type not in ELEMENTS:
        source.add(f"if type({name}) is not dict:", f"    {doubt}", f"{name} = {name}.copy()", f"text += {key_text}")
        _add_key_check(len(keys), source, name, doubt)
        _add_members(name, arg, keys, coercion, source, doubt, mark, level)
        return
    maps, item = f"l{level}", f"i{level}"
    source.add(f"if type({name}) is not list:", f"    {doubt}", f"{maps} = {name}.copy()", f"{name} = []")
    source.add(f"nodes += {1 + sum(map(_values_in, arg.keys))} * len({maps})", f"text += {key_text} * len({maps})")
    seen, these = ([f"{letter}{level}_{index}" for index in range(len(keys))] for letter in "sn")
    source.add(f"{_tupled(seen)} = {_tupled(keys)}", f"for {item} in {maps}:")
    inner = source.loop()
    inner.add(f"if type({item}) is not dict:", f"    {doubt}", f"{item} = {item}.copy()")
    _add_unpacking(these, item, inner, doubt)
    inner.add(f"if not ({' and '.join(f'{a} is {b}' for a, b in zip(these, seen, strict=True))}):")
    inner.add(f"    if not ({_all_texts(these)}):", f"        {doubt}", f"    {_tupled(seen)} = {_tupled(these)}")
    _add_members(item, arg, keys, coercion, inner, doubt, mark, level)
    source.add(*inner.lines, f"{name}.append({item})", indent=1)


def _add_members(
    name: str,
    arg: ArgSpec,
    keys: Sequence[str],
    coercion: CoercionSettings,
    source: CodeWriter,
    doubt: str,
    mark: str,
    level: int,
) -> None:
    """Add what checks each value of a map; containers are copies, which are stored in the copy of the map."""
    values = [f"v{level}_{index}" for index in range(len(keys))]
    _add_lookups(values, name, keys, source, doubt)
    for value, key, spec in zip(values, keys, arg.keys, strict=True):
        _add_check(value, spec, coercion, source, doubt, f"{name}[{key}] = {value}; {mark}", mark)
        if not (_is_plain(spec) or _is_text(spec)):
            source.add(f"{name}[{key}] = {value}")


def _add_key_check(count: int, source: CodeWriter, what: str, doubt: str) -> None:
    """Add what checks that a dict has *count* keys, all of them strings, before any is looked up."""
    names = [f"n{index}" for index in range(count)]
    _add_unpacking(names, what, source, doubt)
    if names:
        source.add(f"if not ({_all_texts(names)}):", f"    {doubt}")


def _all_texts(names: Sequence[str]) -> str:
    return " and ".join(f"type({name}) is str" for name in names)


GLOBALS: Final = {
    "Misfit": Rejection,
    "bulk": coerce_list_fast,
    "bulk_ints": coerce_ints_fast,
    "is_unicode": is_unicode,
    "join": "".join,
    "truths": TRUTHS,
}
"""The global names that the statements may use."""
