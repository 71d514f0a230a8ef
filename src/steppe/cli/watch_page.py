"""`steppe watch --page`: the page of a run as it grows, served to this computer alone.

The server listens on 127.0.0.1, answers only requests that name it as their host and carry the token of its
address, and hands out nothing but the page, how far the run is, and a request to stop.
"""

import hmac
import json
import secrets
import threading
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from steppe.errors import RunError, SteppeError
from steppe.report.page.gather import gather
from steppe.report.page.render import render_page
from steppe.run.storage.glance import Glance, glance
from steppe.run.storage.shards import find_run

HOST = "127.0.0.1"
MAX_QUERY_BYTES = 4096
FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>steppe watch</title>
<style nonce="{nonce}">
html, body {{ height: 100%; margin: 0; font: 15px/1.4 system-ui, sans-serif; color-scheme: light dark; }}
body {{ display: flex; flex-direction: column; }}
header {{ display: flex; flex-wrap: wrap; gap: .4em 1.2em; align-items: center; padding: .6em 1em; }}
progress {{ flex: 1 1 12em; height: 1em; }}
button {{ font: inherit; padding: .3em .9em; }}
iframe {{ flex: 1; border: 0; border-top: 1px solid #8888; width: 100%; }}
</style>
</head>
<body>
<header>
<strong id="state" role="status">…</strong>
<progress id="bar" max="1" value="0" aria-label="rows committed"></progress>
<span id="speed"></span>
<button id="stop" type="button">Stop and keep everything</button>
</header>
<iframe id="page" title="Report of the run so far"></iframe>
<script nonce="{nonce}">
const token = {token}, every = {every};
const get = id => document.getElementById(id);
const address = path => path + "?token=" + token;
let shown = -1, place = 0;
get("page").addEventListener("load", () => get("page").contentWindow.scrollTo(0, place));
get("stop").addEventListener("click", async () => {{
  get("stop").disabled = true;
  const answer = await fetch(address("/stop"), {{ method: "POST" }});
  get("state").textContent = (await answer.json()).state;
}});
async function look() {{
  try {{
    const seen = await (await fetch(address("/look"))).json();
    get("state").textContent = seen.state;
    get("bar").value = seen.fraction;
    get("speed").textContent = seen.speed;
    get("stop").disabled = seen.is_over;
    if (seen.num_rows !== shown && seen.num_rows > 0) {{
      place = shown < 0 ? 0 : get("page").contentWindow.scrollY;
      shown = seen.num_rows;
      get("page").src = address("/page");
    }}
    if (seen.is_over) return;
  }} catch (problem) {{
    get("state").textContent = "steppe watch has ended";
    get("stop").disabled = true;
    return;
  }}
  setTimeout(look, every * 1000);
}}
look();
</script>
</body>
</html>
"""


class Answer(NamedTuple):
    """What a request gets."""

    content: bytes
    kind: str = "text/html; charset=utf-8"
    status: int = 200
    policy: str = ""


class PageServer(ThreadingHTTPServer):
    """Serves the page of one run until it is shut down.

    Attributes
    ----------
    address
        What to open in a browser; it holds the token.
    """

    daemon_threads = True
    allow_reuse_address = False

    def __init__(self, directory: Path, *, port: int = 0, every: float = 2.0) -> None:
        self.directory, self.every = directory, every
        self.token = secrets.token_urlsafe(24)
        self._page: tuple[int, bytes] = (-1, b"")
        self._drawing = threading.Lock()
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise RunError(
                f"`--port {port}` cannot be had: {error.strerror or error}. Name another, or leave it out."
            ) from error
        self.address = f"http://{HOST}:{self.server_port}/?token={self.token}"

    @property
    def hosts(self) -> set[str]:
        """Names by which a browser of this computer asks for the page; any other is a trick."""
        return {f"{name}:{self.server_port}" for name in (HOST, "localhost")}

    def answer_frame(self) -> Answer:
        """Return the frame around the page: progress, a button, and a script that asks for more."""
        nonce = secrets.token_urlsafe(16)
        page = FRAME.format(nonce=nonce, token=json.dumps(self.token), every=json.dumps(self.every))
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
            "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        return Answer(page.encode(), policy=policy)

    def answer_look(self) -> Answer:
        """Say how far the run is."""
        return _to_json(describe_look(glance(self.directory)))

    def answer_page(self) -> Answer:
        """Return the report of what is committed, drawn once for every commit."""
        with self._drawing:
            num_rows = glance(self.directory).num_rows
            if self._page[0] != num_rows:
                self._page = num_rows, render_page(gather(self.directory)).encode()
            return Answer(self._page[1])

    def answer_stop(self) -> Answer:
        """Ask whoever writes the run to commit and end."""
        for part in find_run(self.directory):
            part.request_stop()
        return _to_json({"state": "stopping: everything is kept"})


class _Handler(BaseHTTPRequestHandler):
    server: PageServer  # pyright: ignore[reportIncompatibleVariableOverride]
    server_version, sys_version = "steppe", ""
    timeout = 30

    def do_GET(self) -> None:
        server = self.server
        self._answer({"/": server.answer_frame, "/look": server.answer_look, "/page": server.answer_page})

    def do_POST(self) -> None:
        self._answer({"/stop": self.server.answer_stop})

    def _answer(self, answers: dict[str, Callable[[], Answer]]) -> None:
        asked = urlsplit(self.path[:MAX_QUERY_BYTES])
        given = parse_qs(asked.query).get("token", [""])[0]
        if self.headers.get("Host") not in self.server.hosts:
            return self._send(Answer(b"This page is for the computer it was made on.\n", "text/plain", 403))
        if not hmac.compare_digest(given.encode(), self.server.token.encode()):
            return self._send(Answer(b"Open the address that `steppe watch` printed.\n", "text/plain", 403))
        if asked.path not in answers:
            return self._send(Answer(b"There is no such page.\n", "text/plain", 404))
        try:
            answer = answers[asked.path]()
        except (SteppeError, OSError) as error:
            answer = _to_json({"state": str(error)})._replace(status=503)
        return self._send(answer)

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        headers = {
            "Content-Type": answer.kind,
            "Content-Length": str(len(answer.content)),
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            **({"Content-Security-Policy": answer.policy} if answer.policy else {}),
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        """Say nothing: the terminal shows the run."""


def describe_look(seen: Glance) -> dict[str, object]:
    """How far a run is, as the script of the page reads it."""
    thinning, chains = seen.record.thinning, seen.record.num_chains
    phase = "warm-up" if seen.num_rows < seen.num_warmup_rows else "draws"
    going = f"{phase}: {seen.num_rows:,} of {seen.num_rows_planned:,} rows"
    return {
        "state": "complete" if seen.is_complete else going,
        "num_rows": seen.num_rows,
        "fraction": seen.num_rows / max(seen.num_rows_planned, 1),
        "speed": f"{seen.recent_speed * thinning * chains:,.0f} steps/s, all chains",
        "is_over": seen.is_complete,
    }


def _to_json(content: dict[str, object]) -> Answer:
    return Answer(json.dumps(content).encode(), "application/json")


def serve(server: PageServer) -> Callable[[], None]:
    """Serve beside the caller; returns what ends it."""
    thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.2), daemon=True)
    thread.start()

    def end() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return end
