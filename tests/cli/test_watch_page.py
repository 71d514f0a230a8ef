"""`steppe watch --page`: this computer alone, with the token; the button ends a run and keeps everything."""

import http.client
import json
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

import steppe
from steppe.cli import main
from steppe.cli.watch_page import PageServer, serve
from steppe.errors import RunError
from steppe.run.storage.directory import RunDirectory
from steppe.run.storage.glance import glance

SMALL = ["--target", "paper_bernoulli", "--recipe", "gibbs", "--num-warmup", "10", "--seed", "3"]


def call(*arguments: object) -> None:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    assert not left.value.code


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("watched") / "run"
    call("run", "--out", path, "--num-draws", 40, *SMALL)
    return path


@pytest.fixture
def server(finished):
    server = PageServer(finished)
    end = serve(server)
    yield server
    end()


def ask(server, path, *, method="GET", host=None, token=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    given = server.token if token is None else token
    headers = {"Host": f"127.0.0.1:{server.server_port}" if host is None else host}
    connection.request(method, f"{path}?token={given}", headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read(), dict(answer.getheaders())


def test_the_page_is_the_report_and_says_how_far_the_run_is(server):
    status, page, _ = ask(server, "/page")
    assert status == 200
    assert b"gibbs on" in page
    status, look, _ = ask(server, "/look")
    assert json.loads(look)["is_over"] is True
    status, frame, headers = ask(server, "/")
    assert status == 200
    assert server.token.encode() in frame
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/", "/look", "/page"])
@pytest.mark.parametrize(
    "wrong", [{"token": "guess"}, {"token": ""}, {"token": "%C3%A9"}, {"host": "evil.example"}, {"host": ""}]
)
def test_strangers_are_refused(server, path, wrong):
    status, content, _ = ask(server, path, **wrong)
    assert status == 403
    assert server.token.encode() not in content


def test_strangers_cannot_stop_a_run(server, finished):
    assert ask(server, "/stop", method="POST", token="guess")[0] == 403
    assert ask(server, "/stop", method="POST", host="evil.example")[0] == 403
    assert ask(server, "/stop")[0] == 404  # a link does nothing
    assert not RunDirectory(finished).is_stop_requested


def test_the_server_listens_on_this_computer_alone(server):
    assert server.server_address[0] == "127.0.0.1"
    assert ask(server, "/nothing")[0] == 404


def test_a_port_that_is_taken_is_named(finished):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(RunError, match=f"`--port {port}` cannot be had"):
            PageServer(finished, port=port)


@pytest.mark.parametrize("port", ["-1", "70000"])
def test_a_port_that_cannot_be_is_refused(finished, port, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["watch", str(finished), "--page", f"--port={port}"])
    assert stopped.value.code == 2
    assert "between 0 and 65535" in capsys.readouterr().err


@pytest.mark.slow
def test_the_button_ends_a_run_and_resuming_gives_the_draws_of_one_that_was_never_stopped(tmp_path):
    long = ["--num-draws", "400000", "--thinning", "100", "--commit-seconds", "0.2", *SMALL]
    path = tmp_path / "run"
    command = [sys.executable, "-m", "steppe", "run", "--out", str(path), *long]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            time.sleep(0.2)
            if (path / "acknowledged.json").exists() and glance(path).num_rows:
                break
        server = PageServer(path)
        end = serve(server)
        assert ask(server, "/stop", method="POST")[0] == 200
        assert process.wait(60) == 0
        end()
    seen = glance(path)
    assert 0 < seen.num_rows < seen.num_rows_planned
    rows = seen.num_rows - seen.num_warmup_rows
    call("resume", path, "--num-draws", rows + 50)
    assert not RunDirectory(path).is_stop_requested
    call("run", "--out", tmp_path / "whole", *long[2:], "--num-draws", rows + 50)
    stopped, whole = steppe.open_run(path), steppe.open_run(tmp_path / "whole")
    assert stopped.levels.shape == (4, rows + 50, 4)
    np.testing.assert_array_equal(stopped.levels, whole.levels)
