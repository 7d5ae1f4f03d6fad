"""Composition root: the only module that builds catalogs, workers, service and transport from a `Config`.

The front process imports neither sqlglot nor datafusion nor deltalake: what a worker does with a job is named as text and
imported by the worker.
"""

from __future__ import annotations

import contextlib
import json
import os
import pkgutil
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from gateway import __version__, observability
from gateway.auth.authenticators import AllowAll, StaticTokens, read_tokens
from gateway.auth.issued import IssuedTokens
from gateway.config import Config, ServerSetting, check_pins, normalise_setting, settings_in_force
from gateway.config.session import DELETION_VECTORS
from gateway.config.values import DatabaseUrl
from gateway.engine import spill
from gateway.engine.base import Handler
from gateway.engine.confinement import Folders
from gateway.engine.launch import Launched
from gateway.engine.pool import WorkerPool
from gateway.engine.pool_watch import PoolLimits
from gateway.engine.router import RoutedPool
from gateway.engine.shared import SharedLimits, SharedPool
from gateway.engine.spark import setup as spark_setup
from gateway.engine.spark.masters import is_connect
from gateway.engine.spark.properties import read_properties
from gateway.engine.spark.session import ENDS
from gateway.errors import ConfigError
from gateway.history.places import Place, beside, store_of
from gateway.history.postgres import problem_of
from gateway.history.recorder import Recorder
from gateway.history.records import SIGN_INS, STATEMENTS, Record, SignIn
from gateway.history.search import History
from gateway.observability import log, mask
from gateway.worker_jobs import FileKey

RUNNER = "gateway.runner:make_runner"
SPARK_RUNNER = "gateway.runner.spark.handler:make_spark_runner"
CATALOGS = ("main", "samples")
WORKER_START_SECONDS = 120.0
_LEAST_KEPT = 256 * 1024**2
_KEY_BYTES = 32
_FILE_SECONDS = 900.0  # a link to a file of a volume is followed at once
LANE = 1  # statements that may run beside the slots while these are taken, as long as they are short
_WORKER_OVERHEAD = 1024**3  # resident memory of a worker beside its engine's pool


class Named:
    """The callable ``module:name``; pickled, it is the name alone, which is imported by the process that unpickles it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, **arguments: Any) -> Any:
        return pkgutil.resolve_name(self.name)(**arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return (pkgutil.resolve_name, (self.name,))


def runner_factory(config: Config) -> Callable[[], Handler]:
    """What each worker process makes at its start."""
    return partial(
        Named(RUNNER),
        warehouse=str(config.warehouse),
        samples=str(config.state / "samples"),
        allow_paths=tuple(str(p) for p in config.allow_path),
        spill=str(config.state / "spill"),
        memory_limit=config.memory_limit // config.slots,
        spark=config.spark is not None,
        spark_above=config.spark_above,
        history=history_of(config),
    )


def folders_of(config: Config) -> Folders | None:
    """All that a worker may read beside its own code; None for no such limit."""
    if not config.confine:
        return None
    named = (config.warehouse, config.state, *config.allow_path)
    return Folders(tuple(map(str, named)), str(config.state / "spill"), _of_database(config))


def _of_database(config: Config) -> tuple[str, ...]:
    """The files that the client of a history's database may be told to read."""
    if not isinstance(config.history, DatabaseUrl):
        return ()
    own = (str(Path.home() / name) for name in (".postgresql", ".pgpass", ".pg_service.conf"))
    told = (*config.history.secrets, *(os.environ[name] for name in os.environ if name.startswith("PG")))
    return (*own, *(path for path in told if path.startswith("/")))


def history_of(config: Config) -> History:
    """Where the history is, and who sees what of it."""
    return History(_place(config), config.auth == "none", frozenset(config.admins))


def _place(config: Config) -> Place:
    return config.history if isinstance(config.history, DatabaseUrl) else str(config.state / STATEMENTS.file)


def check_history(config: Config) -> None:
    """Raise ConfigError for a database of the history that can never be used."""
    problem = problem_of(config.history) if isinstance(config.history, DatabaseUrl) else None
    if problem is not None:
        raise ConfigError("history", problem)


def shown_settings(config: Config) -> tuple[ServerSetting, ...]:
    """The settings as they may be shown: without what looks like a secret."""
    return tuple(s._replace(value=None if s.value is None else str(mask(s.value))) for s in settings_in_force(config))


def spark_factory(config: Config) -> Callable[[], Handler]:
    """What the process that owns Spark makes at its start."""
    return partial(
        Named(SPARK_RUNNER),
        warehouse=str(config.warehouse),
        samples=str(config.state / "samples"),
        allow_paths=tuple(str(p) for p in config.allow_path),
        master=config.spark,
        jars=str(config.spark_jars or spark_setup.default_folder()),
        scratch=str(config.state / "spark"),
        memory=config.spark_memory,
        extra=read_properties(config.spark_properties) if config.spark_properties is not None else {},
    )


def check_spark(config: Config) -> None:
    """Raise ConfigError for a Spark that cannot start; nothing is started."""
    if config.spark is None:
        return
    if is_connect(config.spark):
        problem = spark_setup.connect_problem()
        if problem is not None:
            raise ConfigError("spark", problem.detail)
    else:
        spark_setup.check(config.spark_jars or spark_setup.default_folder())


class Gateway:
    """A gateway from `start` to `stop`; needs nothing but its `Config`.

    Args:
        config: all settings.
        handler_factory: what workers run, for tests; picklable.
        first: a worker process that starts already.
    """

    def __init__(
        self,
        config: Config,
        handler_factory: Callable[[], Handler] | None = None,
        first: Launched | None = None,
        tokens: StaticTokens | None = None,
    ) -> None:
        self.config = config
        self._first = first
        self._tokens = tokens
        self._factory = handler_factory or runner_factory(config)
        self._stopped = threading.Lock()
        self._running = False
        self._ready = False
        self._draining = False
        self._began = time.monotonic()

    @property
    def url(self) -> str:
        """Where HTTP clients find it."""
        return self._http.url

    @property
    def tcp_address(self) -> str | None:
        """Where clients of Thrift over TCP find it, ``host:port``."""
        return self._doors.tcp_address

    @property
    def https_url(self) -> str | None:
        """Where HTTPS clients find it."""
        return self._doors.https_url

    def start(self) -> None:
        """Returns when requests are served. Raises ConfigError for what the user can mend, GatewayError otherwise."""
        config = self.config
        try:
            check_pins()
            check_spark(config)
            check_history(config)
            is_new = prepare_folders(config)
            _raise_file_limit()
            if config.auth == "token" and config.token_file is not None:
                self._tokens = read_tokens(config.token_file)
            authenticator = IssuedTokens(self._tokens or AllowAll())
        except BaseException:
            if self._first is not None:
                self._first.end()
            raise
        spill.sweep(str(config.state / "spark"))  # of a Spark that was killed
        share, spool = config.memory_limit // config.slots, config.spool_limit // 2  # half is one caller's
        observability.gauge("memory_pool_bytes", share)
        self._pool = WorkerPool(
            self._factory,
            config.slots + LANE,
            PoolLimits(spool_limit=spool, memory_limit=share * 2 + _WORKER_OVERHEAD, folders=folders_of(config)),
        )
        self._spark: SharedPool | None = None
        if config.spark is not None:
            self._spark = SharedPool(spark_factory(config), SharedLimits(spool_limit=spool), ends=ENDS)
        try:
            self._pool.start(self._first)
            self._assemble(authenticator)
            if config.ready_file is not None:  # of a process that was killed
                config.ready_file.unlink(missing_ok=True)
        except BaseException:
            self._pool.stop()
            raise
        self._running = True
        try:
            for recorder in (self._recorder, self._sign_ins):
                if recorder is not None:
                    recorder.start()
            self._service.start()
            self._pool.wait_ready(WORKER_START_SECONDS)
            self._http.start()
            if config.ready_file is not None:
                write_ready_file(config.ready_file, self._http.url, self.tcp_address, self.https_url)
            self._ready = True
        except BaseException:
            self.stop()
            raise
        log(
            "gateway ready",
            url=self._http.url,
            https=self.https_url,
            tcp=self.tcp_address,
            warehouse=str(config.warehouse),
            new_warehouse=is_new or None,  # a slip, maybe
            slots=config.slots,
            connections=self._connections,
            pid=os.getpid(),
        )

    def _assemble(self, authenticator: IssuedTokens) -> None:
        """Service and transport, imported while the first engine process starts on another core."""
        from gateway.console.calls import ConsoleCalls, Facts
        from gateway.console.server import ConsoleServer
        from gateway.mcp.server import McpServer
        from gateway.mcp.tools import SqlTools
        from gateway.protocol.downloads import Downloads
        from gateway.protocol.handler import HandlerOptions, ThriftHandler, may_wait
        from gateway.protocol.reader import Budget
        from gateway.rest.history import HistoryApi
        from gateway.rest.routes import RestApi
        from gateway.rest.statements import StatementApi
        from gateway.results.bucket import Bucket
        from gateway.results.links import LinkSigner
        from gateway.service.service import GatewayService
        from gateway.service.settings import ServiceConfig
        from gateway.transport.doors import open_doors
        from gateway.transport.http import Beside, HttpApp, HttpLimits, Probes
        from gateway.transport.server import HttpServer, connections_each
        from gateway.transport.sign_ins import SignIns
        from gateway.transport.volumes import VolumeDoor

        config = self.config
        self._recorder: Recorder[Record] | None = None
        self._sign_ins: Recorder[SignIn] | None = None
        if config.history:
            place, age, size = _place(config), config.history_age, config.history_size
            self._recorder = Recorder(store_of(place, STATEMENTS), age=age, size=size, show_sql=config.log_sql)
            self._sign_ins = Recorder(store_of(beside(place, SIGN_INS), SIGN_INS), age=age, size=size)
        sign_ins = SignIns(self._sign_ins.add if self._sign_ins is not None else None)
        files = FileKey(os.urandom(_KEY_BYTES), min(config.link_lifetime, _FILE_SECONDS))
        self._service = GatewayService(
            self._pool if self._spark is None else RoutedPool(self._pool, self._spark),
            ServiceConfig(
                spool_directory=config.state / "spool",
                slots=config.slots,
                lane=LANE,
                queue_limit=config.queue_limit,
                catalogs=CATALOGS,
                statement_timeout=config.statement_timeout,
                session_idle=config.session_idle,
                operation_idle=config.operation_idle,
                max_statement=config.max_statement,
                slow_statement=config.slow_statement,
                kept_limit=max(_LEAST_KEPT, config.memory_limit // 4),
                spool_limit=config.spool_limit,
                told=shown_settings(config),
                session_settings={} if config.deletion_vectors else {DELETION_VECTORS: "false"},
                files=files,
            ),
            partial(normalise_setting, spark=config.spark is not None),
            recorder=self._recorder,
            sees_all=history_of(config).sees_all,
        )
        signer = LinkSigner(config.link_lifetime)
        downloads = Downloads(self._service, signer)
        self._bucket: Bucket | None = None
        if config.result_bucket is not None:
            self._bucket = Bucket(config.result_bucket, downloads.is_open, config.link_lifetime)
        downloads = Downloads(self._service, signer, self._bucket)
        budget = Budget(size=config.max_request_body)
        handler = ThriftHandler(self._service, HandlerOptions(budget=budget), signer)
        statements = StatementApi(self._service, signer)
        calls = ConsoleCalls(
            self._service,
            statements,
            history_of(config),
            self._recorder,
            Facts(__version__, config.auth != "none", self._health, shown_settings(config)),
        )
        self._app = HttpApp(
            handler.answer,
            authenticator,
            Probes(self._not_ready, self._metrics),
            undelivered=handler.undelivered,
            beside=Beside(
                download=downloads,
                volumes=VolumeDoor(files.key, config.max_volume_file, self._has_token),
                rest=RestApi(statements, HistoryApi(history_of(config), self._recorder, self._service.picture)).answer,
                mcp=McpServer(SqlTools(statements)).answer,
                console=ConsoleServer(calls, self._tokens or AllowAll()),
                issuer=authenticator,
            ),
            public_url=config.public_url,
            may_wait=may_wait,
            sign_ins=sign_ins,
            limits=HttpLimits(body=config.max_request_body),
        )
        self._connections = connections_each(2 if config.tcp_port is not None else 1)
        self._doors = open_doors(config, handler, authenticator, may_wait, budget, self._connections, sign_ins)
        self._http = HttpServer(
            self._app, config.host, config.port, doors=self._doors.all, connections=self._connections
        )

    def reread(self) -> None:
        """Read the files of the TLS certificate again, for new connections, and the token file, for all; or keep the old."""
        if self._doors.certificate is not None:
            self._doors.certificate.reload()
        if self._tokens is not None and self.config.token_file is not None:
            try:
                self._tokens.replace(read_tokens(self.config.token_file))
            except ConfigError as error:
                log("the token file cannot be read again, the old tokens stay", "error", reason=error.message)
            else:
                closed = self._service.close_all_but(self._has_token)
                log("token file read again", path=str(self.config.token_file), sessions_closed=closed)

    def _has_token(self, name: str) -> bool:
        return self._tokens is None or bool(self._tokens.proofs(name))

    def drain(self, timeout: float) -> bool:
        """Refuse new work and let running statements end within `timeout` seconds; whether all did."""
        self._draining = True
        log("gateway drains", seconds=timeout)
        return self._service.drain(timeout)

    def stop(self) -> None:
        """End everything at once. Idempotent."""
        with self._stopped:
            if not self._running:
                return
            self._running = False
        if self._ready and self.config.ready_file is not None:
            try:
                self.config.ready_file.unlink(missing_ok=True)
            except OSError as error:
                log("ready file cannot be removed", "warning", path=str(self.config.ready_file), error=error.strerror)
        self._service.stop()
        recorders = [each for each in (self._recorder, self._sign_ins) if each is not None]
        for recorder in recorders:
            recorder.begin_stop()
        for recorder in recorders:
            recorder.stop()
        for folder in ("spill", "spark"):
            spill.sweep(str(self.config.state / folder))
        self._http.stop(1.0)
        self._app.close()
        if self._bucket is not None:
            self._bucket.stop()
        if self._ready:  # else the reason why it never was is all that there is to say
            log("gateway stopped")

    def _not_ready(self) -> str | None:
        if self._draining:
            return "draining"
        return None if self._pool.ready else "no engine process is ready"

    def _health(self) -> dict[str, Any]:
        """Figures for people, as of now."""
        stats, recorder = self._pool.stats(), self._recorder
        return {
            "problem": self._not_ready(),
            "uptime_seconds": round(time.monotonic() - self._began),
            "workers": {"idle": stats.idle, "busy": stats.busy, "starting": stats.starting},
            "slots": self.config.slots,
            "jobs_waiting": stats.waiting,
            "spark": self.config.spark is not None,
            "history": None if recorder is None else _of_history(recorder),
            "disks": [
                {"of": name, "free_bytes": free.free, "total_bytes": free.total}
                for name, free in (
                    ("warehouse", shutil.disk_usage(self.config.warehouse)),
                    ("state", shutil.disk_usage(self.config.state)),
                )
            ],
        }

    def _metrics(self) -> bytes:
        stats = self._pool.stats()
        observability.gauge("engine_up", stats.idle + stats.busy, engine="datafusion")
        return observability.metrics_text()


def _of_history(recorder: Recorder[Record]) -> dict[str, Any]:
    return {"recorded": recorder.added, "lost": recorder.lost, "written": recorder.is_written}


def prepare_folders(config: Config) -> bool:
    """Make the warehouse and the state folders; whether there was no warehouse.

    Raises ConfigError naming the setting whose path cannot be used.
    """
    is_new = not config.warehouse.exists()
    for setting, folder in (
        ("warehouse", config.warehouse),
        ("state", config.state),
        ("state", config.state / "spool"),
        ("state", config.state / "spill"),
    ):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise ConfigError(setting, f"{folder} is not a folder") from error
        except OSError as error:
            raise ConfigError(setting, f"{folder} cannot be written: {error.strerror}") from error
        _check_written(setting, folder)
    if config.ready_file is not None:
        if config.ready_file.is_dir():
            raise ConfigError("ready-file", f"{config.ready_file} is a folder")
        _check_written("ready-file", config.ready_file.parent)
    for root in config.allow_path:
        if not root.is_dir():
            raise ConfigError("allow-path", f"{root} is not a folder")
    return is_new


def _check_written(setting: str, folder: Path) -> None:
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise ConfigError(setting, f"{folder} cannot be written: {error.strerror}") from error


def write_ready_file(path: Path, http: str, tcp: str | None = None, https: str | None = None) -> None:
    """Tell whoever waits that requests are served; atomic by rename."""
    facts = {"pid": os.getpid(), "http": http, "tcp": tcp, "https": https}
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(facts) + "\n")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ConfigError("ready-file", f"{path} cannot be written: {error.strerror}") from error


def _raise_file_limit() -> None:
    """Each connection and each result on disk takes a descriptor."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # not allowed: `gateway doctor` warns of a low limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else max(soft, 65536), hard))
