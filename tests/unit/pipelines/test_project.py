"""Projects: what `load` takes, and by which file and key it refuses the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.pipelines import starter
from gateway.pipelines.project import ProjectError, load

SPEC = "name: p\nstorage: file:///srv/p\nlibraries:\n  - glob:\n      include: t/**\n"


def make(folder: Path, spec: str = SPEC) -> Path:
    (folder / "t").mkdir(parents=True)
    (folder / "t" / "a.sql").write_text("CREATE MATERIALIZED VIEW a AS SELECT 1 AS x")
    (folder / "spark-pipeline.yml").write_text(spec)
    return folder


def refusal(folder: Path) -> str:
    with pytest.raises(ProjectError) as caught:
        load(folder)
    return caught.value.message


def test_what_init_writes_is_a_project(tmp_path: Path) -> None:
    files = starter.write(tmp_path / "My Shop")
    project = load(tmp_path / "My Shop")
    assert project.name == "my_shop" and project.database == "my_shop"
    assert project.storage_folder == tmp_path / "My Shop" / "pipeline-storage"
    assert project.configuration == {"spark.sql.sources.default": "delta"}
    assert [f.name for f in project.files] == ["bronze.py", "gold.sql", "silver.sql"]
    assert set(project.files) < set(files)


def test_init_leaves_a_folder_alone_that_holds_something(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine")
    with pytest.raises(ProjectError, match="not an empty folder"):
        starter.write(tmp_path)


def test_spec_keys(tmp_path: Path) -> None:
    project = load(make(tmp_path, SPEC + "schema: shop\ncatalog: spark_catalog\n"))
    assert (project.name, project.storage, project.database, project.catalog) == (
        "p",
        "file:///srv/p",
        "shop",
        "spark_catalog",
    )


def test_database_is_default_unless_given(tmp_path: Path) -> None:
    assert load(make(tmp_path)).database == "default"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (SPEC + "storages: x\n", "unknown key storages; did you mean storage?"),
        (SPEC + "schedule: daily\n", "unknown key schedule; Spark knows name, storage"),
        (SPEC.replace("name: p\n", ""), "the key name is missing"),
        (SPEC.replace("name: p", "name: [p]"), "the key name needs a text, not ['p']"),
        (SPEC.replace("file:///srv/p", "storage"), "the key storage needs an absolute URI"),
        (SPEC.replace("file:///srv/p", "file:storage"), "the key storage needs an absolute URI"),
        (SPEC + "configuration: {a.b: 3}\n", 'configuration.a.b needs a text, not 3: put it into quotes ("3")'),
        (SPEC + "configuration: [a]\n", "the key configuration needs a mapping"),
        (SPEC + "database: a\nschema: b\n", "database and schema mean the same"),
        (SPEC.replace("t/**", "u/**"), "libraries: there is no folder u"),
        (SPEC.replace("t/**", "t/b.sql"), "libraries: there is no file t/b.sql"),
        (SPEC.replace("t/**", "t/*.sql"), "a file or FOLDER/**, not the pattern t/*.sql"),
        (SPEC[: SPEC.index("libraries")], "libraries names no file of definitions"),
        (SPEC.replace("- glob:", "- file:"), "libraries: `- glob: {include: PATTERN}` is needed"),
        ("name: p\n  storage: x\n", "is not valid YAML: line 2, column 10"),
        ("name: 'p\n", "is not valid YAML: line 2"),
        ("- name\n", "is not a mapping"),
        ("", "is not a mapping"),
    ],
)
def test_refused_specs_are_told_by_file_and_key(tmp_path: Path, spec: str, told: str) -> None:
    message = refusal(make(tmp_path, spec))
    assert message.startswith(f"{tmp_path / 'spark-pipeline.yml'}: ") and told in message


def test_refused_folders(tmp_path: Path) -> None:
    assert "is no folder" in refusal(tmp_path / "missing")
    assert "no spark-pipeline.yml" in refusal(tmp_path)
    make(tmp_path)
    (tmp_path / "spark-pipeline.yaml").write_text(SPEC)
    assert "both spark-pipeline.yml and spark-pipeline.yaml" in refusal(tmp_path)


def test_other_files_among_the_libraries_are_refused(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "t" / "notes.md").write_text("x")
    assert refusal(tmp_path).startswith(str(tmp_path / "t" / "notes.md"))


def test_storage_is_not_decoded(tmp_path: Path) -> None:
    for uri in ("file:///a b/c%20d#e", "file:/a b/c%20d#e", "/a b/c%20d#e"):
        project = load(make(tmp_path / str(len(uri)), SPEC.replace("file:///srv/p", f"'{uri}'")))
        assert project.storage_folder == Path("/a b/c%20d#e")


def test_storage_elsewhere_is_no_folder(tmp_path: Path) -> None:
    assert load(make(tmp_path, SPEC.replace("file:///srv/p", "s3a://bucket/p"))).storage_folder is None
