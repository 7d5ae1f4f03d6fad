"""Chromium without a window, told what to do over a pipe by its DevTools protocol: clicks, keys, pictures, complaints."""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_SECONDS = 60.0
# Runs before a page's own scripts: what the policy forbids, and errors that nothing catches, are kept to be asked for.
_WATCH = """
window.complaints = [];
addEventListener("securitypolicyviolation", e =>
  complaints.push("policy: " + e.violatedDirective + " " + e.blockedURI + " " + e.sample));
addEventListener("error", e => complaints.push("error: " + e.message));
addEventListener("unhandledrejection", e => complaints.push("rejection: " + e.reason));
"""


def browser_path() -> str | None:
    """Where Chromium is, if it is."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


class BrowserError(AssertionError):
    """A page that is not as it was expected to be."""


class Browser:
    """One browser with a fresh profile, which is begun anew for the next page if it has died. Close it."""

    def __init__(self, path: str) -> None:
        self._path = path
        # Not where TMPDIR leads, as engines in this process set it: the path of the socket that Chromium makes must be short.
        self._folder = tempfile.mkdtemp(prefix="console-browser-", dir="/tmp")
        self._log = Path(self._folder) / "log"
        self.downloads = Path(self._folder) / "downloads"
        self.downloads.mkdir()
        self._numbers = itertools.count(1)
        self._start()

    def _start(self) -> None:
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        def place_pipes() -> None:  # the protocol is spoken over descriptors 3 and 4
            high = [os.dup(to_read), os.dup(to_write)]
            safe = [fd if fd > 4 else os.dup(os.dup(fd)) for fd in high]
            os.dup2(safe[0], 3)
            os.dup2(safe[1], 4)

        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._path, *_FLAGS, f"--user-data-dir={self._folder}/profile", "about:blank"],
                preexec_fn=place_pipes,
                close_fds=False,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={**os.environ, "TMPDIR": self._folder},
                start_new_session=True,
            )
        os.close(to_read)
        os.close(to_write)
        self._buffer = b""
        self.events: list[dict[str, Any]] = []

    def _end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def close(self) -> None:
        """End it with all its processes."""
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        """One command's result."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + _SECONDS
        while True:
            answer = self._message(end)
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def _message(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self._read, 1 << 20) if ready else b""
            if not data:
                told = self._log.read_text(errors="replace")[-2000:]
                raise BrowserError(f"The browser does not answer (exit code {self._process.poll()}).\n{told}")
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        return found

    @contextmanager
    def page(self, url: str, *, width: int = 1280, height: int = 800, phone: bool = False) -> Iterator[Page]:
        """A page in a context of its own (no cookies of others), closed afterwards."""
        if self._process.poll() is not None:
            self._end()
            self._start()
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call(
            "Browser.setDownloadBehavior",
            behavior="allow",
            downloadPath=str(self.downloads),
            browserContextId=context,
            eventsEnabled=False,
        )
        page = Page(self, session, url)
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        page.call("Emulation.setFocusEmulationEnabled", enabled=True)  # it hears keys whatever page was opened last
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.call("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)
        page.go("")
        try:
            yield page
        finally:
            self.call("Target.disposeBrowserContext", browserContextId=context)


class Page:
    """What is done in a page and seen of it."""

    def __init__(self, browser: Browser, session: str, url: str) -> None:
        self.browser = browser
        self._session = session
        self.url = url

    def call(self, method: str, **parameters: Any) -> Any:
        """A command for this page."""
        return self.browser.call(method, self._session, **parameters)

    def go(self, path: str) -> None:
        """Open another path of the same server; back when its scripts have run."""
        self.call("Page.navigate", url=self.url + path)
        self.until("location.protocol !== 'about:' && document.readyState === 'complete'")

    def evaluate(self, script: str) -> Any:
        """The value of an expression, awaited."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            told = found["exceptionDetails"]
            raise BrowserError(f"{script[:200]}: {told.get('exception', {}).get('description', told['text'])}")
        return found["result"].get("value")

    def until(self, script: str, seconds: float = 40.0) -> Any:
        """The value of an expression as soon as it is true."""
        end = time.monotonic() + seconds
        while True:
            found = self.evaluate(f"((v) => v instanceof Node ? true : v)({script})")
            if found:
                return found
            if time.monotonic() > end:
                text = self.evaluate("document.body?.innerText.slice(0, 1500)")
                raise BrowserError(f"never true: {script}\n{self.complaints()}\n{text}")
            time.sleep(0.05)

    def shows(self, text: str, seconds: float = 40.0) -> None:
        """Wait until a text is to be read on the page."""
        self.until(f"document.body?.innerText.includes({json.dumps(text)})", seconds)

    def click(self, selector: str, text: str | None = None, seconds: float = 40.0) -> None:
        """Click in the middle of what a selector (and a text) finds, once it is in sight and nothing covers it."""
        with self.pressed(selector, text, seconds):
            pass

    @contextmanager
    def pressed(self, selector: str, text: str | None = None, seconds: float = 40.0) -> Iterator[None]:
        """Hold what a selector (and a text) finds; where it has moved away before it was met, look again."""
        wanted = "true" if text is None else f"e.textContent.trim() === {json.dumps(text)}"
        script = f"""(() => {{
            const all = () => [...document.querySelectorAll({json.dumps(selector)})];
            const found = () => all().filter(e => e.getClientRects().length && {wanted});
            const e = found()[0];
            if (!e) return null;
            e.scrollIntoView({{block: "nearest"}});
            const r = e.getBoundingClientRect();
            const at = [r.x + Math.min(r.width, 400) / 2, r.y + r.height / 2];
            const meets = (one, top) => one.contains(top) || top.contains(one);
            const top = document.elementFromPoint(...at);
            if (!top || !meets(e, top)) return null;
            window.met = null;
            addEventListener("mousedown", (press) => {{ window.met = found().some((one) => meets(one, press.target)); }},
                             {{capture: true, once: true}});
            return at;
        }})()"""
        end = time.monotonic() + seconds
        while True:
            x, y = self.until(script, seconds)
            self.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", clickCount=1)
            if self.evaluate("window.met"):
                break
            self.call("Input.dispatchMouseEvent", type="mouseReleased", x=0, y=0, button="left", clickCount=1)
            if time.monotonic() > end:
                raise BrowserError(f"never met: {selector} {text}")
        yield
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=x, y=y, button="left", clickCount=1)

    def type(self, text: str) -> None:
        """Put a text where the cursor is."""
        self.call("Input.insertText", text=text)

    def key(self, key: str, *, control: bool = False, alt: bool = False) -> None:
        """Press a key."""
        codes: Mapping[str, tuple[str, int]] = {
            "Enter": ("Enter", 13),
            "ArrowDown": ("ArrowDown", 40),
            "ArrowUp": ("ArrowUp", 38),
            "Escape": ("Escape", 27),
            "Tab": ("Tab", 9),
            "End": ("End", 35),
            "PageDown": ("PageDown", 34),
            " ": ("Space", 32),
        }
        code, number = codes.get(key, (f"Digit{key}" if key.isdigit() else f"Key{key.upper()}", ord(key[0].upper())))
        modifiers = (1 if alt else 0) | (2 if control else 0)
        text = "\r" if key == "Enter" and not modifiers else key if len(key) == 1 and not modifiers else ""
        common = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def picture(self, path: Path) -> None:
        """What is seen, as a PNG file."""
        data = self.call("Page.captureScreenshot", format="png", optimizeForSpeed=False)["data"]
        path.write_bytes(base64.b64decode(data))

    def mine(self, method: str) -> list[dict[str, Any]]:
        """The events of a kind that this page has had."""
        self.evaluate("0")
        return [
            e["params"] for e in self.browser.events if e["method"] == method and e.get("sessionId") == self._session
        ]

    def complaints(self) -> list[str]:
        """What the policy forbade, errors that nothing caught, and errors of the browser's log."""
        found = list(self.evaluate("window.complaints"))
        for event in self.mine("Log.entryAdded"):
            entry = event["entry"]
            if entry["level"] == "error" and entry["source"] != "network":
                found.append(f"log: {entry['text']}")
        return found

    def requests(self) -> list[str]:
        """The addresses that were asked for."""
        return [event["request"]["url"] for event in self.mine("Network.requestWillBeSent")]
