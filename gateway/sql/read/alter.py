"""ALTER TABLE, ALTER VIEW and COMMENT ON."""

from __future__ import annotations

from gateway.errors import unsupported
from gateway.sql.read import allowed
from gateway.sql.read.command_nodes import (
    AddColumns,
    AddConstraint,
    AddedColumn,
    AlterTable,
    AlterView,
    AlterViewProperties,
    ChangeColumns,
    ClusterBy,
    ColumnChange,
    Command,
    CommentOn,
    DropColumns,
    DropConstraint,
    Name,
    Rename,
    RenameColumn,
    SetProperties,
    SyncIdentity,
    UnsetProperties,
)
from gateway.sql.read.command_rules import SCHEMA_WORDS
from gateway.sql.read.datatypes import data_type
from gateway.sql.read.ddl import DefinitionParser
from gateway.sql.read.made_view import EVOLUTION, TYPE_EVOLUTION
from gateway.sql.read.table_nodes import DropFeature, TableChange
from gateway.sql.read.tokens import END, STRING
from gateway.sqltypes import StructField

_COMMENTED = {"TABLE": "TABLE", "VIEW": "VIEW", "COLUMN": "COLUMN", **dict.fromkeys(SCHEMA_WORDS, "SCHEMA")}


class AlterParser(DefinitionParser):
    """The changes of what is there."""

    def _alter(self) -> Command:
        self.advance()
        kind = self.word
        if kind not in ("TABLE", "VIEW"):
            self._refuse()
        self.advance()
        name = self._name()
        result: Command
        if self.word in ("SET", "UNSET") and self.peek() == "TBLPROPERTIES":
            change = self._property_change()
            result = AlterTable(name, change) if kind == "TABLE" else AlterViewProperties(name, change)
        elif self.match("RENAME", "TO"):
            result = Rename(name, self._name(), kind)
        else:
            return self._alter_view(name) if kind == "VIEW" else self._alter_table(name)
        self._end()
        return result

    def _alter_view(self, name: Name) -> AlterView:
        if self.match("WITH", "SCHEMA"):
            return AlterView(name, None, self._mode())
        if not self.match("AS"):
            raise unsupported(f"ALTER VIEW … {self.word}".rstrip(), self.span(0))
        return AlterView(name, self._final_query())

    def _mode(self) -> str:
        mode = ""
        if self.match("TYPE", "EVOLUTION"):
            mode = TYPE_EVOLUTION
        elif self.match("EVOLUTION"):
            mode = EVOLUTION
        elif not self.match("COMPENSATION"):
            raise unsupported(f"WITH SCHEMA {self.word}".rstrip(), self.span(self.index))
        self._end()
        return mode

    def _property_change(self) -> SetProperties | UnsetProperties:
        if not self.match("UNSET", "TBLPROPERTIES"):
            start = self.index
            self.expect("SET", "TBLPROPERTIES")
            pairs = self._properties()
            return SetProperties(pairs, self.span(start))
        if_exists = self.match("IF", "EXISTS")
        self.expect("(")
        keys = [self._property_key()]
        while self.match(","):
            keys.append(self._property_key())
        self.expect(")")
        return UnsetProperties(tuple(keys), if_exists)

    def _alter_table(self, name: Name) -> AlterTable:
        change: TableChange
        start = self.index
        key = self._added_key() if self.word == "ADD" else None
        if key is not None:
            change = key
        elif self.word == "DROP" and self.peek() in ("PRIMARY", "FOREIGN") and self.peek(2) == "KEY":
            change = self._dropped_key()
        elif self.match("DROP", "FEATURE"):
            feature = self.string() if self.word == STRING else self.identifier().name
            change = DropFeature(feature, self.match("TRUNCATE", "HISTORY"), self.span(start))
        elif self.word in ("ADD", "DROP") and self.peek() == "CONSTRAINT":
            change = self._constraint()
        elif self.word == "ADD" and self.peek() in ("COLUMN", "COLUMNS"):
            self.advance(2)
            change = AddColumns(self._added_columns())
        elif self.match("RENAME", "COLUMN"):
            column = self._name(64)
            self.expect("TO")
            change = RenameColumn(column, self.identifier().name, self.span(start))
        elif self.word == "DROP" and self.peek() in ("COLUMN", "COLUMNS"):
            self.advance(2)
            change = self._dropped_columns()
        elif self.match("CLUSTER", "BY"):
            change = ClusterBy(() if self.match("NONE") else self._clusters(), self.span(start))
        elif (synced := self._synced_identity()) is not None:
            change = synced
        elif self.word in ("ALTER", "CHANGE"):
            hive = self.word == "CHANGE"
            self.advance()
            if self.word == "COLUMN" and self.is_name(1):
                self.advance()
            changes = [self._column_change(hive)]
            while self.match(","):
                changes.append(self._column_change(hive))
            change = ChangeColumns(tuple(changes))
        else:
            words = " ".join(w for w in self.words[self.index : self.index + 2] if w[:1].isalpha())
            raise unsupported(f"ALTER TABLE … {words}".rstrip(), self.span(0))
        self._end()
        return AlterTable(name, change)

    def _synced_identity(self) -> SyncIdentity | None:
        """``ALTER | CHANGE [COLUMN] name SYNC IDENTITY``; None, and nothing read, for anything else."""
        start = self.index
        if self.match("ALTER") or self.match("CHANGE"):
            if self.word == "COLUMN" and self.is_name(1):
                self.advance()
            column = self._name(64)
            if self.match("SYNC", "IDENTITY"):
                return SyncIdentity(column)
        self.seek(start)
        return None

    def _constraint(self) -> AddConstraint | DropConstraint:
        start = self.index
        added = self.word == "ADD"
        self.advance(2)
        if not added:
            if_exists = self.match("IF", "EXISTS")
            name = self.identifier().name
            return DropConstraint(name, if_exists, self.span(start), self._cascades())
        name = self.identifier().name
        if self.word != "CHECK":
            words = " ".join(w for w in self.words[self.index : self.index + 2] if w[:1].isalpha())
            raise unsupported(f"ALTER TABLE … ADD CONSTRAINT … {words}".rstrip(), self.span(start))
        self.advance()
        self.expect("(")
        first = self.index
        allowed.check(self.expression())
        tokens = self.tokens[first : self.index]
        self.expect(")")
        if self.word in ("NOT", "ENFORCED", "RELY", "NORELY"):
            raise unsupported(f"ADD CONSTRAINT … CHECK … {self.word}", self.span(self.index))
        text = " ".join(self.text[token.start : token.end + 1] for token in tokens)
        return AddConstraint(name, text, self.span(start))

    def _dropped_columns(self) -> DropColumns:
        if_exists = self.match("IF", "EXISTS")
        bracket = self.match("(")
        found = [self._name(64)]
        while self.match(","):
            found.append(self._name(64))
        if bracket:
            self.expect(")")
        return DropColumns(tuple(found), if_exists)

    def _column_change(self, hive: bool) -> ColumnChange:
        start = self.index
        column = self._name(64)
        if self.match("COMMENT"):
            return ColumnChange(column, comment=self.string())
        if self.match("SET", "NOT", "NULL"):
            return ColumnChange(column, not_null=True)
        if self.match("DROP", "NOT", "NULL"):
            return ColumnChange(column, not_null=False)
        if self.match("SET", "DEFAULT"):
            return ColumnChange(column, default=self._kept_text()[1])
        if self.match("DROP", "DEFAULT"):
            return ColumnChange(column, default="")
        if self.match("TYPE"):
            return ColumnChange(column, type=data_type(self))
        if self.word in ("FIRST", "AFTER") and (self.word == "FIRST" or self.is_name(1)):
            first, after = self._place_among()
            return ColumnChange(column, first=first, after=after)
        if self.word == END:
            self.fail()
        if hive and self.is_name():
            return self._column_anew(column)
        words = [self.word, self.peek()] if self.word in ("SET", "UNSET", "DROP") else [self.word]
        named = " ".join(word for word in words if word[:1].isalpha())
        raise unsupported(f"ALTER TABLE … ALTER COLUMN … {named}".rstrip(), self.span(start))

    def _column_anew(self, column: Name) -> ColumnChange:
        """Hive's form, which says the name once more and the type."""
        at = self.index
        name = self.identifier().name
        if name.lower() != column.parts[-1].lower():
            raise unsupported("ALTER TABLE … CHANGE COLUMN with another name", self.span(at))
        kind = data_type(self)
        not_null = True if self.match("NOT", "NULL") else None
        comment = self.string() if self.match("COMMENT") else None
        first, after = self._place_among()
        return ColumnChange(column, comment, not_null, kind, None, first, after)

    def _place_among(self) -> tuple[bool, str | None]:
        if self.match("FIRST"):
            return True, None
        return False, self.identifier().name if self.match("AFTER") else None

    def _added_columns(self) -> tuple[AddedColumn, ...]:
        bracket = self.match("(")
        found = [self._added_column()]
        while self.match(","):
            found.append(self._added_column())
        if bracket:
            self.expect(")")
        return tuple(found)

    def _added_column(self) -> AddedColumn:
        name = self._name(64)
        kind = data_type(self)
        nullable, comment, first, after = True, None, False, None
        seen: set[str] = set()
        while self.word not in (",", ")", END):
            if self.match("NOT", "NULL"):
                self._once(seen, "NOT NULL")
                nullable = False
            elif self.match("COMMENT"):
                self._once(seen, "COMMENT")
                comment = self.string()
            elif self.match("FIRST"):
                self._once(seen, "FIRST|AFTER")
                first = True
            elif self.match("AFTER"):
                self._once(seen, "FIRST|AFTER")
                after = self.identifier().name
            elif self.word in ("DEFAULT", "GENERATED", "CHECK", "CONSTRAINT", "PRIMARY", "REFERENCES", "MASK"):
                raise unsupported(f"ADD COLUMNS with {self.word}", self.span(self.index))
            else:
                self.fail()
        return AddedColumn(name, StructField(name.parts[-1], kind, nullable, comment), first, after)

    def _comment(self) -> Command:
        self.advance()
        if not self.match("ON"):
            self.fail()
        kind = _COMMENTED.get(self.word)
        if kind is None:
            raise unsupported(f"COMMENT ON {self.word}".rstrip(), self.span(0))
        self.advance()
        name = self._name({"SCHEMA": 2, "COLUMN": 4}.get(kind, 3))
        if kind == "COLUMN" and len(name.parts) < 2:
            self.fail()
        self.expect("IS")
        comment = None if self.match("NULL") else self.string()
        self._end()
        return CommentOn(kind, name, comment)
