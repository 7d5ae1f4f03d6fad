"""INSERT, DELETE, UPDATE, MERGE and TRUNCATE: statements that change the rows of a table."""

from __future__ import annotations

import functools
from collections.abc import Callable

from sqlglot import exp

from gateway.errors import UserError, unsupported
from gateway.sql.read import allowed
from gateway.sql.read.behind_ctes import Change, with_ctes
from gateway.sql.read.command_nodes import (
    MATCHED,
    NOT_MATCHED,
    NOT_MATCHED_BY_SOURCE,
    Assignment,
    Delete,
    Insert,
    Merge,
    MergeClause,
    Name,
    ReplaceOn,
    Truncate,
    Update,
)
from gateway.sql.read.command_rules import CommandRules
from gateway.sql.read.cursor import STRICT
from gateway.sql.read.tokens import END, syntax_error

_NO_ALIAS = STRICT | {"SET", "WHERE", "USING", "ON"}
# Words behind the name of an INSERT's table that are no alias of it.
_NO_INSERT_ALIAS = _NO_ALIAS | {
    "BY",
    "REPLACE",
    "PARTITION",
    "IF",
    "SELECT",
    "VALUES",
    "TABLE",
    "WITH",
    "FROM",
    "MAP",
    "REDUCE",
}
_OMITTED = {
    MATCHED: ("NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION", "MATCHED"),
    NOT_MATCHED: ("NON_LAST_NOT_MATCHED_BY_TARGET_CLAUSE_OMIT_CONDITION", "NOT MATCHED [BY TARGET]"),
    NOT_MATCHED_BY_SOURCE: ("NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION", "NOT MATCHED BY SOURCE"),
}


_KINDS = tuple(_OMITTED)

_TARGET, _SOURCE = "target", "source"  # of REPLACE USING: no query sees the one, nobody else names the other


def _column(name: Name, relation: str) -> exp.Column:
    return exp.Column(this=exp.to_identifier(name.parts[-1], quoted=True), table=exp.to_identifier(relation))


class ChangeParser(CommandRules):
    """The changes."""

    def _insert(self) -> Insert | ReplaceOn:
        self.advance()
        evolves = self.match("WITH", "SCHEMA", "EVOLUTION")
        overwrite = self.match("OVERWRITE")
        if overwrite and (
            self.word == "DIRECTORY" or self.words[self.index : self.index + 2] == ["LOCAL", "DIRECTORY"]
        ):
            raise unsupported("INSERT OVERWRITE DIRECTORY", self.span(0))
        if not overwrite or self.word == "INTO":
            self.expect("INTO")
        if self.word == "TABLE" and self.is_name(1):
            self.advance()
        table = self._name()
        start = self.index
        if not overwrite and (found := self._replace_on(table)) is not None:
            if evolves:
                raise unsupported("INSERT WITH SCHEMA EVOLUTION … REPLACE ON or USING", self.span(start))
            return found
        partition = self._partition() if self.word == "PARTITION" and self.peek() == "(" else ()
        if self.word == "IF" and self.peek() == "NOT":
            raise unsupported("INSERT … IF NOT EXISTS", self.span(self.index))
        replaced = None
        by_name = self.match("BY", "NAME")
        if self.word == "REPLACE" and self.peek() == "WHERE" and not overwrite and not partition:
            self.advance(2)
            replaced = self._checked_expression()
        if self.word in ("REPLACE", "WITH") and self.peek() in ("(", "WHERE", "USING", "ON", "SCHEMA"):
            raise unsupported(f"INSERT INTO … {self.word}", self.span(self.index))
        columns: tuple[Name, ...] | None = None
        if self.word == "(" and not by_name and not self.query_at(0):
            columns = self._columns_of_insert()
        return Insert(table, self._final_query(), columns, by_name, overwrite, partition, replaced, evolves)

    def _change_behind_ctes(self) -> Change:
        """``WITH …`` before a change, whose queries may read what stands before it."""
        ctes = self._ctes()
        changes: dict[str, Callable[[], Change]] = {
            "INSERT": self._insert,
            "DELETE": self._delete,
            "UPDATE": self._update,
            "MERGE": self._merge,
        }
        if self.word not in changes:
            self._refuse()
        found = changes[self.word]()
        allowed.check(ctes)
        return with_ctes(found, ctes)

    def _replace_on(self, table: Name) -> ReplaceOn | None:
        """``[alias] [BY NAME] REPLACE ON … | REPLACE USING …``; None, and nothing read, for another INSERT."""
        start = self.index
        alias = None
        if self.match("AS") or (self.is_name() and self.word not in _NO_INSERT_ALIAS):
            alias = self.identifier().name
        by_name = self.match("BY", "NAME")
        if alias is None and self.match("REPLACE", "USING"):
            return self._replace_using(table, by_name, start)
        if not self.match("REPLACE", "ON"):
            self.seek(start)
            return None
        self.before_query = True
        condition = self._checked_expression()
        self.before_query = False
        source = self._merge_source() if self.word == "(" else exp.Subquery(this=self._final_query().tree)
        self._end()
        return ReplaceOn(table, alias, by_name, condition, source, self.span(start))

    def _replace_using(self, table: Name, by_name: bool, start: int) -> ReplaceOn:
        names = self._columns_of_insert()
        if len({name.parts[-1].lower() for name in names}) < len(names):
            raise unsupported("REPLACE USING with a column that is named twice", self.span(start))
        query = self._final_query()
        equal: list[exp.Expr] = [
            exp.EQ(this=_column(name, _TARGET), expression=_column(name, _SOURCE)) for name in names
        ]
        condition = functools.reduce(lambda left, right: exp.And(this=left, expression=right), equal)
        alias = exp.TableAlias(this=exp.to_identifier(_SOURCE))
        source = exp.Subquery(this=query.tree, alias=alias)
        return ReplaceOn(table, _TARGET, by_name, condition, source, self.span(start), names)

    def _columns_of_insert(self) -> tuple[Name, ...]:
        self.expect("(")
        names: list[Name] = []
        while not names or self.match(","):
            names.append(self._name(1))
        self.expect(")")
        return tuple(names)

    def _truncate(self) -> Truncate:
        self.advance()
        self.expect("TABLE")
        table = self._name()
        if self.word == "PARTITION":
            text = (
                "Operation not allowed: TRUNCATE TABLE on Delta tables does not support partition predicates; use DELETE to "
                "delete specific partitions or rows."
            )
            condition = "DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED"
            raise UserError(condition, text, span=self.span(self.index))
        self._end()
        return Truncate(table)

    def _delete(self) -> Delete:
        self.advance()
        self.expect("FROM")
        table, alias = self._changed_table()
        condition = self._checked_expression() if self.match("WHERE") else None
        self._end()
        return Delete(table, alias, condition)

    def _update(self) -> Update:
        self.advance()
        table, alias = self._changed_table()
        self.expect("SET")
        assignments = self._assignments()
        condition = self._checked_expression() if self.match("WHERE") else None
        self._end()
        return Update(table, alias, assignments, condition)

    def _merge(self) -> Merge:
        self.advance()
        evolves = self.match("WITH", "SCHEMA", "EVOLUTION")
        self.expect("INTO")
        table, alias = self._changed_table()
        self.expect("USING")
        source = self._merge_source()
        self.expect("ON")
        condition = self._checked_expression()
        clauses: list[MergeClause] = []
        while self.word == "WHEN":
            clauses.append(self._merge_clause())
        order = [_KINDS.index(clause.kind) for clause in clauses]
        late = next((i for i in range(1, len(order)) if order[i] < order[i - 1]), None)
        if late is not None:
            raise syntax_error(
                "WHEN", clauses[late].span, "clauses for MATCHED, NOT MATCHED, NOT MATCHED BY SOURCE, in this order"
            )
        if not clauses:
            text = "There must be at least one WHEN clause in a MERGE statement."
            raise UserError("MERGE_WITHOUT_WHEN", text, span=self.span(0))
        self._end()
        for kind, (error, shown) in _OMITTED.items():
            of_kind = [clause for clause in clauses if clause.kind == kind]
            if any(clause.condition is None for clause in of_kind[:-1]):
                text = (
                    f"When there are more than one {shown} clauses in a MERGE statement, only the last {shown} clause can "
                    "omit the condition."
                )
                raise UserError(error, text, span=self.span(0))
        return Merge(table, alias, source, condition, tuple(clauses), evolves)

    def _merge_source(self) -> exp.Expr:
        """A table or a query in brackets."""
        start = self.index
        source = self.primary_relation()
        whole = isinstance(source, exp.Table) and not isinstance(source.this, exp.Anonymous)
        if not whole and not (isinstance(source, exp.Subquery) and isinstance(source.this, (exp.Query, exp.Values))):
            self.fail(index=start)
        alias = source.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            raise self._no_columns(start)
        allowed.check(source)
        return source

    def _no_columns(self, start: int) -> UserError:
        text = "Column aliases are not allowed in the tables of a change."
        return UserError("COLUMN_ALIASES_NOT_ALLOWED", text, span=self.span(start))

    def _merge_clause(self) -> MergeClause:
        start = self.index
        self.expect("WHEN")
        kind = MATCHED
        if self.match("NOT"):
            self.expect("MATCHED")
            kind = NOT_MATCHED
            if self.match("BY", "SOURCE"):
                kind = NOT_MATCHED_BY_SOURCE
            else:
                self.match("BY", "TARGET")
        else:
            self.expect("MATCHED")
        condition = self._checked_expression() if self.match("AND") else None
        self.expect("THEN")
        if kind == NOT_MATCHED:
            return self._insert_clause(condition, start)
        if self.match("DELETE"):
            return MergeClause(kind, "delete", condition, (), self.span(start))
        self.expect("UPDATE", "SET")
        if self.word == "*" and kind == MATCHED:
            self.advance()
            return MergeClause(kind, "update", condition, None, self.span(start), self._left_out())
        return MergeClause(kind, "update", condition, self._assignments(), self.span(start))

    def _left_out(self) -> tuple[Name, ...]:
        """``[EXCEPT (columns)]`` behind ``*``, as Databricks has it."""
        names: list[Name] = []
        if self.match("EXCEPT"):
            self.expect("(")
            while not names or self.match(","):
                names.append(self._name(1))
            self.expect(")")
        return tuple(names)

    def _insert_clause(self, condition: exp.Expr | None, start: int) -> MergeClause:
        self.expect("INSERT")
        if self.match("*"):
            return MergeClause(NOT_MATCHED, "insert", condition, None, self.span(start), self._left_out())
        self.expect("(")
        names: list[Name] = []
        while not names or self.match(","):
            names.append(self._name(8))
        self.expect(")")
        at = self.index
        self.expect("VALUES", "(")
        values: list[exp.Expr | None] = []
        while not values or self.match(","):
            values.append(self._assigned_value())
        self.expect(")")
        if len(values) != len(names):
            text = "The number of inserted values cannot match the fields."
            raise UserError("MERGE_INSERT_VALUE_COUNT_MISMATCH", text, span=self.span(at))
        pairs = zip(names, values, strict=True)
        assignments = tuple(Assignment(name, value) for name, value in pairs)
        return MergeClause(NOT_MATCHED, "insert", condition, assignments, self.span(start))

    def _changed_table(self) -> tuple[Name, str | None]:
        if self.word == "(":
            self.fail()
        table = self._name()
        alias = None
        if self.match("AS") or (self.is_name() and self.word not in _NO_ALIAS):
            alias = self.identifier().name
            if self.word == "(":
                raise self._no_columns(self.index)
        return table, alias

    def _assignments(self) -> tuple[Assignment, ...]:
        found: list[Assignment] = []
        while not found or self.match(","):
            column = self._name(8)
            self.expect("=")
            found.append(Assignment(column, self._assigned_value()))
        return tuple(found)

    def _assigned_value(self) -> exp.Expr | None:
        """A value; None for DEFAULT."""
        if self.word == "DEFAULT" and self.peek() in (",", ")", "WHERE", "WHEN", END):
            self.advance()
            return None
        return self._checked_expression()

    def whole_expression(self) -> exp.Expr:
        """An expression that is all of the text."""
        tree = self._checked_expression()
        self._end()
        return tree
