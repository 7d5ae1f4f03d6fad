"""A run of a project: registered with Spark, run, watched, counted, recorded."""

from __future__ import annotations

import contextlib
import shutil
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from gateway.config import Config
from gateway.pipelines import events, history, lock
from gateway.pipelines.definitions import Dataset
from gateway.pipelines.history import History, Run
from gateway.pipelines.prepare import Prepared, check_checkpoints, prepare, refreshed
from gateway.pipelines.project import Project, ProjectError
from gateway.pipelines.server import serve
from gateway.pipelines.stream import is_sparks, messages, raise_unresolved
from gateway.pipelines.warehouse import Warehouse, quoted
from gateway.pipelines.watch import Tell, Watch

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
    KeyboardInterrupt passes through once Spark is ended and the run recorded.
    """
    warehouse = Warehouse(config.warehouse)
    this = Run(history.new_run_id(), project.name, history.now())
    holder = lock.Holder(this.run_id, project.name, this.started.timestamp())
    past = History(warehouse)
    log = log_path(config.state, project.name)
    with _held(project, warehouse, holder, past) as locks:
        watch: Watch | None = None
        try:
            with serve(config, master, warehouse.root, log) as server:
                if server.process is not None:
                    holder.jvm, holder.jvm_start = server.process.pid, lock.process_start(server.process.pid)
                    holder.scratch = str(server.scratch)
                for held in locks:
                    held.write(holder)
                prepared = prepare(project, server, warehouse)
                anew = refreshed(prepared, options.full_refresh)
                check_checkpoints(prepared, prepared.definitions.tables() if options.full_refresh_all else anew)
                this.full_refresh = [ALL] if options.full_refresh_all else [t.label for t in anew]
                for warning in prepared.warnings:
                    tell(f"warning: {warning}")
                watch = Watch(prepared, this, tell)
                _execute(prepared, anew, options.full_refresh_all, watch)
                if server.end() is None:
                    watch.count_rows()
                    watch.check_expectations()
        except ProjectError:
            watch = None  # nothing ran
            raise
        except BaseException as error:
            interrupted = isinstance(error, KeyboardInterrupt)
            this.state = history.CANCELED if interrupted else history.FAILED
            this.message = "interrupted" if interrupted else events.reason(str(error))
            raise
        finally:
            if watch is not None:
                watch.end()
                past.add(this)
    return this


@contextlib.contextmanager
def _held(
    project: Project, warehouse: Warehouse, holder: lock.Holder, past: History
) -> Iterator[Sequence[lock.RunLock]]:
    """The locks of the pipeline's name in the warehouse and, where it is on this machine, of its storage."""
    paths = [lock_path(warehouse.root, project.name)]
    if project.storage_folder is not None:
        paths.append(project.storage_folder / _LOCKS / "storage.lock")
    with contextlib.ExitStack() as stack:
        locks = [stack.enter_context(lock.held(path, holder)) for path in paths]
        left = locks[0].left
        if left is not None:
            if left.scratch and left.host == socket.gethostname():
                shutil.rmtree(left.scratch, ignore_errors=True)
            started = datetime.fromtimestamp(left.started, UTC)
            text = f"process {left.pid} on {left.host} ended without a word"
            past.add(Run(left.run, left.pipeline, started, None, history.CRASHED, text))
        yield locks


def _execute(prepared: Prepared, anew: Sequence[Dataset], anew_all: bool, watch: Watch) -> None:
    """Run the registered graph to its end. Raises ProjectError if Spark cannot analyse it."""
    names = [f"{quoted(t.schema)}.{quoted(t.name)}" for t in anew]
    try:
        for message in messages(
            prepared.server.session, prepared.graph_id, prepared.project.storage, anew=names, anew_all=anew_all
        ):
            watch.saw(message)
    except Exception as error:
        if not is_sparks(error):
            raise
        raise_unresolved(watch.unresolved)
        watch.failed(prepared.server.end() or events.reason(str(error)))
