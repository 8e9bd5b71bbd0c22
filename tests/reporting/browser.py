"""A headless Chromium, driven through chromedriver with nothing but the standard library."""

import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

DRIVER = shutil.which("chromedriver")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]


class Browser:
    """One session."""

    def __init__(self, address, session):
        self._session = f"{address}/session/{session}"

    def _post(self, path, **content):
        return _request(f"{self._session}/{path}", content)

    def command(self, name, **parameters):
        """Send a command of the DevTools protocol."""
        return self._post("goog/cdp/execute", cmd=name, params=parameters)

    def show(self, path, width, height=800, dark=False):
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])
        self._post("url", url=Path(path).absolute().as_uri())

    def run(self, script):
        """Return the value of a script."""
        return self._post("execute/sync", script=script, args=[])

    def console(self):
        """Return what the page said on the console, errors of loading included."""
        return self._post("se/log", type="browser")

    def screenshot(self, path):
        height = self.run("return document.documentElement.scrollHeight")
        width = self.run("return document.documentElement.clientWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        picture = self.command("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        Path(path).write_bytes(base64.b64decode(picture["data"]))


def _request(url, content=None, method=None):
    data = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    # The driver is on this machine; a proxy must not be asked.
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        return json.load(answer)["value"]


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def open_browser():
    """Start chromedriver and a browser with a fresh profile; end both afterwards."""
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        driver = subprocess.Popen(
            [DRIVER, f"--port={port}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": profile},
        )
        try:
            _wait(f"{address}/status", driver)
            options = {"binary": BROWSER, "args": [*ARGUMENTS, f"--user-data-dir={profile}/profile"]}
            wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            session = _request(f"{address}/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
            try:
                yield Browser(address, session)
            finally:
                _request(f"{address}/session/{session}", method="DELETE")
        finally:
            driver.terminate()
            driver.wait()


def _wait(url, driver):
    for _ in range(100):
        try:
            if _request(url)["ready"]:
                return
        except OSError:
            time.sleep(0.1)
        assert driver.poll() is None, "chromedriver ended by itself"
    raise AssertionError("chromedriver does not answer")
