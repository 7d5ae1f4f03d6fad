"""A Kubernetes in this process, as much of one as Spark's driver in client mode asks for: an API server and a kubelet.

The API server keeps objects of any kind of the core API in memory: create, get, list and watch with selectors, merge patch,
delete one or a collection. The kubelet starts the JVM of every executor pod on this machine as the entry point of Spark's image
would, by the container's environment, tells its phases, and ends it when the pod is deleted.

Watches are websockets, as Spark's client wants them. There are no TLS, users, quotas, owners, scheduler, images, volumes: a pod
sees the folders of this machine. Nothing of a pod but its container's environment is looked at, a namespace need not exist, and
an object that a change takes out of a selector is not told as deleted.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import re
import select
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

Object = dict[str, Any]
Key = tuple[str, str, str]  # kind as in the path, namespace, name

_PATH = re.compile(r"/api/v1/namespaces/([^/]+)/([a-z]+)(?:/([^/]+))?")
_REQUIREMENT = re.compile(r"(!?)([\w./-]+)\s*(?:(=|==|!=|in|notin)\s*(\([^)]*\)|[^,]*))?\s*(?:,|$)")
_MAIN = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10  # frames of a websocket
_REASONS = {401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed", 409: "AlreadyExists"}


class Event(NamedTuple):
    """What a watch tells, and of which object; its version is its place in the list of them, counted from 1."""

    type: str
    key: Key
    object: Object


class Kubernetes:
    """A cluster of one node. `refuse` and `start_pods` are what goes wrong with pods created from then on."""

    def __init__(self, spark_home: Path, folder: Path) -> None:
        self.spark_home, self.folder = spark_home, folder
        self.refuse: tuple[int, str] | None = None  # status and message for whoever creates a pod
        self.start_pods = True  # False: their image cannot be pulled for now
        self.dead = False
        self._objects: dict[Key, Object] = {}
        self._events: list[Event] = []
        self._changed = threading.Condition()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._started = 0
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.kubernetes = self
        self.url = f"k8s://http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()

    def pods(self, phase: str | None = None) -> list[str]:
        """Names of the pods, of those in `phase` if it is given."""
        with self._changed:
            found = [(key[2], o) for key, o in self._objects.items() if key[0] == "pods"]
        return [name for name, o in found if phase in (None, o["status"]["phase"])]

    def named(self, kind: str) -> list[str]:
        """Names of the objects of a kind."""
        with self._changed:
            return [key[2] for key in self._objects if key[0] == kind]

    def kill(self, pod: str) -> None:
        """The node's memory is used up, say: SIGKILL for the pod's container."""
        self._processes[pod].kill()

    def die(self) -> None:
        """End everything at once: the API server with its connections, and all containers."""
        with self._changed:
            self.dead = True
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._server.cut()
        for process in list(self._processes.values()):
            process.kill()
            process.wait()

    def answer(self, method: str, path: str, query: dict[str, str], body: Object) -> tuple[int, bytes]:
        """Status and text for a request that is no watch."""
        match = _PATH.fullmatch(path)
        with self._changed:
            status, found = _status(404, path) if match is None else self._answer(method, match, query, body)
            return status, json.dumps(found).encode()

    def watch(self, path: str, query: dict[str, str]) -> Iterator[bytes]:
        """Events of the kind that `path` names, from the version in `query` on; b"" for a second without one."""
        match = _PATH.fullmatch(path)
        assert match is not None and match[3] is None
        since = int(query.get("resourceVersion") or 0)
        new: list[Event] = []
        with self._changed:
            if since == 0:  # what there is comes first
                since = len(self._events)
                new = [Event("ADDED", k, _copy(o)) for k, o in self._objects.items()]
        while not self.dead:
            for event in new:
                if event.key[:2] == (match[2], match[1]) and _selected(event.object, query):
                    yield json.dumps({"type": event.type, "object": event.object}).encode()
            yield b""
            with self._changed:
                if len(self._events) == since:
                    self._changed.wait(1.0)
                new = self._events[since:]
                since = len(self._events)

    def _happened(self, type_: str, key: Key, found: Object) -> None:
        found["metadata"]["resourceVersion"] = str(len(self._events) + 1)
        self._events.append(Event(type_, key, _copy(found)))
        self._changed.notify_all()

    def _answer(self, method: str, path: re.Match[str], query: dict[str, str], body: Object) -> tuple[int, Object]:
        namespace, kind, name = path.groups()
        if name is not None:
            return self._one(method, (kind, namespace, name), body)
        if method == "POST":
            return self._create(kind, namespace, body)
        found = {k: o for k, o in self._objects.items() if k[:2] == (kind, namespace) and _selected(o, query)}
        if method == "DELETE":
            for key in found:
                self._delete(key)
        elif method != "GET":
            return _status(405, method)
        version = {"resourceVersion": str(len(self._events))}
        return 200, {"kind": "List", "apiVersion": "v1", "metadata": version, "items": list(found.values())}

    def _one(self, method: str, key: Key, body: Object) -> tuple[int, Object]:
        found = self._objects.get(key)
        if found is None:
            return _status(404, f'{key[0]} "{key[2]}" not found')
        if method == "DELETE":
            self._delete(key)
        elif method == "PATCH":
            _merge(found, body)
            self._happened("MODIFIED", key, found)
        elif method != "GET":
            return _status(405, method)
        return 200, found

    def _create(self, kind: str, namespace: str, body: Object) -> tuple[int, Object]:
        key = (kind, namespace, body["metadata"]["name"])
        if kind == "pods" and self.refuse is not None:
            return _status(*self.refuse)
        if key in self._objects:
            return _status(409, f'{kind} "{key[2]}" already exists')
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        body["metadata"] |= {"namespace": namespace, "uid": str(uuid.uuid4()), "creationTimestamp": now}
        if kind == "pods":
            body["status"] = {"phase": "Pending"}
            threading.Thread(target=self._run, args=(key,), daemon=True).start()
        self._objects[key] = body
        self._happened("ADDED", key, body)
        return 201, body

    def _delete(self, key: Key) -> None:
        """Remove it; a pod with a container goes when that has ended."""
        found = self._objects[key]
        process = self._processes.get(key[2])
        if key[0] != "pods" or process is None or process.poll() is not None:
            self._happened("DELETED", key, self._objects.pop(key))
        elif "deletionTimestamp" not in found["metadata"]:
            found["metadata"]["deletionTimestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            self._happened("MODIFIED", key, found)
            process.terminate()
            threading.Timer(found["spec"].get("terminationGracePeriodSeconds", 30), process.kill).start()

    def _run(self, key: Key) -> None:
        """A pod from its start to its end."""
        with self._changed:
            pod = self._objects.get(key)
            if pod is None or self.dead:
                return
            if not self.start_pods:
                reason = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "any"'}
                self._tell(key, "Pending", {"waiting": reason})
                while not (self.start_pods or self.dead) and key in self._objects:
                    self._changed.wait(0.5)
                if self.dead or key not in self._objects:
                    return
            self._started += 1
            pod["status"]["podIP"] = f"127.0.1.{self._started % 250 + 1}"
            process = self._start(pod)
            self._processes[key[2]] = process
            self._tell(key, "Running", {"running": {"startedAt": pod["metadata"]["creationTimestamp"]}})
        code = process.wait()
        with self._changed:
            if self.dead or key not in self._objects:
                return
            ended = {"exitCode": 128 - code if code < 0 else code, "reason": "Completed" if code == 0 else "Error"}
            self._tell(key, "Succeeded" if code == 0 else "Failed", {"terminated": ended})
            if "deletionTimestamp" in pod["metadata"]:
                self._delete(key)

    def _tell(self, key: Key, phase: str, state: Object) -> None:
        pod = self._objects[key]
        container = pod["spec"]["containers"][0]
        status = {"name": container["name"], "image": container["image"], "state": state, "restartCount": 0}
        pod["status"] |= {"phase": phase, "containerStatuses": [{**status, "ready": phase == "Running"}]}
        self._happened("MODIFIED", key, pod)

    def _start(self, pod: Object) -> subprocess.Popen[bytes]:
        """What entrypoint.sh of Spark's image does for `executor`."""
        container = pod["spec"]["containers"][0]
        assert container["args"] == ["executor"]
        inside = {e["name"]: _value(e, pod) for e in container["env"]}
        options = sorted((n for n in inside if n.startswith("SPARK_JAVA_OPT_")), key=lambda n: int(n.split("_")[3]))
        memory = inside["SPARK_EXECUTOR_MEMORY"]
        command = ["java", *(inside[n] for n in options), f"-Xms{memory}", f"-Xmx{memory}"]
        command += ["-cp", f"{inside.get('SPARK_CLASSPATH', '')}:{self.spark_home}/jars/*", _MAIN]
        for option, name in (
            ("--driver-url", "SPARK_DRIVER_URL"),
            ("--executor-id", "SPARK_EXECUTOR_ID"),
            ("--cores", "SPARK_EXECUTOR_CORES"),
            ("--app-id", "SPARK_APPLICATION_ID"),
            ("--hostname", "SPARK_EXECUTOR_POD_IP"),
            ("--resourceProfileId", "SPARK_RESOURCE_PROFILE_ID"),
            ("--podName", "SPARK_EXECUTOR_POD_NAME"),
        ):
            command += [option, inside[name]]
        work = self.folder / pod["metadata"]["name"]
        work.mkdir(parents=True)
        around = {name: value for name in ("PATH", "JAVA_HOME", "HOME") if (value := os.environ.get(name))}
        environment = {**around, **inside, "SPARK_HOME": str(self.spark_home)}
        with (work / "log").open("wb") as log:
            return subprocess.Popen(
                command, env=environment, cwd=work, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    kubernetes: Kubernetes

    def __init__(self, address: tuple[str, int], handler: Callable[..., BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self.open: set[Any] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def cut(self) -> None:
        """Close what clients have kept open."""
        for one in self.open:
            with contextlib.suppress(OSError):
                one.shutdown(2)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on standard error."""

    def handle_one_request(self) -> None:
        with contextlib.suppress(ConnectionError):
            super().handle_one_request()

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        kubernetes = self.server.kubernetes
        if self.command == "GET" and query.get("watch") == "true":
            self._send_watch(kubernetes.watch(parts.path, query))
            return
        status, text = kubernetes.answer(self.command, parts.path, query, body)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - names of http.server

    def _send_watch(self, events: Iterator[bytes]) -> None:
        """As messages of a websocket, for which this client asks."""
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        self.close_connection = True
        for event in events:
            if event:
                self._send_frame(_TEXT, event)
            if select.select([self.connection], [], [], 0)[0] and not self._read_frame():
                return
        self._send_frame(_CLOSE, b"")

    def _read_frame(self) -> bool:
        """Answer a ping; whether the client stays."""
        frame = self.connection.recv(1024)
        if not frame or frame[0] & 15 == _CLOSE:
            return False
        mask, masked = frame[2:6], frame[6 : 6 + (frame[1] & 127)]
        if frame[0] & 15 == _PING:
            self._send_frame(_PONG, bytes(byte ^ mask[i % 4] for i, byte in enumerate(masked)))
        return True

    def _send_frame(self, kind: int, text: bytes) -> None:
        size = bytes([len(text)]) if len(text) < 126 else b"\x7e" + len(text).to_bytes(2, "big")
        self.wfile.write(bytes([0x80 | kind]) + size + text)


def _status(code: int, message: str) -> tuple[int, Object]:
    reason = _REASONS.get(code, "")
    return code, {"kind": "Status", "apiVersion": "v1", "status": "Failure"} | {
        "message": message,
        "reason": reason,
        "code": code,
        "metadata": {},
    }


def _value(variable: Object, pod: Object) -> str:
    """What a variable of a container's environment is: given, or a field of its pod."""
    if "valueFrom" not in variable:
        return str(variable.get("value", ""))
    return str(_field(pod, variable["valueFrom"]["fieldRef"]["fieldPath"]))


def _field(found: Any, path: str) -> Any:
    for name in path.split("."):
        found = found.get(name, {})
    return found


def _selected(found: Object, query: dict[str, str]) -> bool:
    """Whether the selectors of a query hold for an object."""
    labels = found["metadata"].get("labels") or {}
    for no, name, how, text in _REQUIREMENT.findall(query.get("labelSelector", "")):
        values = [v.strip() for v in text.strip("() ").split(",")]
        met = labels.get(name) in values if how else name in labels
        if met == (bool(no) or how in ("!=", "notin")):
            return False
    for name, how, value in re.findall(r"([\w.]+)(!?=)=?([^,]*)", query.get("fieldSelector", "")):
        if (_field(found, name) == value) == (how == "!="):
            return False
    return True


def _copy(found: Object) -> Object:
    copied: Object = json.loads(json.dumps(found))
    return copied


def _merge(into: Object, patch: Object) -> None:
    for name, value in patch.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        elif value is None:
            into.pop(name, None)
        else:
            into[name] = value
