"""Headless Chromium for tests, by its DevTools protocol: what a page says, asks for, and looks like."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from needs import BROWSERS, found

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
    "--remote-debugging-address=127.0.0.1", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip


_KEYS = {"Tab": (9, ""), "Enter": (13, "\r")}  # their codes, and what they write


class Browser:
    """One tab; ``messages`` are complaints of the page, ``requests`` all that it asked for."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.messages: list[str] = []
        self.requests: list[str] = []
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reader = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            data = message.json()
            if "id" in data:
                self._answers.pop(data["id"]).set_result(data)
                continue
            params = data["params"]
            if data["method"] == "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            elif data["method"] == "Runtime.exceptionThrown":
                self.messages.append(str(params["exceptionDetails"]))
            elif data["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                self.messages.append(str(params["args"]))
            elif data["method"] == "Log.entryAdded":
                self.messages.append(str(params["entry"]))

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        answer = await asyncio.wait_for(self._answers[number], 60)
        assert "error" not in answer, answer
        return answer["result"]

    async def open(self, url: str, width: int = 1366, height: int = 768, scheme: str = "light") -> None:
        """Show *url*; returns when ``document.body.dataset.drawn`` is set."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.send(f"{domain}.enable")
        await self.look(scheme, width, height)
        await self.send("Page.navigate", url=url)
        for _ in range(600):
            if await self.value("document.body?.dataset.drawn ?? ''"):
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"the page was not drawn: {self.messages}")

    async def look(self, scheme: str, width: int = 1366, height: int = 768) -> None:
        """Light or dark, and the size of the window."""
        await self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        await self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def value(self, expression: str) -> Any:
        """What a JavaScript expression, or the promise that it gives, comes to."""
        result = await self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def until(self, expression: str) -> None:
        """Return when a JavaScript expression is true, as after charts are drawn anew; fails after a minute."""
        for _ in range(600):
            if await self.value(expression):
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"it did not come true: {expression}")

    async def press(self, key: str) -> None:
        code, text = _KEYS[key]
        for kind in ("keyDown", "keyUp"):
            await self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text
            )


@asynccontextmanager
async def browsing(profile: Path):
    """A browser with a new *profile* directory; it and its children end with the context."""
    profile.mkdir(parents=True)
    process = await asyncio.create_subprocess_exec(
        found(*BROWSERS), *FLAGS, f"--user-data-dir={profile}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    port_file = profile / "DevToolsActivePort"
    try:
        for _ in range(600):
            if port_file.exists() and port_file.read_text().count("\n"):
                break
            assert process.returncode is None, "the browser ended at once"
            await asyncio.sleep(0.1)
        port = port_file.read_text().split("\n")[0]
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                target = next(tab for tab in await answer.json() if tab["type"] == "page")
            async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield Browser(socket)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
