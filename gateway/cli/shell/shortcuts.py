"""What can be typed instead of SQL: lines that begin with a backslash, as those of psql do, and the words to leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from gateway.cli.chart import KINDS
from gateway.cli.shell.entry import LEAVE
from gateway.cli.shell.view import View
from gateway.errors import ConfigError
from gateway.sqltypes import quoted_text

_DIGITS = 18


class Prompt(Protocol):
    """What shortcuts ask of the prompt (`shell.Shell`)."""

    view: View
    left: bool

    def say(self, text: str) -> None: ...

    def execute(self, text: str) -> None: ...

    def draw(self, kind: str) -> None: ...

    def send_to(self, name: str) -> None: ...

    def run_file(self, name: str) -> None: ...

    def connect(self) -> None: ...


Action = Callable[[Prompt, str], None]


@dataclass(frozen=True, slots=True)
class Shortcut:
    """One of them: what it takes, what it does, and how; `[X]` is an argument that may be left out."""

    takes: str
    does: str
    action: Action


def _asks(bare: str | None, named: str | None) -> Action:
    """Asks the gateway: `bare` without an argument, `named` with it (``{}``); None where there is no such form."""

    def action(shell: Prompt, argument: str) -> None:
        text = named.format(argument) if named is not None and argument else bare
        if text is None or (argument and named is None):
            raise ConfigError("shortcut", "it takes no argument" if argument else "a name is missing")
        shell.execute(text)

    return action


def _functions(shell: Prompt, argument: str) -> None:
    shell.execute(f"SHOW FUNCTIONS LIKE {quoted_text(argument)}" if argument else "SHOW FUNCTIONS")


def _switch(name: str, values: Mapping[str, object]) -> Action:
    """Sets a field of the view; without an argument the first two values take turns."""

    def action(shell: Prompt, argument: str) -> None:
        word = argument.lower()
        if not word:
            words = list(values)
            word = words[1] if getattr(shell.view, name) == values[words[0]] else words[0]
        if word not in values:
            raise ConfigError(name, f"takes {', '.join(values)}, not {argument}")
        setattr(shell.view, name, values[word])
        shell.say(f"{name} is {word}")

    return action


def _chart(shell: Prompt, argument: str) -> None:
    shell.draw(argument.lower() or "auto")


def _rows(shell: Prompt, argument: str) -> None:
    if not argument.isdecimal() or len(argument) > _DIGITS:
        raise ConfigError("rows", f"takes a number, not {argument[:40] or 'nothing'}; 0 shows all")
    shell.view.max_rows = int(argument)
    shell.say(f"at most {argument} rows are shown" if int(argument) else "all rows are shown")


def _help(shell: Prompt, _: str) -> None:
    heads = {name: f"{name} {shortcut.takes}".rstrip() for name, shortcut in SHORTCUTS.items()}
    width = max(map(len, heads.values()))
    for name, shortcut in SHORTCUTS.items():
        shell.say(f"  {heads[name].ljust(width)}  {shortcut.does}")
    shell.say("Statements end with ; or with \\G, which shows a value a line. Ctrl-C cancels, Ctrl-D leaves.")


def _leave(shell: Prompt, _: str) -> None:
    shell.left = True


ON_OFF = {"on": True, "off": False}
SHORTCUTS: dict[str, Shortcut] = {
    "\\?": Shortcut("", "this list", _help),
    "\\q": Shortcut("", "leave (also exit, quit)", _leave),
    "\\l": Shortcut("", "catalogs", _asks("SHOW CATALOGS", None)),
    "\\dn": Shortcut("[CATALOG]", "schemas", _asks("SHOW SCHEMAS", "SHOW SCHEMAS IN {}")),
    "\\dt": Shortcut("[SCHEMA]", "tables", _asks("SHOW TABLES", "SHOW TABLES IN {}")),
    "\\dv": Shortcut("[SCHEMA]", "views", _asks("SHOW VIEWS", "SHOW VIEWS IN {}")),
    "\\df": Shortcut("[PATTERN]", "functions; * stands for any letters", _functions),
    "\\d": Shortcut("[TABLE]", "columns and details of a table; without a name, tables",
                    _asks("SHOW TABLES", "DESCRIBE TABLE EXTENDED {}")),
    "\\ddl": Shortcut("TABLE", "the statement that makes a table", _asks(None, "SHOW CREATE TABLE {}")),
    "\\dh": Shortcut("TABLE", "the versions of a table", _asks(None, "DESCRIBE HISTORY {}")),
    "\\u": Shortcut("SCHEMA", "the schema that names are looked up in", _asks(None, "USE {}")),
    "\\x": Shortcut("[on|off|auto]", "one value a line; auto: where a row is wider than the screen",
                    _switch("vertical", {"off": "off", "on": "on", "auto": "auto"})),
    "\\timing": Shortcut("[on|off]", "how long statements take", _switch("timing", ON_OFF)),
    "\\pager": Shortcut("[on|off]", "results longer than the screen go through $PAGER", _switch("pager", ON_OFF)),
    "\\f": Shortcut("FORMAT", "table, csv or json", _switch("format", {f: f for f in ("table", "csv", "json")})),
    "\\rows": Shortcut("N", "how many rows are shown; 0: all", _rows),
    "\\chart": Shortcut("[KIND]", f"the last rows as a picture: {', '.join(KINDS)}", _chart),
    "\\o": Shortcut("[FILE]", "rows of the next statement go to FILE (.csv, .json, .parquet, .txt)",
                    lambda shell, argument: shell.send_to(argument)),
    "\\i": Shortcut("FILE", "run the statements of a file", lambda shell, argument: shell.run_file(argument)),
    "\\c": Shortcut("", "connect anew: a new session", lambda shell, _: shell.connect()),
}  # fmt: skip


def run_shortcut(shell: Prompt, line: str) -> None:
    """Do what the line asks. Raises ConfigError for what there is not."""
    word, _, argument = line.strip().partition(" ")
    word = word.rstrip(";")
    if word.lower() in LEAVE:
        word = "\\q"
    elif word.lower() in ("help", "?"):
        word = "\\?"
    shortcut = SHORTCUTS.get(word)
    if shortcut is None:
        raise ConfigError("shortcut", f"there is no {word}; \\? lists what there is")
    shortcut.action(shell, argument.strip().rstrip(";").rstrip())
