"""The names of definitions, read off their syntax trees. A name may be a path: `Store::get` is `get` in `Store`."""

from __future__ import annotations

import re
from collections.abc import Callable

from tree_sitter import Node

Namer = Callable[[Node, bytes], tuple[str, ...]]
"""A node of a tree and the UTF-8 text of that tree, to what the node defines; empty: it defines nothing."""

_MAX_NAME_BYTES = 120  # a longer one is an expression
_FUNCTIONS = frozenset(["arrow_function", "function_expression", "generator_function"])
_VALUES = _FUNCTIONS | {"class", "object"}
_BRACKETS = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|\([^()]*\)")
_TEST_CALLS = frozenset(["describe", "it", "test", "suite", "context"])


def by_name(node: Node, source: bytes) -> tuple[str, ...]:
    """What stands in the field `name`."""
    return _words(node.child_by_field_name("name"), source)


def by_scoped_name(node: Node, source: bytes) -> tuple[str, ...]:
    """What stands in the field `name`, one symbol for each part of `A::B`."""
    return tuple(part for name in by_name(node, source) for part in name.split("::") if part)


def by_kind(node: Node, _source: bytes) -> tuple[str, ...]:
    """The first word of the node's kind: `constructor`, `init`, `companion`."""
    return (node.type.partition("_")[0],)


def as_initializer(_node: Node, _source: bytes) -> tuple[str, ...]:
    """Kotlin: what a class does when it is made."""
    return ("init",)


def as_constructor(_node: Node, _source: bytes) -> tuple[str, ...]:
    """Kotlin: a further constructor, which has no name."""
    return ("constructor",)


def by_name_or_kind(node: Node, source: bytes) -> tuple[str, ...]:
    """The field `name`, or else the first word of the node's kind."""
    return by_name(node, source) or by_kind(node, source)


def by_declarator(node: Node, source: bytes) -> tuple[str, ...]:
    """C and C++: the name inside pointers, references and parameters, with the classes it is a member of."""
    found: Node | None = node
    for _ in range(20):
        below = found.child_by_field_name("declarator") if found else None
        if found and below is None and found.type == "reference_declarator":
            below = found.named_children[-1] if found.named_children else None
        if below is None:
            break
        found = below
    if found is None or found == node:
        return ()
    return tuple(part for name in _words(found, source) for part in _BRACKETS.sub("", name).split("::") if part)


def by_body_and_name(node: Node, source: bytes) -> tuple[str, ...]:
    """C and C++: the name of a type that is not only mentioned; an anonymous one has none."""
    return by_scoped_name(node, source) if node.child_by_field_name("body") else ()


def by_receiver(node: Node, source: bytes) -> tuple[str, ...]:
    """Go: a method under the type of its receiver."""
    receiver = "".join(_words(node.child_by_field_name("receiver"), source)).strip("()")
    kind = _BRACKETS.sub("", receiver).split(" ")[-1].lstrip("*")
    return (*((kind,) if kind else ()), *by_name(node, source))


def by_only_spec(node: Node, source: bytes) -> tuple[str, ...]:
    """Go: `type Name …`; a group of types has no name."""
    specs = [child for child in node.named_children if child.type in ("type_spec", "type_alias")]
    return by_name(specs[0], source) if len(specs) == 1 else ()


def by_implemented(node: Node, source: bytes) -> tuple[str, ...]:
    """Rust: `impl Store` is Store, `impl Display for Store` is `Display for Store`."""
    kind, trait = ("".join(_words(node.child_by_field_name(field), source)) for field in ("type", "trait"))
    kind, trait = _BRACKETS.sub("", kind), _BRACKETS.sub("", trait)
    return (f"{trait} for {kind}" if trait else kind,) if kind else ()


def by_extended(node: Node, source: bytes) -> tuple[str, ...]:
    """Kotlin: a function under the type that it extends."""
    name = node.child_by_field_name("name")
    before = [c for c in node.named_children if name and c.end_byte <= name.start_byte and c.type.endswith("_type")]
    extended = tuple(_BRACKETS.sub("", kind) for kind in _words(before[-1], source)) if before else ()
    return (*extended, *_words(name, source))


def by_variable(node: Node, source: bytes) -> tuple[str, ...]:
    """JavaScript: the variable or field that holds a function, a class or an object; `memo(() => …)` is a function."""
    holder = next((child for child in node.named_children if child.type == "variable_declarator"), node)
    value = holder.child_by_field_name("value")
    arguments = value.child_by_field_name("arguments") if value and value.type == "call_expression" else None
    if arguments and node.parent and node.parent.type in ("program", "export_statement"):
        is_value = any(argument.type in _FUNCTIONS for argument in arguments.named_children)
    else:
        is_value = value is not None and value.type in _VALUES
    name = holder.child_by_field_name("name") or holder.child_by_field_name("property")
    return _words(name, source) if is_value and name and name.type.endswith("identifier") else ()


def by_expression(node: Node, source: bytes) -> tuple[str, ...]:
    """JavaScript: `exports.name = function …`, `namespace N {…}` and the tests of `describe("name", …)`."""
    expression = node.named_child(0) if node.named_child_count else None
    match expression.type if expression else "":
        case "assignment_expression":
            right = expression.child_by_field_name("right") if expression else None
            if expression and right and right.type in _VALUES:
                return _words(expression.child_by_field_name("left"), source)
        case "internal_module":
            return by_name(expression, source) if expression else ()
        case "call_expression":
            return _test_name(expression, source) if expression else ()
    return ()


def _test_name(call: Node, source: bytes) -> tuple[str, ...]:
    callee, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    called = _words(callee, source)
    if called and called[0] in _TEST_CALLS and arguments:
        first = arguments.named_child(0) if arguments.named_child_count else None
        if first and "string" in first.type:
            return tuple(name.strip("\"'`") for name in _words(first, source))
    return ()


def by_test_name(node: Node, source: bytes) -> tuple[str, ...]:
    """Ruby: the text of `it "does this" do`."""
    arguments = node.child_by_field_name("arguments")
    first = arguments.named_child(0) if arguments and arguments.named_child_count else None
    callee = _words(node.child_by_field_name("method"), source)
    if callee and callee[0] in _TEST_CALLS and first and first.type == "string":
        return tuple(name.strip("\"'") for name in _words(first, source))
    return ()


def by_key(node: Node, source: bytes) -> tuple[str, ...]:
    """Data: the key of a pair, without its quotes."""
    key = node.child_by_field_name("key") or (node.named_child(0) if node.named_child_count else None)
    return tuple(name.strip("\"'") for name in _words(key, source) if name.strip("\"'"))


def by_function_key(node: Node, source: bytes) -> tuple[str, ...]:
    """JavaScript: the key of a function in an object."""
    value = node.child_by_field_name("value")
    return by_key(node, source) if value and value.type in _FUNCTIONS else ()


def by_reference(node: Node, source: bytes) -> tuple[str, ...]:
    """SQL: the first thing that is referred to by name."""
    named = ("object_reference", "identifier", "literal")
    return _words(next((child for child in node.named_children if child.type in named), None), source)


def by_labels(node: Node, source: bytes) -> tuple[str, ...]:
    """Terraform: a resource by its address `aws_x.y`, any other block by its words: `variable.name`."""
    words: list[str] = []
    for child in node.named_children:
        if child.type not in ("identifier", "string_lit"):
            break
        words.extend(name.strip('"') for name in _words(child, source))
    return (".".join(words[1:] if words[0] == "resource" and len(words) > 1 else words),) if words else ()


def by_pattern(node: Node, source: bytes) -> tuple[str, ...]:
    """Swift: a computed property."""
    return by_name(node, source) if node.child_by_field_name("computed_value") else ()


def _words(node: Node | None, source: bytes) -> tuple[str, ...]:
    """The node's text on one line; empty when there is none or too much of it."""
    if node is None or node.end_byte - node.start_byte > _MAX_NAME_BYTES:
        return ()
    text = " ".join(source[node.start_byte : node.end_byte].decode(errors="replace").split())
    return (text,) if text else ()
