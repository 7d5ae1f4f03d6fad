"""What a call of the REST API is: method, path, the fields of its body, and who answers it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.protocol.handler import Caller
from gateway.rest.fields import Fields, from_query, invalid, read, read_object

# What a call says in its path, and what it says in its body; an absent field is None.
Path = Mapping[str, str]
Asked = Mapping[str, Any]
Verb = Callable[[Caller, Path, Asked], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Route:
    """A call: its method, its path below `PREFIX` with the names of its parts, who answers it, and the fields of its body.

    Without `fields` the body is not looked at. With `query` its fields are those of the URL's query (some clients send them as
    a body), and `fields` has no meaning.
    """

    method: str
    path: str
    name: str
    verb: Verb
    fields: Fields | None = None
    required: tuple[str, ...] = ()
    query: Fields | None = None

    def asked(self, body: bytes, query: str = "") -> Asked:
        """The fields of a body, or of a query. Raises RestError."""
        if self.query is not None:
            given = read(body, self.query)
            told = read_object("the query", from_query(query, self.query), self.query)
            return {name: given[name] if value is None else value for name, value in told.items()}
        if self.fields is None:
            return {}
        asked = read(body, self.fields)
        for name in self.required:
            if asked[name] is None:
                raise invalid(f"{name} is missing")
        return asked

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts of its path."""
        return tuple(_NAMES.findall(self.path))

    @property
    def pattern(self) -> re.Pattern[str]:
        """What a path has to look like."""
        parts = _NAMES.split(self.path)  # text and names in turn
        names = [f"(?P<{name}>{part_pattern(name)})" for name in parts[1::2]]
        return re.compile("".join(map("".join, zip(map(re.escape, parts[::2]), [*names, ""], strict=True))))


_NAMES = re.compile(r"\{(\w+)\}")
_PARTS = {"chunk_index": "[0-9]{1,9}"}


def part_pattern(name: str) -> str:
    """What a part of a path looks like."""
    return _PARTS.get(name, "[^/]+")
