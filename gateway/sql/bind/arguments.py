"""Named arguments, ``f(name => value)``: put in their places, for the functions whose parameters have names in Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from gateway.errors import Span, UserError, unsupported
from gateway.sql.bind.binder import Expressions
from gateway.sql.bind.sites import HIGHER_ORDER, called
from gateway.sql.read.tree import span_of

Node = exp.Expr
_REQUIRED = ""
# Parameters in their order: the name, and the text of the default; None is NULL.
_SIGNATURES: Mapping[str, tuple[tuple[str, str | None], ...]] = {
    "mask": (("str", _REQUIRED), ("upperChar", "X"), ("lowerChar", "x"), ("digitChar", "n"), ("otherChar", None)),
    **dict.fromkeys(("explode", "explode_outer", "posexplode", "posexplode_outer"), (("collection", _REQUIRED),)),
    **dict.fromkeys(("inline", "inline_outer", "variant_explode", "variant_explode_outer"), (("input", _REQUIRED),)),
}


def positional(binder: Expressions, function: str, items: Sequence[Node], span: Span | None) -> list[Node]:
    """The arguments of a call in the order of its parameters, with the defaults of those between them."""
    name = function.lower()
    if name not in binder.catalogue:
        called(binder, function, (), (), span)  # raises
    if name in HIGHER_ORDER:
        raise unsupported(f"a named argument of {name}", span)
    signature = _SIGNATURES.get(name)
    if signature is None:
        message = f"Named parameters are not supported for function `{name}`; please retry with positional arguments."
        raise UserError("NAMED_PARAMETERS_NOT_SUPPORTED", message, span=span)
    places = {parameter.lower(): place for place, (parameter, _) in enumerate(signature)}
    given: dict[int, Node] = {}
    before = ""
    first = len(items)
    for index, item in enumerate(items):
        if not isinstance(item, exp.Kwarg):
            if before:
                what = f"contains a positional argument behind the one named `{before}`."
                raise _misplaced("UNEXPECTED_POSITIONAL_ARGUMENT", name, what, item)
            given[index] = item
            continue
        first, before = min(first, index), item.this.name
        place = places.get(before.lower())
        if place is None:
            raise _misplaced("UNRECOGNIZED_PARAMETER_NAME", name, f"has no parameter named `{before}`.", item)
        if place in given:
            kind = "BOTH_POSITIONAL_AND_NAMED" if place < first else "DOUBLE_NAMED_ARGUMENT_REFERENCE"
            what = f"assigns the parameter `{before}` twice."
            raise _misplaced(f"DUPLICATE_ROUTINE_PARAMETER_ASSIGNMENT.{kind}", name, what, item)
        given[place] = item.expression
    if max(given) >= len(signature):
        raise unsupported(f"these arguments of {name}", span)
    for place, (parameter, default) in enumerate(signature[: max(given) + 1]):
        if place not in given and default == _REQUIRED:
            message = f"Cannot invoke routine `{name}` because the parameter named `{parameter}` is required."
            raise UserError("REQUIRED_PARAMETER_NOT_FOUND", message, span=span)
        given.setdefault(place, exp.Null() if default is None else exp.Literal(this=default, is_string=True))
    return [given[place] for place in sorted(given)]


def _misplaced(condition: str, name: str, what: str, item: Node) -> UserError:
    return UserError(condition, f"Cannot invoke routine `{name}` because the call {what}", span=span_of(item))
