"""Writes docs/map.md: which package imports which, read from the imports of the code (`make map`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "map.md"
#: The packages that are drawn, and what their pictures show.
PICTURES = {
    "gateway": "The packages",
    "gateway.sql": "Inside `sql`",
    "gateway.runner": "Inside `runner`",
}
_HEAD = """# The map

Made by `make map` from the imports of the code; a test keeps it true. An arrow goes from who imports to what is imported; what
follows from other arrows is left out (`runner` imports `errors` too). What each package is for:
[gateway/README.md](../gateway/README.md); why it is so: [architecture.md](architecture.md).
"""

Graph = dict[str, set[str]]


def page() -> str:
    """The text of docs/map.md."""
    found = dict(_imports())
    return "\n".join([_HEAD, *(_picture(title, _graph(package, found)) for package, title in PICTURES.items())])


def _imports() -> Iterator[tuple[str, set[str]]]:
    """Each module of the gateway with the modules (or names in modules) that it imports."""
    for path in sorted((ROOT / "gateway").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield module, set(_imported(ast.parse(path.read_text(encoding="utf-8"))))


def _imported(tree: ast.AST) -> Iterator[str]:
    """What a tree imports when it runs: not what is only for type checkers."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (f"{module}.{name.name}" for name in names)
            case _:
                yield from _imported(node)


def _graph(package: str, imports: dict[str, set[str]]) -> Graph:
    """The children of a package, modules and packages, and which of them import which."""
    children = {_child(package, module) for module in imports} - {None, "__main__"}
    graph: Graph = {str(child): set() for child in children}
    for module, imported in imports.items():
        child = _child(package, module)
        if child in graph:
            found = {_child(package, name) for name in imported}
            graph[child] |= {name for name in found if name in graph and name != child}
    return _reduced(graph)


def _child(package: str, module: str) -> str | None:
    """The child of `package` that a module is in."""
    if not module.startswith(package + "."):
        return None
    return module[len(package) + 1 :].split(".")[0]


def _reduced(graph: Graph) -> Graph:
    """The graph without the arrows that follow from others."""
    kept = {name: set(targets) for name, targets in graph.items()}
    for name in sorted(kept):
        for target in sorted(kept[name]):
            kept[name].remove(target)
            if target not in _reached(kept, name):
                kept[name].add(target)
    return kept


def _reached(graph: Graph, start: str) -> set[str]:
    """All that arrows lead to from `start`."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


def _picture(title: str, graph: Graph) -> str:
    lines = [f"## {title}", "", "```mermaid", "graph TD"]
    linked = set().union(*graph.values()) | {name for name, targets in graph.items() if targets}
    lines += [f"  {name}" for name in sorted(graph) if name not in linked]
    lines += [f"  {name} --> {target}" for name in sorted(graph) for target in sorted(graph[name])]
    return "\n".join([*lines, "```", ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
