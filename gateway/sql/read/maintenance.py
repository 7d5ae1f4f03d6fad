"""OPTIMIZE, REORG, VACUUM, RESTORE, REFRESH and ANALYZE: statements about a table's files and versions."""

from __future__ import annotations

from gateway.errors import UserError, unsupported
from gateway.sql.read import allowed
from gateway.sql.read.command_nodes import (
    Analyze,
    AnalyzeTables,
    Name,
    Optimize,
    RefreshTable,
    Reorg,
    Restore,
    Vacuum,
)
from gateway.sql.read.command_rules import CommandRules
from gateway.sql.read.tokens import END, NUMBER, STRING
from gateway.sql.read.tree import number_suffix


class MaintenanceParser(CommandRules):
    """The care of tables."""

    def _optimize(self) -> Optimize:
        self.advance()
        self._no_path("OPTIMIZE")
        table = self._name()
        full = self.match("FULL")
        condition = None
        if self.match("WHERE"):
            condition = self.expression()
            allowed.check(condition)
        order: list[Name] = []
        if self.match("ZORDER", "BY"):
            bracketed = self.match("(")
            while not order or self.match(","):
                order.append(self._name(64))
            if bracketed:
                self.expect(")")
        self._end()
        return Optimize(table, condition, tuple(order), full)

    def _reorg(self) -> Reorg:
        self.advance()
        self.expect("TABLE")
        self._no_path("REORG TABLE")
        table = self._name()
        condition = None
        if self.match("WHERE"):
            condition = self.expression()
            allowed.check(condition)
        self.expect("APPLY", "(")
        if self.word == "UPGRADE":
            raise unsupported("REORG TABLE … APPLY (UPGRADE UNIFORM)", self.span(self.index))
        self.expect("PURGE", ")")
        self._end()
        return Reorg(table, condition)

    def _vacuum(self) -> Vacuum:
        self.advance()
        self._no_path("VACUUM")
        table = self._name()
        seen: set[str] = set()
        kind, hours, dry_run = "", None, False
        while self.word != END:
            if self.word in ("LITE", "FULL"):
                self._once(seen, "LITE/FULL")
                kind = self.word
                self.advance()
            elif self.word == "RETAIN":
                self._once(seen, "RETAIN")
                self.advance()
                hours = self._hours()
            elif self.word == "DRY":
                self._once(seen, "DRY RUN")
                self.expect("DRY", "RUN")
                dry_run = True
            elif self.word == "USING":
                raise unsupported("VACUUM … USING INVENTORY", self.span(self.index))
            else:
                self.fail()
        return Vacuum(table, kind == "LITE", hours, dry_run)

    def _hours(self) -> float:
        text = number_suffix(self.tokens[self.index].text)[0] if self.word == NUMBER else ""
        if not text:
            self.fail()
        self.advance()
        self.expect("HOURS")
        return float(text)

    def _restore(self) -> Restore:
        self.advance()
        self.match("TABLE")
        self._no_path("RESTORE")
        table = self._name()
        self.match("TO")
        self.match("FOR")
        if self.match("VERSION") or self.match("SYSTEM_VERSION"):
            self.expect("AS", "OF")
            if self.word == STRING:
                raise unsupported("RESTORE to a version that is a string", self.span(self.index))
            version = self.integer()
            self._end()
            return Restore(table, version, None)
        if not self.match("TIMESTAMP"):
            self.expect("SYSTEM_TIME")
        self.expect("AS", "OF")
        if self.word == STRING and self.peek() == END:
            timestamp = self.string()
            self._end()
            return Restore(table, None, timestamp)
        moment = self.expression()
        allowed.check(moment)
        self._end()
        return Restore(table, None, None, moment)

    def _analyze(self) -> Analyze | AnalyzeTables:
        self.advance()
        if self.match("TABLES"):
            schema = self._in_name()
            self.expect("COMPUTE", "STATISTICS")
            scans = not self._noscan("ANALYZE TABLES")
            return AnalyzeTables(schema, scans)
        self.expect("TABLE")
        self._no_path("ANALYZE TABLE")
        table = self._name()
        partition = self.span(self.index) if self.word == "PARTITION" else None
        if partition is not None:
            self._partition()
        self.expect("COMPUTE")
        delta = self.match("DELTA")
        self.expect("STATISTICS")
        if delta and self.word != END:
            raise unsupported("ANALYZE TABLE … COMPUTE DELTA STATISTICS with NOSCAN or columns", self.span(self.index))
        if not self.match("FOR"):
            return Analyze(table, not self._noscan("ANALYZE TABLE"), None, delta, partition)
        columns: list[Name] = []
        if not self.match("ALL", "COLUMNS"):
            self.expect("COLUMNS")
            while not columns or self.match(","):
                columns.append(self._name(64))
        self._end()
        return Analyze(table, True, tuple(columns), False, partition)

    def _noscan(self, statement: str) -> bool:
        if self.word not in (END, "NOSCAN") and self.peek() == END:
            text = f"Invalid SQL syntax: {statement} … COMPUTE STATISTICS … {self.word} must be either NOSCAN or empty."
            raise UserError("INVALID_SQL_SYNTAX.ANALYZE_TABLE_UNEXPECTED_NOSCAN", text, span=self.span(self.index))
        found = self.match("NOSCAN")
        self._end()
        return found

    def _refresh(self) -> RefreshTable:
        if self.peek() != "TABLE":
            self._refuse()
        self.advance(2)
        self._no_path("REFRESH TABLE")
        table = self._name()
        self._end()
        return RefreshTable(table)

    def _no_path(self, word: str) -> None:
        if self.word == STRING:
            raise unsupported(f"{word} of a path", self.span(self.index))
