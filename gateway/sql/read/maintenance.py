"""OPTIMIZE, VACUUM and RESTORE: statements about a table's files and versions."""

from __future__ import annotations

from gateway.errors import unsupported
from gateway.sql.read import allowed
from gateway.sql.read.command_nodes import Optimize
from gateway.sql.read.command_rules import CommandRules
from gateway.sql.read.tokens import STRING


class MaintenanceParser(CommandRules):
    """The care of tables."""

    def _optimize(self) -> Optimize:
        self.advance()
        if self.word == STRING:
            raise unsupported("OPTIMIZE of a path", self.span(self.index))
        table = self._name()
        if self.word == "FULL":
            raise unsupported("OPTIMIZE … FULL", self.span(self.index))
        condition = None
        if self.match("WHERE"):
            condition = self.expression()
            allowed.check(condition)
        if self.word == "ZORDER":
            raise unsupported("OPTIMIZE … ZORDER BY", self.span(self.index))
        self._end()
        return Optimize(table, condition)
