"""A headless Chromium, driven over two pipes by its own protocol: nothing else is installed."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import time

FOUND = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
        if (path := shutil.which(name))
    ),
    None,
)
OPTIONS = [
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
    "--remote-debugging-pipe",
]
SPECIAL = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40}


class Browser:
    """One tab. It reads commands from file 3 and writes answers to file 4."""

    def __init__(self, folder):
        self.folder = folder
        commands, self._out = os.pipe()
        self._in, answers = os.pipe()
        # Above 3 and 4, so that neither takes the place of the other.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (commands, answers)]
        self.process = subprocess.Popen(
            [FOUND, *OPTIONS, f"--user-data-dir={folder / 'profile'}"],
            pass_fds=(3, 4),
            preexec_fn=lambda: [os.dup2(end, i) for i, end in enumerate(ends, 3)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (commands, answers, *ends):
            os.close(end)
        self._rest, self._number, self.session, self.events = b"", 0, None, []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self._out)
        os.close(self._in)

    def send(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _receive(self):
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], 60)
            assert ready, "the browser does not answer"
            data = os.read(self._in, 1 << 20)
            assert data, "the browser has ended"
            self._rest += data
        line, self._rest = self._rest.split(b"\0", 1)
        return json.loads(line)

    def open(self, path):
        self.send("Page.navigate", url=path.as_uri())
        self.wait("document.readyState === 'complete'")

    def wait(self, condition):
        for _ in range(200):
            if self.run(condition):
                return
            time.sleep(0.05)
        raise AssertionError(f"never: {condition}")

    def run(self, script):
        """Return the value of an expression of JavaScript, a promise too."""
        answer = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def text(self, selector):
        return self.run(f"document.querySelector({selector!r}).innerText")

    def press(self, *keys):
        for key in keys:
            what = {"key": key}
            if key in SPECIAL:
                what["windowsVirtualKeyCode"] = SPECIAL[key]
            else:
                what["text"] = key
            self.send("Input.dispatchKeyEvent", type="keyDown", **what)
            self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def problems(self):
        """Return errors of scripts, refusals and what was asked of a network."""
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"])
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"])
            elif method == "Network.requestWillBeSent":
                address = params["request"]["url"]
                if not address.startswith(("file:", "data:", "blob:", "about:")):
                    found.append(address)
        return found
