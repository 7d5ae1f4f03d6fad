"""The prompt on a terminal: editing, history, completion."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.cli.shell.completion import Names
from gateway.cli.shell.entry import is_whole
from gateway.cli.shell.shell import Shell
from gateway.cli.shell.view import View
from gateway.errors import ConfigError
from gateway.protocol.client import Client

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

_LONGEST_PLACE = 200  # characters of it that are shown
_WELCOME = "\\? lists shortcuts, statements end with ;, Ctrl-D leaves."


def prompt_session(shell: Shell, names: Names, history: Path, **io: Any) -> PromptSession[str]:
    """What reads entries, for `io` (prompt_toolkit's input and output) other than the terminal's in tests."""
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import CompleteEvent, Completer, Completion
        from prompt_toolkit.document import Document
        from prompt_toolkit.history import FileHistory
        from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    except ImportError:
        raise ConfigError("prompt", "it needs the package prompt_toolkit: pip install '.[prompt]'") from None

    class Offered(Completer):
        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
            for text, start in names.offered(document.text_before_cursor, shell.place):
                yield Completion(text, start)

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
        elif is_whole(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    history.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(history, os.O_CREAT | os.O_APPEND, 0o600))  # statements may hold what others shall not read
    return PromptSession(
        history=FileHistory(str(history)),
        completer=Offered(),
        complete_while_typing=False,
        enable_history_search=True,
        multiline=True,
        key_bindings=keys,
        prompt_continuation=lambda width, line, wrapped: "." * (width - 1) + " ",
        **io,
    )


def run_prompt(connected: Callable[[], Client], view: View, history: Path, **io: Any) -> int:
    """Read and run until one leaves; 0."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
    names = Names(connected)
    shell = Shell(connected, view, changed=names.changed)
    try:
        session = prompt_session(shell, names, history, **io)
        names.start()
        shell.say(_WELCOME)
        while not shell.left:
            try:
                text = session.prompt(f"{_short(shell.place)}> ")
            except KeyboardInterrupt:
                continue
            except EOFError:
                break
            if text.strip():
                shell.run(text)
    finally:
        names.close()
        shell.close()
    return 0


def _short(place: str) -> str:
    return place if len(place) <= _LONGEST_PLACE else f"{place[: _LONGEST_PLACE - 1]}…"
