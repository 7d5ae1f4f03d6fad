"""Lambdas: bound when the function that takes them has said what their parameters are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from gateway.errors import UserError
from gateway.sql.bind.binder import Expressions
from gateway.sql.bind.scope import Scope
from gateway.sql.read.tree import span_of
from gateway.sql.typed.catalogue import OpenLambda
from gateway.sql.typed.nodes import Lambda, LambdaVar
from gateway.sqltypes import VOID, DataType


def open_lambda(binder: Expressions, node: exp.Lambda, scope: Scope) -> OpenLambda:
    """A lambda argument before its function has said what its parameters are."""
    names = tuple(i.name for i in node.expressions)

    def close(types: Sequence[tuple[DataType, bool]]) -> Lambda:
        if len(types) != len(names):
            raise UserError(
                "INVALID_LAMBDA_FUNCTION_CALL.NUM_ARGS_MISMATCH",
                f"Invalid lambda function call. A higher order function expects {len(types)} arguments, but got "
                f"{len(names)}.",
                span=span_of(node),
            )
        if len({name.lower() for name in names}) < len(names):
            given = ", ".join(f"`{name}`" for name in names)
            raise UserError(
                "INVALID_LAMBDA_FUNCTION_CALL.DUPLICATE_ARG_NAMES",
                f"Invalid lambda function call. The lambda function has duplicate arguments {given}. Please, consider to "
                "rename the argument names or set `spark.sql.caseSensitive` to true.",
                span=span_of(node),
            )
        variables = tuple(
            LambdaVar(t, nullable, binder.ids.take(), name) for name, (t, nullable) in zip(names, types, strict=True)
        )
        inner = replace(scope, lambdas=scope.lambdas | {v.name.lower(): v for v in variables})
        body = binder.bind(node.this, inner)
        return Lambda(body.type, body.nullable, variables, body)

    return OpenLambda(VOID, True, names, close)
