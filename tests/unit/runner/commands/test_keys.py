"""Primary and foreign keys: declared, told wherever clients look for them, dropped, and nothing is left of them by mistake."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from gateway.catalog import removal
from gateway.delta import commit, log
from gateway.runner.commands import keys
from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import folder_of

_PERSONS = (
    "CREATE TABLE persons (first STRING, last STRING NOT NULL, n INT, "
    "CONSTRAINT persons_key PRIMARY KEY (first, last) RELY)"
)
_PETS = (
    "CREATE TABLE pets (id INT PRIMARY KEY, of STRING, ol STRING, name STRING, "
    "CONSTRAINT owner FOREIGN KEY (of, ol) REFERENCES persons NOT ENFORCED)"
)
_TOLD = [
    ("owner", "FOREIGN KEY (`of`, `ol`) REFERENCES `main`.`shop`.`persons` (`first`, `last`)"),
    ("pets_pk", "PRIMARY KEY (`id`)"),
]


@pytest.fixture
def pets(session: Session) -> Session:
    """A table that refers to another."""
    session.run(_PERSONS)
    session.run(_PETS)
    return session


class _Killed(BaseException):
    """The end of a process, as far as a test can have one."""


def test_a_table_whose_process_ends_once_it_is_made_has_its_keys(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise _Killed

    declared = "CONSTRAINT k PRIMARY KEY (a), CONSTRAINT f FOREIGN KEY (b) REFERENCES t"
    statement = f"CREATE TABLE t (a INT NOT NULL, b INT, {declared})"
    with monkeypatch.context() as patched:
        patched.setattr(commit, "checkpoint_if_due", killed)
        with pytest.raises(_Killed):
            session.run(statement)
    assert [name for name, _ in _told(session, "t")] == ["f", "k"]
    session.run("DROP TABLE t")
    with monkeypatch.context() as patched:
        patched.setattr(commit, "publish", killed)
        with pytest.raises(_Killed):
            session.run(statement)
    assert not list(folder_of(session).parent.glob("_objects/*"))
    session.run(statement)


def test_a_table_that_takes_anothers_place_has_its_keys_although_its_process_ends(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise _Killed

    session.run("CREATE TABLE t (a INT NOT NULL, CONSTRAINT old PRIMARY KEY (a))")
    declared = "CONSTRAINT k PRIMARY KEY (a), CONSTRAINT f FOREIGN KEY (a) REFERENCES t"
    replaced = f"CREATE OR REPLACE TABLE t (a INT NOT NULL, {declared})"
    for function, names in (("publish", ["old"]), ("checkpoint_if_due", ["f", "k"])):
        with monkeypatch.context() as patched:
            patched.setattr(commit, function, killed)
            with pytest.raises(_Killed):
                session.run(replaced)
        assert [name for name, _ in _told(session, "t")] == names
    session.run("ALTER TABLE t DROP CONSTRAINT f")
    session.run("ALTER TABLE t RENAME TO u")
    assert [name for name, _ in _told(session, "u")] == ["k"]
    session.run("CREATE OR REPLACE TABLE u (a INT)")
    assert _told(session, "u") == []


@pytest.mark.parametrize(
    ("then", "name", "names"),
    [
        ("CREATE OR REPLACE TABLE t (a INT NOT NULL, CONSTRAINT second PRIMARY KEY (a))", "t", ["second"]),
        ("CREATE OR REPLACE TABLE t (a INT)", "t", []),
        ("ALTER TABLE t RENAME TO u", "u", ["first"]),
        ("ALTER TABLE t DROP CONSTRAINT first", "t", []),
        ("ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES t", "t", ["f", "first"]),
    ],
)
def test_keys_of_a_table_that_is_replaced_or_renamed_at_once_are_its_own(
    session: Session, monkeypatch: pytest.MonkeyPatch, then: str, name: str, names: list[str]
) -> None:
    keep = keys.keep

    def late(*given: Any) -> None:
        monkeypatch.setattr(keys, "keep", keep)
        session.run(then)
        keep(*given)

    session.run("CREATE TABLE t (a INT)")
    monkeypatch.setattr(keys, "keep", late)
    session.run("CREATE OR REPLACE TABLE t (a INT NOT NULL, CONSTRAINT first PRIMARY KEY (a))")
    assert [key for key, _ in _told(session, name)] == names


@pytest.mark.parametrize(
    ("meanwhile", "names"),
    [
        ("ALTER TABLE t DROP CONSTRAINT old", []),
        ("ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES t", ["f", "old"]),
    ],
)
@pytest.mark.parametrize("is_made", [False, True])
def test_keys_that_are_changed_before_a_table_takes_the_place_undo_no_announcement(
    session: Session, monkeypatch: pytest.MonkeyPatch, meanwhile: str, names: list[str], is_made: bool
) -> None:
    session.run("CREATE TABLE t (a INT NOT NULL, CONSTRAINT old PRIMARY KEY (a))")
    announce = keys.announce

    def early(*given: Any) -> None:
        monkeypatch.setattr(keys, "announce", announce)
        announce(*given)
        session.run(meanwhile)
        assert [key for key, _ in _told(session, "t")] == names
        if not is_made:
            raise _Killed

    def killed(*_: object) -> None:
        raise _Killed

    monkeypatch.setattr(keys, "announce", early)
    monkeypatch.setattr(keys, "keep", killed)
    with pytest.raises(_Killed):
        session.run("CREATE OR REPLACE TABLE t (a INT NOT NULL, CONSTRAINT first PRIMARY KEY (a))")
    assert [key for key, _ in _told(session, "t")] == (["first"] if is_made else names)


def test_a_table_that_is_made_while_another_of_its_name_is_removed_keeps_its_keys(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.run("CREATE TABLE t (a INT NOT NULL, CONSTRAINT old PRIMARY KEY (a))")
    session.run("ANALYZE TABLE t COMPUTE STATISTICS")
    discard = removal.discard

    def slow(trash: str, root: str) -> None:
        monkeypatch.setattr(removal, "discard", discard)
        session.run("CREATE TABLE t (b INT NOT NULL, CONSTRAINT young PRIMARY KEY (b))")
        discard(trash, root)

    monkeypatch.setattr(removal, "discard", slow)
    session.run("DROP TABLE t")
    assert _told(session, "t") == [("young", "PRIMARY KEY (`b`)")]
    assert not list(folder_of(session).parent.glob("_objects/*.statistics.json"))
    session.run("DROP TABLE t")
    assert not list(folder_of(session).parent.glob("_objects/*"))


def _told(session: Session, table: str) -> list[tuple[str, str]]:
    rows = session.rows(f"DESCRIBE EXTENDED {table}")
    names = [row[0] for row in rows]
    at = names.index("# Constraints") if "# Constraints" in names else len(rows)
    return sorted(row[:2] for row in rows[at + 1 :])


def test_keys_are_told_and_columns_of_primary_keys_are_not_null(pets: Session) -> None:
    assert _told(pets, "pets") == _TOLD
    assert _told(pets, "persons") == [("persons_key", "PRIMARY KEY (`first`, `last`) RELY")]
    fields = pets.run("SELECT * FROM persons").planned.schema.fields
    assert [f.nullable for f in fields] == [False, False, True]
    ((text,),) = pets.rows("DESCRIBE TABLE EXTENDED pets AS JSON")
    constraints = json.loads(text)["table_constraints"]
    assert all(f"({name},{told})" in constraints for name, told in _TOLD)


def test_show_create_table_makes_the_same_keys(pets: Session) -> None:
    texts = [pets.rows(f"SHOW CREATE TABLE {table}")[0][0] for table in ("persons", "pets")]
    told = _told(pets, "persons")
    pets.run("DROP TABLE persons")
    assert [name for name, _ in _told(pets, "pets")] == ["pets_pk"]  # what referred to it is gone
    pets.run("DROP TABLE pets")
    for text in texts:
        pets.run(text)
    assert (_told(pets, "persons"), _told(pets, "pets")) == (told, _TOLD)


def test_nothing_of_keys_is_in_the_log(pets: Session) -> None:
    folder = folder_of(pets, "pets")
    before = log.commit_versions(str(folder))
    pets.run("ALTER TABLE pets DROP PRIMARY KEY")
    pets.run("ALTER TABLE pets ADD PRIMARY KEY (id)")
    assert log.commit_versions(str(folder)) == before
    texts = "".join(p.read_text() for p in Path(folder, "_delta_log").glob("*.json"))
    assert "owner" not in texts
    assert "pets_pk" not in texts


def test_the_information_schema_tells_of_keys(pets: Session) -> None:
    where = "WHERE constraint_schema = 'shop' ORDER BY ALL"
    assert pets.rows(
        f"SELECT constraint_name, table_name, constraint_type, enforced FROM information_schema.table_constraints {where}"
    ) == [
        ("owner", "pets", "FOREIGN KEY", "NO"),
        ("persons_key", "persons", "PRIMARY KEY", "NO"),
        ("pets_pk", "pets", "PRIMARY KEY", "NO"),
    ]
    assert pets.rows(
        "SELECT constraint_name, table_name, column_name, ordinal_position, position_in_unique_constraint "
        f"FROM information_schema.key_column_usage {where}"
    ) == [
        ("owner", "pets", "of", 1, 1),
        ("owner", "pets", "ol", 2, 2),
        ("persons_key", "persons", "first", 1, None),
        ("persons_key", "persons", "last", 2, None),
        ("pets_pk", "pets", "id", 1, None),
    ]
    assert pets.rows(
        "SELECT constraint_name, unique_constraint_name, match_option, update_rule, delete_rule "
        f"FROM information_schema.referential_constraints {where}"
    ) == [("owner", "persons_key", "FULL", "NO ACTION", "NO ACTION")]
    usage = "information_schema.constraint_column_usage WHERE table_name = 'persons' AND table_schema = 'shop'"
    assert pets.rows(f"SELECT constraint_name, column_name FROM {usage} ORDER BY ALL") == [
        ("owner", "first"),
        ("owner", "last"),
        ("persons_key", "first"),
        ("persons_key", "last"),
    ]


def test_metadata_calls_tell_of_keys(pets: Session) -> None:
    place = ("main", "shop")
    assert pets.ask("primary_keys", catalog="main", schema="shop", table="PERSONS").rows == [
        (*place, "persons", "first", 1, "persons_key"),
        (*place, "persons", "last", 2, "persons_key"),
    ]
    expected = [
        (*place, "persons", "first", *place, "pets", "of", 1, 3, 3, "owner", "persons_key", 5),
        (*place, "persons", "last", *place, "pets", "ol", 2, 3, 3, "owner", "persons_key", 5),
    ]
    assert pets.ask("cross_reference", schema="shop", table="pets").rows == expected
    assert pets.ask("cross_reference", parent=("main", "shop", "persons")).rows == expected
    assert pets.ask("cross_reference", parent=("main", "shop", "pets")).rows == []
    assert pets.rows("SHOW FOREIGN KEYS IN CATALOG main IN SCHEMA shop IN TABLE pets") == expected
    assert pets.rows("SHOW KEYS IN CATALOG main IN SCHEMA shop IN TABLE pets") == [(*place, "pets", "id", 1, "pets_pk")]


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("CREATE TABLE t (a INT, PRIMARY KEY (nope))", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a, A))", "COLUMN_ALREADY_EXISTS"),
        ("CREATE TABLE t (a INT PRIMARY KEY, b INT, PRIMARY KEY (b))", "MULTIPLE_PRIMARY_KEYS"),
        ("CREATE TABLE t (a INT PRIMARY KEY PRIMARY KEY)", "CREATE_TABLE_COLUMN_DESCRIPTOR_DUPLICATE"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a) ENFORCED)", "UNSUPPORTED_CONSTRAINT_CHARACTERISTIC"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a) RELY NORELY)", "INVALID_CONSTRAINT_CHARACTERISTICS"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a) NOT ENFORCED NOT ENFORCED)", "INVALID_CONSTRAINT_CHARACTERISTICS"),
        ("CREATE TABLE t (a INT, CONSTRAINT owner PRIMARY KEY (a))", "CONSTRAINT_ALREADY_EXISTS"),
        ("CREATE TABLE t (a INT, CONSTRAINT c CHECK (a > 0), CONSTRAINT C PRIMARY KEY (a))", "CONSTRAINT_ALREADY_EXISTS"),
        ("CREATE TABLE t (a INT, b STRUCT<x: INT>, PRIMARY KEY (b))", "UNSUPPORTED_FEATURE"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a TIMESERIES))", "UNSUPPORTED_FEATURE"),
        ("CREATE TABLE t (a INT UNIQUE)", "UNSUPPORTED_FEATURE"),
        ("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES nope)", "TABLE_OR_VIEW_NOT_FOUND"),
        ("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES persons)", "FOREIGN_KEY_MISMATCH"),
        ("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES pets (name))", "FOREIGN_KEY_MISMATCH"),
        ("CREATE TABLE t (a BIGINT, FOREIGN KEY (a) REFERENCES pets (id))", "FOREIGN_KEY_MISMATCH"),
        ("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES pets ON DELETE CASCADE)", "UNSUPPORTED_FEATURE"),
        ("ALTER TABLE pets ADD CONSTRAINT p PRIMARY KEY (name)", "MULTIPLE_PRIMARY_KEYS"),
        ("ALTER TABLE pets ADD FOREIGN KEY (of, ol) REFERENCES persons", "CONSTRAINT_ALREADY_EXISTS"),
        ("ALTER TABLE persons DROP PRIMARY KEY", "CANNOT_DROP_REFERENCED_PRIMARY_KEY"),
        ("ALTER TABLE persons DROP CONSTRAINT persons_key RESTRICT", "CANNOT_DROP_REFERENCED_PRIMARY_KEY"),
        ("ALTER TABLE persons DROP FOREIGN KEY (first)", "CONSTRAINT_DOES_NOT_EXIST"),
        ("ALTER TABLE pets DROP CONSTRAINT nope", "DELTA_CONSTRAINT_DOES_NOT_EXIST"),
        ("ALTER TABLE pets ALTER COLUMN id DROP NOT NULL", "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"),
    ],
)  # fmt: skip
def test_what_is_no_key_is_refused_and_nothing_done(pets: Session, statement: str, condition: str) -> None:
    before = _told(pets, "pets"), _told(pets, "persons")
    assert refused(pets, statement).condition == condition
    assert (_told(pets, "pets"), _told(pets, "persons")) == before
    assert pets.rows("SHOW TABLES LIKE 't'") == []


def test_a_column_of_a_primary_key_has_to_be_not_null(pets: Session) -> None:
    pets.run("ALTER TABLE pets DROP CONSTRAINT pets_pk")
    error = refused(pets, "ALTER TABLE pets ADD CONSTRAINT by_name PRIMARY KEY (name)")
    assert "is nullable" in error.message
    pets.run("ALTER TABLE pets ALTER COLUMN name SET NOT NULL")
    pets.run("ALTER TABLE pets ADD CONSTRAINT by_name PRIMARY KEY (name) NORELY")
    assert ("by_name", "PRIMARY KEY (`name`)") in _told(pets, "pets")


def test_cascade_drops_the_keys_that_refer(pets: Session) -> None:
    pets.run("ALTER TABLE persons DROP PRIMARY KEY CASCADE")
    assert _told(pets, "persons") == []
    assert [name for name, _ in _told(pets, "pets")] == ["pets_pk"]
    pets.run("ALTER TABLE persons DROP PRIMARY KEY IF EXISTS")


def test_keys_follow_their_tables_under_other_names(pets: Session) -> None:
    pets.run("ALTER TABLE persons RENAME TO people")
    assert _told(pets, "pets")[0][1].endswith("REFERENCES `main`.`shop`.`people` (`first`, `last`)")
    pets.run("ALTER TABLE pets RENAME TO animals")
    assert [name for name, _ in _told(pets, "animals")] == ["owner", "pets_pk"]


def test_on_a_full_disk_a_table_keeps_its_name_and_its_keys(pets: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert refused(pets, "ALTER TABLE pets RENAME TO animals").sqlstate == "53100"
    monkeypatch.undo()
    assert _told(pets, "pets") == _TOLD
    pets.run("ALTER TABLE pets RENAME TO animals")
    assert _told(pets, "animals") == _TOLD


@pytest.mark.parametrize(("number", "sqlstate"), [(errno.ENOSPC, "53100"), (errno.EIO, "58030")])
def test_on_a_disk_that_fails_no_table_is_made_without_its_keys(
    session: Session, monkeypatch: pytest.MonkeyPatch, number: int, sqlstate: str
) -> None:
    replace = os.replace

    def failing(source: str, target: str, **where: int) -> None:
        if target.endswith(".keys.json"):
            raise OSError(number, os.strerror(number))
        replace(source, target, **where)

    monkeypatch.setattr(os, "replace", failing)
    error = refused(session, _PERSONS)
    assert error.sqlstate == sqlstate and "without its keys" not in error.message
    assert session.rows("SHOW TABLES") == []
    session.run("CREATE TABLE persons AS SELECT 1 AS first")
    error = refused(session, _PERSONS.replace("CREATE", "CREATE OR REPLACE"))
    assert error.sqlstate == sqlstate and "without its keys" not in error.message
    assert session.rows("SHOW COLUMNS IN persons") == [("first",)]
    monkeypatch.undo()
    session.run(_PERSONS.replace("CREATE", "CREATE OR REPLACE"))
    assert _told(session, "persons") == [("persons_key", "PRIMARY KEY (`first`, `last`) RELY")]


def test_another_table_of_the_name_has_no_keys(pets: Session) -> None:
    pets.run("CREATE OR REPLACE TABLE persons (first STRING NOT NULL, last STRING NOT NULL)")
    assert _told(pets, "persons") == []
    assert [name for name, _ in _told(pets, "pets")] == ["pets_pk"]
    pets.run("ALTER TABLE persons ADD PRIMARY KEY (first, last)")
    assert [name for name, _ in _told(pets, "pets")] == ["pets_pk"]
    pets.run("DROP TABLE pets")
    pets.run("DROP TABLE persons")
    pets.run("USE default")
    pets.run("DROP SCHEMA shop")
    pets.run("CREATE SCHEMA shop")


def test_a_foreign_key_that_holds_no_more_makes_room(pets: Session) -> None:
    """dbt-databricks replaces the table that is referred to, and adds the key anew, as it is told of none."""
    pets.run(_PERSONS.replace("CREATE TABLE", "CREATE OR REPLACE TABLE"))
    assert _told(pets, "pets") == _TOLD[1:]
    add = "ADD CONSTRAINT owner FOREIGN KEY (of, ol) REFERENCES persons"
    pets.run(f"ALTER TABLE pets {add}")
    assert _told(pets, "pets") == _TOLD
    assert refused(pets, f"ALTER TABLE pets {add}").condition == "CONSTRAINT_ALREADY_EXISTS"
    pets.run(_PERSONS.replace("CREATE TABLE", "CREATE OR REPLACE TABLE"))
    pets.run("CREATE TABLE others (of STRING, ol STRING)")
    pets.run(f"ALTER TABLE others {add}")  # the name is free, too
    pets.run("ALTER TABLE pets ADD FOREIGN KEY (of, ol) REFERENCES persons")
    assert _told(pets, "pets") == [
        ("pets_persons_fk", _TOLD[0][1]),
        _TOLD[1],
    ]


def test_a_table_may_refer_to_itself(session: Session) -> None:
    session.run("CREATE TABLE staff (boss INT REFERENCES staff (id), id INT PRIMARY KEY)")
    assert _told(session, "staff") == [
        ("staff_pk", "PRIMARY KEY (`id`)"),
        ("staff_staff_fk", "FOREIGN KEY (`boss`) REFERENCES `main`.`shop`.`staff` (`id`)"),
    ]
    session.run("ALTER TABLE staff DROP PRIMARY KEY CASCADE")
    assert _told(session, "staff") == []


def test_columns_of_a_foreign_key_may_be_named_in_any_order(session: Session) -> None:
    session.run("CREATE TABLE a (x INT, y STRING, PRIMARY KEY (x, y))")
    session.run("CREATE TABLE b (s STRING, i INT, FOREIGN KEY (s, i) REFERENCES a (y, x))")
    assert _told(session, "b") == [("b_a_fk", "FOREIGN KEY (`i`, `s`) REFERENCES `main`.`shop`.`a` (`x`, `y`)")]


def test_a_check_of_a_partition_column_is_no_longer_lost(session: Session) -> None:
    session.run("CREATE TABLE t (a INT) PARTITIONED BY (p INT CHECK (p > 0))")
    assert refused(session, "INSERT INTO t VALUES (1, 0)").condition == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
