"""Functions of ours that DataFusion calls: one implementation per name, made for concrete types when a statement needs it.

An implementation is a factory ``(UdfSpec) -> (arrays) -> array`` under the name that `bound.Udf.impl` uses. It gets and
gives pyarrow arrays of one length in the internal Arrow types of the spec; it never sees a scalar. What Spark would raise for
a row is raised as `RowError`; its text travels through DataFusion's error message and is read back by `row_error_in`.
"""

from __future__ import annotations

import importlib
import pkgutil
import traceback
from collections.abc import Callable
from decimal import Context, localcontext
from json import dumps, loads

import pyarrow as pa

from gateway.engine.base import UdfSpec
from gateway.errors import GatewayError, ResourceError, ServerError, UnsupportedError, UserError

Kernel = Callable[..., pa.Array]
Factory = Callable[[UdfSpec], Kernel]

IMPLEMENTATIONS: dict[str, Factory] = {}

# Python would round the results of decimals, even of abs() and of a minus sign, to 28 digits.
_EXACT = Context(prec=800)

MAX_TEXT_BYTES = 2**31 - 2  # of all rows of an array together
# What Arrow says, as an `ArrowInvalid`, of texts that are longer together.
_TOO_LONG = ("overflowed binary array capacity", "offset overflow")

_MARK = "@@row-error@@"


def implementation(name: str) -> Callable[[Factory], Factory]:
    """Registers a factory under `name`."""

    def register(factory: Factory) -> Factory:
        if name in IMPLEMENTATIONS:
            raise ValueError(f"function {name} is implemented twice")
        IMPLEMENTATIONS[name] = factory
        return factory

    return register


def load() -> None:
    """Import every module of implementations."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


class RowError(Exception):
    """What Spark raises for a row: condition and message; survives the trip through the engine's error text."""

    def __init__(self, condition: str, message: str) -> None:
        super().__init__(_MARK + dumps([condition, message]).encode().hex() + _MARK)
        self.condition = condition


def row_error_in(text: str) -> GatewayError | None:
    """The error that a `RowError` inside an engine's message stands for."""
    parts = text.split(_MARK)
    if len(parts) < 3:
        return None
    try:  # hex, because the text has been quoted and escaped on its way
        condition, message = loads(bytes.fromhex(parts[1]))
    except ValueError:
        return None
    return _KINDS.get(condition.partition(".")[0], UserError)(condition, message)


_INTERNAL = "INTERNAL_ERROR"
_KINDS: dict[str, type[GatewayError]] = {
    "UNSUPPORTED_FEATURE": UnsupportedError,
    "UNSUPPORTED_FUNCTION": UnsupportedError,
    "RESOURCE_EXHAUSTED": ResourceError,
    "STATEMENT_TOO_COMPLEX": ResourceError,
    _INTERNAL: ServerError,
}


def guarded(kernel: Kernel, name: str) -> Kernel:
    """The kernel, with exact decimals, and whatever it raises beside `RowError` told in words of ours; what it was goes to
    the log."""

    def run(*arrays: pa.Array) -> pa.Array:
        try:
            with localcontext(_EXACT):
                return kernel(*arrays)
        except RowError:
            raise
        except GatewayError as error:
            raise RowError(error.condition, error.message) from None
        except (MemoryError, pa.ArrowCapacityError) as error:
            traceback.print_exception(error)
            raise RowError("RESOURCE_EXHAUSTED", f"The values of {name} need more memory than there is.") from None
        except pa.ArrowInvalid as error:
            traceback.print_exception(error)
            if any(mark in str(error) for mark in _TOO_LONG):
                raise too_long(name) from None
            raise _failed(name) from None
        except Exception as error:  # noqa: BLE001 - the border to the engine, which would show the trace to the client
            traceback.print_exception(error)
            raise _failed(name) from None

    return run


def _failed(name: str) -> RowError:
    return RowError(_INTERNAL, f"The function {name} failed unexpectedly; see the server's log.")


def too_long(name: str) -> RowError:
    """The error where the values of a batch get too long together."""
    return RowError("RESOURCE_EXHAUSTED", f"{name} makes more than 2 GiB of text in a batch.")
