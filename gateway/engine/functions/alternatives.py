"""One of the operands: coalesce and nullif, which the engine writes as CASE with their first operand twice, and the first."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, implementation
from gateway.engine.functions.lists import as_type


@implementation("coalesced")
def coalesced(spec: UdfSpec) -> Kernel:
    """The first operand that is not NULL."""
    returns = spec.returns.arrow()

    def kernel(*args: pa.Array) -> pa.Array:
        return pc.coalesce(*(as_type(a, returns) for a in args))

    return kernel


@implementation("beside")
def beside(spec: UdfSpec) -> Kernel:
    """The first operand, which the engine takes for constant where all of them are."""
    return lambda value, *others: as_type(value, spec.returns.arrow())


@implementation("null_where_equal")
def null_where_equal(spec: UdfSpec) -> Kernel:
    """The first operand, NULL where it is the second; of types whose values have one form each."""

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        equal = pc.fill_null(pc.equal(a, b), False)
        return pc.if_else(equal, pa.scalar(None, a.type), a)

    return kernel
