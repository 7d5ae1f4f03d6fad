"""PRIMARY KEY and FOREIGN KEY, as tables and columns declare them, and how tables get and lose them later."""

from __future__ import annotations

from gateway.errors import unsupported
from gateway.sql.read.command_rules import CommandRules
from gateway.sql.read.cursor import user_error
from gateway.sql.read.named import Name
from gateway.sql.read.table_nodes import AddKey, DropKey, Key

# What may stand behind a key, and which of these exclude each other.
_OPTIONS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("NOT", "ENFORCED"), "enforced"),
    (("ENABLE", "NOVALIDATE"), "enforced"),
    (("DEFERRABLE",), "deferrable"),
    (("INITIALLY", "DEFERRED"), "initially"),
    (("RELY",), "rely"),
    (("NORELY",), "rely"),
)
_FOREIGN_OPTIONS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("MATCH", "FULL"), "match"),
    (("ON", "UPDATE", "NO", "ACTION"), "update"),
    (("ON", "DELETE", "NO", "ACTION"), "delete"),
)
# Words that begin an option of other dialects.
_REFUSED = frozenset({"MATCH", "ON", "INITIALLY", "ENABLE", "DISABLE", "VALIDATE", "NOVALIDATE"})


class KeyParser(CommandRules):
    """Keys of tables."""

    def _is_key(self) -> bool:
        """Whether a key of a table begins here, behind a name if there is one."""
        return self.word in ("PRIMARY", "FOREIGN") and self.peek() == "KEY"

    def _key(self, name: str | None, start: int) -> Key:
        """``PRIMARY KEY (…)`` or ``FOREIGN KEY (…) REFERENCES …``."""
        foreign = self.word == "FOREIGN"
        self.advance(2)
        columns = self._key_columns()
        if not foreign:
            return Key(name, columns, self._options(False), self.span(start))
        return self._references(name, columns, start)

    def _column_key(self, column: str, name: str | None, start: int) -> Key:
        """``PRIMARY KEY`` or ``[FOREIGN KEY] REFERENCES …`` of a column."""
        if self.match("PRIMARY", "KEY"):
            self._refuse_timeseries()
            return Key(name, (column,), self._options(False), self.span(start))
        self.match("FOREIGN", "KEY")
        return self._references(name, (column,), start)

    def _references(self, name: str | None, columns: tuple[str, ...], start: int) -> Key:
        self.expect("REFERENCES")
        parent = self._name()
        others = self._key_columns() if self.word == "(" else ()
        return Key(name, columns, self._options(True), self.span(start), parent, others)

    def _key_columns(self) -> tuple[str, ...]:
        self.expect("(")
        found = [self.identifier().name]
        self._refuse_timeseries()
        while self.match(","):
            found.append(self.identifier().name)
            self._refuse_timeseries()
        self.expect(")")
        return tuple(found)

    def _refuse_timeseries(self) -> None:
        if self.word == "TIMESERIES":
            raise unsupported("a key with TIMESERIES", self.span(self.index))

    def _options(self, foreign: bool) -> bool:
        """What stands behind a key; whether it is to be relied on."""
        rely, seen = False, set[str]()
        while True:
            at = self.index
            known = (*_OPTIONS, *(_FOREIGN_OPTIONS if foreign else ()))
            found = next(((words, of) for words, of in known if self.match(*words)), None)
            if found is None:
                break
            words, of = found
            if of in seen:
                text = f"Constraint characteristics [{' '.join(words)}] are duplicated or conflict with each other."
                raise user_error("INVALID_CONSTRAINT_CHARACTERISTICS", text, self.span(at))
            seen.add(of)
            rely = rely or words == ("RELY",)
        if self.word == "ENFORCED":
            text = "Constraint characteristic 'ENFORCED' is not supported for constraint type 'KEY'."
            raise user_error("UNSUPPORTED_CONSTRAINT_CHARACTERISTIC", text, self.span(self.index))
        if self.word in _REFUSED or (self.word == "NOT" and self.peek() == "DEFERRABLE"):
            raise unsupported(f"a key with {self.word} {self.peek()}", self.span(self.index))
        return rely

    def _added_key(self) -> AddKey | None:
        """``ADD [CONSTRAINT name] key``; None, and nothing read, for anything else."""
        start = self.index
        self.expect("ADD")
        name = None
        if self.word == "CONSTRAINT" and not (self.peek() in ("PRIMARY", "FOREIGN") and self.peek(2) == "KEY"):
            self.advance()
            name = self.identifier().name
        if not self._is_key():
            self.seek(start)
            return None
        return AddKey(self._key(name, start))

    def _dropped_key(self) -> DropKey:
        """``DROP PRIMARY KEY …`` and ``DROP FOREIGN KEY … (columns)``."""
        start = self.index
        self.expect("DROP")
        primary = self.word == "PRIMARY"
        self.advance(2)
        if_exists = self.match("IF", "EXISTS")
        columns = None if primary else self._key_columns()
        return DropKey(columns, if_exists, self._cascades() if primary else False, self.span(start))

    def _cascades(self) -> bool:
        """``[RESTRICT | CASCADE]``."""
        cascades = self.match("CASCADE")
        if not cascades:
            self.match("RESTRICT")
        return cascades


def only_one(keys: list[Key], name: Name) -> None:
    """Raise MULTIPLE_PRIMARY_KEYS if a table declares more than one of them."""
    primary = [key for key in keys if key.parent is None]
    if len(primary) > 1:
        shown = ", ".join(f"[{', '.join(key.columns)}]" for key in primary)
        raise user_error("MULTIPLE_PRIMARY_KEYS", f"Multiple primary keys are defined: {shown}.", name.span)
