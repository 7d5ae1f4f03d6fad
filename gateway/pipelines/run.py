"""A run of a project: registered with Spark, run, watched, counted, recorded."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from gateway.config import Config
from gateway.errors import GatewayError, is_disk_full
from gateway.pipelines import columns, events, history, lock, recover
from gateway.pipelines.definitions import Dataset
from gateway.pipelines.history import History, Run
from gateway.pipelines.prepare import Prepared, all_refreshed, check_checkpoints, check_refreshed, prepare, refreshed
from gateway.pipelines.project import Project, ProjectError
from gateway.pipelines.recover import Before
from gateway.pipelines.server import Server, serve
from gateway.pipelines.stream import is_sparks, messages, raise_unresolved
from gateway.pipelines.warehouse import Warehouse
from gateway.pipelines.watch import Tell, Watch
from gateway.sqltypes import quote_part

_LOCKS = ".pipelines"
ALL = "*"


@dataclass(frozen=True, slots=True)
class Options:
    """What to compute anew: tables by name, or all."""

    full_refresh: Sequence[str] = ()
    full_refresh_all: bool = False


def lock_path(warehouse: Path, pipeline: str) -> Path:
    """The lock of a pipeline's runs into a warehouse."""
    return warehouse / _LOCKS / f"{quote(pipeline, safe='')}.lock"


def log_path(state: Path, pipeline: str) -> Path:
    """Where the output of Spark goes."""
    folder = state / "pipelines"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{quote(pipeline, safe='')}.log"


def run_pipeline(project: Project, config: Config, master: str, options: Options, tell: Tell) -> Run:
    """Run `project` once; what happened is in the result and in the history, also when it failed.

    Raises ProjectError and ConfigError if nothing could be started, UserError PIPELINE_RUNNING if it is being run already;
    KeyboardInterrupt passes through once Spark is ended and the run recorded: a second one is not heeded meanwhile.
    """
    warehouse = Warehouse(config.warehouse, config.allow_path)
    this = Run(history.new_run_id(), project.name, history.now())
    holder = lock.Holder(this.run_id, project.name, this.started.timestamp())
    past = History(warehouse)
    log = log_path(config.state, project.name)
    key = lock.key_of(config.state)
    with (
        _signals() as ignore_signals,
        _held(project, warehouse, holder, key, past, tell) as locks,
        contextlib.ExitStack() as names,  # kept until Spark has ended
    ):
        attempt = _Attempt(this, holder, locks, names, tell)
        try:
            tell("waiting for Spark")
            with serve(config, master, warehouse.root, log) as server:
                try:
                    attempt.run(project, server, warehouse, options)
                except KeyboardInterrupt:
                    ignore_signals()
                    threading.excepthook = _into(log)
                    tell("interrupted: Spark is being ended")
                    raise
        except ProjectError:
            attempt.has_run = False
            raise
        except BaseException as error:
            interrupted = isinstance(error, KeyboardInterrupt)
            this.state = history.CANCELED if interrupted else history.FAILED
            this.message = "interrupted" if interrupted else events.reason(str(error))
            raise
        finally:
            ignore_signals()
            attempt.end(past)
    return this


def _into(log: Path) -> Callable[[threading.ExceptHookArgs], None]:
    """For `threading.excepthook`: grpc's threads may fail when the server is ended under them, which is not for a terminal."""

    def write(args: threading.ExceptHookArgs) -> None:
        with contextlib.suppress(OSError), log.open("a", encoding="utf-8") as file:
            traceback.print_exception(args.exc_type, args.exc_value, args.exc_traceback, file=file)

    return write


class _Attempt:
    """A run that holds its locks, and the names of its tables. `has_run` once there is something to record."""

    def __init__(
        self,
        run: Run,
        holder: lock.Holder,
        locks: Sequence[lock.RunLock],
        names: contextlib.ExitStack,
        tell: Tell,
    ) -> None:
        self.has_run, self._names = False, names
        self._run, self._holder, self._locks, self._tell = run, holder, locks, tell
        self._watch: Watch | None = None

    def run(self, project: Project, server: Server, warehouse: Warehouse, options: Options) -> None:
        """Run `project` on `server`; what Spark says of its failures is in the run. Raises ProjectError."""
        try:
            self._note_jvm(server)
            self._tell(f"Spark reads {project.name}")
            self._go(prepare(project, server, warehouse, self._names), options)
        except Exception as error:
            if not is_sparks(error):
                raise
            self.has_run = True
            self._run.state, self._run.message = history.FAILED, server.end() or events.reason(str(error))

    def _go(self, prepared: Prepared, options: Options) -> None:
        anew = _anew(prepared, options)
        self._run.graph = prepared.definitions.lineage()
        self._run.full_refresh = [ALL] if options.full_refresh_all else [t.label for t in anew]
        for warning in prepared.warnings:
            self._tell(f"warning: {warning}")
        before = recover.record(prepared, anew, self._run.run_id)
        self._note_before(before)
        self._watch = Watch(prepared, self._run, self._tell, before, self._note_before)
        self.has_run = True
        _execute(prepared, anew, options.full_refresh_all, self._watch, self._run.run_id)
        if prepared.server.end() is None:
            self._watch.count_rows()
            self._watch.check_expectations()

    def end(self, past: History) -> None:
        """Spark is gone: put the tables in order, and record the run."""
        for held in self._locks:
            held.give_room()
        if self._watch is not None:
            self._watch.end()
        if self.has_run:
            self._run.ended = history.now()
            unrecorded = _record(past, self._run)
            if unrecorded is not None and self._run.state == history.FAILED:
                self._tell(f"warning: the run is not in the history: {unrecorded}")  # for the reason that it failed for
            elif unrecorded is not None:
                self._run.state = history.FAILED
                self._run.message = f"the tables are written, but the run is not in the history: {unrecorded}"

    def _note_jvm(self, server: Server) -> None:
        """Tell the lock files of the JVM: whoever takes them over ends it."""
        if server.process is not None:
            self._holder.jvm, self._holder.jvm_start = server.process.pid, lock.process_start(server.process.pid)
            self._holder.scratch = str(server.scratch)
        self._write()

    def _note_before(self, before: Sequence[Before]) -> None:
        """Tell the lock files which tables the run has yet to fill."""
        self._holder.before = [asdict(b) for b in before]
        self._write()

    def _write(self) -> None:
        for held in self._locks:
            held.write(self._holder)


def _record(past: History, run: Run) -> GatewayError | OSError | None:
    """Add a run to the history; the error if there is no space left for it."""
    try:
        past.add(run)
    except (GatewayError, OSError) as error:
        if not is_disk_full(error):
            raise
        return error
    return None


def _record_crashed(past: History, left: lock.Holder, tell: Tell) -> None:
    started = datetime.fromtimestamp(left.started, UTC)
    text = f"process {left.pid} on {left.host} ended without a word"
    unrecorded = _record(past, Run(left.run, left.pipeline, started, None, history.CRASHED, text))
    if unrecorded is not None:
        tell(f"warning: the run {left.run} ({text}) is not in the history: {unrecorded}")


def _anew(prepared: Prepared, options: Options) -> list[Dataset]:
    """The tables to compute anew. Raises ProjectError if the run as a whole cannot go that way."""
    anew = all_refreshed(prepared) if options.full_refresh_all else refreshed(prepared, options.full_refresh)
    check_refreshed(prepared, anew)
    check_checkpoints(prepared, anew)
    return anew


@contextlib.contextmanager
def _signals() -> Iterator[Callable[[], None]]:
    """Gives a function after whose call SIGINT and SIGTERM are not heeded until the block ends."""
    numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.getsignal(number) for number in numbers}

    def ignore() -> None:
        for number in before:
            signal.signal(number, signal.SIG_IGN)

    try:
        yield ignore
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _held(
    project: Project, warehouse: Warehouse, holder: lock.Holder, key: bytes, past: History, tell: Tell
) -> Iterator[Sequence[lock.RunLock]]:
    """The locks of the pipeline's name in the warehouse and, where it is on this machine, of its storage.

    What a dead holder has left is put in order first.
    """
    paths = [lock_path(warehouse.root, project.name)]
    if project.storage_folder is not None:
        paths.append(project.storage_folder / _LOCKS / "storage.lock")
    with contextlib.ExitStack() as stack:
        locks = [stack.enter_context(lock.held(path, holder, key)) for path in paths]
        left = locks[0].left
        if left is not None:
            locks[0].give_room()
            if left.scratch and left.host == socket.gethostname():
                shutil.rmtree(left.scratch, ignore_errors=True)
            if not past.of_run("runs", left.run):  # else it died behind its last word
                _record_crashed(past, left, tell)
        for values in list(holder.before):
            before = Before(**values)
            if said := recover.give_back(before):
                tell(said)
            recover.forget(before)
        yield locks


def _execute(prepared: Prepared, anew: Sequence[Dataset], anew_all: bool, watch: Watch, run_id: str) -> None:
    """Run the registered graph to its end. Raises ProjectError if Spark cannot analyse it."""
    session, storage = prepared.server.session, prepared.project.storage
    selected = [] if anew_all else _names(anew)
    # A selection leaves all others out, unless they are selected as well.
    others = _names(t for t in prepared.definitions.tables() if t not in anew) if selected else []
    try:
        recover.set_aside(prepared, anew, run_id)
        columns.replace_misfits(prepared, anew)
        for message in messages(session, prepared.graph_id, storage, anew=selected, others=others, anew_all=anew_all):
            watch.saw(message)
    except Exception as error:
        if not is_sparks(error):
            raise
        raise_unresolved(watch.unresolved)
        ended = prepared.server.end()
        if ended is None:
            watch.failed(events.reason(str(error)))
        else:
            watch.died(ended)


def _names(tables: Iterable[Dataset]) -> list[str]:
    return [f"{quote_part(t.schema)}.{quote_part(t.name)}" for t in tables]
