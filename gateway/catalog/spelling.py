"""Which names schemas, tables, views and functions may have: those of folders and files that everybody can read."""

from __future__ import annotations

from unicodedata import category

from gateway.errors import UserError

_FORBIDDEN = frozenset("/\0")
_UNREADABLE = frozenset("\\")  # readers of Delta's log take it for a separator; what has it already may be dropped
_LONGEST = 200  # bytes of a name, which temporary names are made of


def is_of_entry(name: str) -> bool:
    """Whether a name can be one of a folder that is no hidden one, of whatever length."""
    return bool(name) and not name.startswith((".", "_")) and _FORBIDDEN.isdisjoint(name)


def is_of_object(name: str) -> bool:
    """Whether something can have it: nothing that the file system or a hidden-folder rule would read otherwise."""
    return is_of_entry(name) and "%" not in name and max(_bytes(name), _bytes(name.lower())) <= _LONGEST


def check(kind: str, name: str) -> None:
    """Raise UserError INVALID_IDENTIFIER unless a new schema, table, view or function may have `name`."""
    if not is_of_object(name) or any(c in _UNREADABLE or category(c) in ("Cc", "Cs") for c in name):
        raise UserError("INVALID_IDENTIFIER", f"`{_shown(name)}` cannot be used as the name of a {kind}.")


def _bytes(name: str) -> int:
    return len(name.encode(errors="surrogatepass"))


def _shown(name: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
