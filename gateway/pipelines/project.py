"""A pipeline project: a folder with ``spark-pipeline.yml`` and files of definitions, as plain ``spark-pipelines`` reads it.

Everything that is wrong with a project before Spark sees it is a `ProjectError` that names the file and the key.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.errors import ConfigError

SPEC_FILES = ("spark-pipeline.yml", "spark-pipeline.yaml")
KEYS = ("name", "storage", "catalog", "database", "schema", "configuration", "libraries")
DEFINITIONS = (".py", ".sql")
DEFAULT_DATABASE = "default"
CHECKPOINTS = "_checkpoints"


class ProjectError(ConfigError):
    """A project that cannot run as it is: the message names the file, key or table, and what to do."""


@dataclass(frozen=True, slots=True)
class Project:
    """A checked project. `storage` is an absolute URI or path; `files` are the definition files, sorted."""

    folder: Path
    spec: Path
    name: str
    storage: str
    catalog: str | None
    database: str
    configuration: Mapping[str, str]
    files: tuple[Path, ...]

    @property
    def storage_folder(self) -> Path | None:
        """`storage` as a folder of this machine; None for other file systems."""
        path = local_path(self.storage)
        return None if path is None else Path(path)


def local_path(uri: str) -> str | None:
    """The path on this machine that Spark means by `uri`, which it does not decode; None for other file systems."""
    path = uri.removeprefix("file:")
    if path != uri and (path.startswith("///") or not path.startswith("//")):
        return "/" + path.lstrip("/")
    return uri if uri.startswith("/") else None


def load(folder: Path) -> Project:
    """The project in `folder`. Raises ProjectError."""
    spec = _spec_file(folder)
    values = _read(spec)
    known = {str(key): value for key, value in values.items()}
    for key in known:
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; Spark knows {', '.join(KEYS)}"
            raise ProjectError(str(spec), f"unknown key {key}{hint}")
    texts = {key: _text(spec, known, key) for key in ("name", "storage", "catalog", "database", "schema")}
    name, storage = texts["name"], texts["storage"]
    if name is None or storage is None:
        missing = "name" if name is None else "storage"
        raise ProjectError(str(spec), f"the key {missing} is missing")
    if texts["database"] is not None and texts["schema"] is not None:
        raise ProjectError(str(spec), "the keys database and schema mean the same: give one of them")
    _check_storage(spec, storage)
    files = _files(spec, known.get("libraries", []))
    return Project(
        folder=spec.parent,
        spec=spec,
        name=name,
        storage=storage,
        catalog=texts["catalog"],
        database=texts["database"] or texts["schema"] or DEFAULT_DATABASE,
        configuration=_configuration(spec, known.get("configuration", {})),
        files=files,
    )


def _spec_file(folder: Path) -> Path:
    if not folder.is_dir():
        raise ProjectError(str(folder), "is no folder; a project is a folder with a file spark-pipeline.yml")
    found = [folder.resolve() / name for name in SPEC_FILES if (folder / name).is_file()]
    if len(found) != 1:
        what = "both spark-pipeline.yml and spark-pipeline.yaml" if found else "no spark-pipeline.yml"
        raise ProjectError(str(folder), f"has {what}; `gateway pipeline init DIR` makes a project")
    return found[0]


def _read(spec: Path) -> Mapping[Any, Any]:
    try:
        import yaml
    except ImportError:
        raise ConfigError(
            "pipeline", "PyYAML is not installed: pip install '.[spark]' in the project's folder"
        ) from None
    try:
        values = yaml.safe_load(spec.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProjectError(str(spec), f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ProjectError(str(spec), f"is not UTF-8: {error.reason} at byte {error.start}") from error
    except yaml.YAMLError as error:
        raise ProjectError(str(spec), f"is not valid YAML: {_yaml_problem(error)}") from error
    if not isinstance(values, dict):
        raise ProjectError(str(spec), "is not a mapping of keys to values")
    return values


def _yaml_problem(error: Any) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).split("\n", 1)[0]
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else problem


def _text(spec: Path, values: Mapping[str, Any], key: str) -> str | None:
    value = values.get(key)
    if value is None and key not in values:
        return None
    if not isinstance(value, str) or not value.strip():
        raise ProjectError(str(spec), f"the key {key} needs a text, not {value!r}")
    return value


def _check_storage(spec: Path, storage: str) -> None:
    scheme, colon, path = storage.partition(":")
    if not (path if colon and "/" not in scheme else storage).startswith("/"):
        raise ProjectError(
            str(spec), f"the key storage needs an absolute URI such as file:///srv/pipelines/NAME, not {storage}"
        )


def _configuration(spec: Path, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ProjectError(str(spec), f"the key configuration needs a mapping, not {value!r}")
    for key, text in value.items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise ProjectError(
                str(spec), f'configuration.{key} needs a text, not {text!r}: put it into quotes ("{text}")'
            )
    return value


def _files(spec: Path, value: Any) -> tuple[Path, ...]:
    """All files that the globs of `libraries` name, checked as Spark would."""
    if not isinstance(value, list):
        raise ProjectError(str(spec), "the key libraries needs a list of `- glob: {include: PATTERN}`")
    found: set[Path] = set()
    for entry in value:
        pattern = entry.get("glob", {}).get("include") if _is_glob(entry) else None
        if not isinstance(pattern, str):
            raise ProjectError(str(spec), f"libraries: `- glob: {{include: PATTERN}}` is needed, not {entry!r}")
        found.update(_matching(spec, pattern))
    if not found:
        raise ProjectError(str(spec), "libraries names no file of definitions (.py or .sql)")
    for file in sorted(found):
        if file.suffix not in DEFINITIONS:
            raise ProjectError(
                str(file), "definitions are .py and .sql files; Spark refuses others among its libraries"
            )
    return tuple(sorted(found))


def _is_glob(entry: Any) -> bool:
    return isinstance(entry, dict) and set(entry) == {"glob"} and isinstance(entry["glob"], dict)


def _matching(spec: Path, pattern: str) -> list[Path]:
    if not any(c in pattern for c in "*?["):
        path = spec.parent / pattern
        if not path.is_file():
            raise ProjectError(str(spec), f"libraries: there is no file {pattern}")
        return [path]
    folder, star, rest = pattern.rpartition("/**")
    if not star or rest or any(c in folder for c in "*?["):
        raise ProjectError(str(spec), f"libraries: Spark takes a file or FOLDER/**, not the pattern {pattern}")
    if not (spec.parent / folder).is_dir():
        raise ProjectError(str(spec), f"libraries: there is no folder {folder}")
    return [p for p in (spec.parent / folder).glob("**/*") if p.is_file() and "__pycache__" not in p.parts]
