"""Where files are looked for, and what a download may bring: a loopback server stands for the network."""

import functools
import gzip
import hashlib
import http.server
import sys
import threading

import pytest

from steppe.datasets import DataError, DownloadError, MissingDataError, MissingPackageError
from steppe.datasets.download import File
from steppe.datasets.files import Lookup, contents
from steppe.optional import require

CONTENT = bytes(range(256)) * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
LIES = {"/truncated.bin": CONTENT[:1000], "/longer.bin": CONTENT + b"more", "/damaged.bin": CONTENT[::-1]}


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves the file, and damaged ones; a cut connection announces more than it sends."""

    def do_GET(self):
        if self.path == "/away.bin":
            self.send_response(302)
            self.send_header("Location", "http://example.invalid/file.bin")
            self.end_headers()
            return
        body = LIES.get(self.path, CONTENT)
        self.send_response(404 if self.path == "/missing.bin" else 200)
        self.send_header("Content-Length", str(len(CONTENT) if self.path == "/cut.bin" else len(body)))
        self.end_headers()
        self.wfile.write(body[:5000] if self.path == "/cut.bin" else body)

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.delenv("STEPPE_DATA", raising=False)
    monkeypatch.setenv("STEPPE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    return tmp_path


def put(directory, file, content=CONTENT):
    (directory / file.path).parent.mkdir(parents=True, exist_ok=True)
    (directory / file.path).write_bytes(content)


LOCAL = File("set/file.bin", DIGEST)


def test_a_named_directory_comes_before_the_variable_and_that_before_the_cache(places, monkeypatch):
    for name in ("cache", "variable", "data"):
        put(places / name, LOCAL)
    find = functools.partial(Lookup().find, "set", (LOCAL,))
    assert find().path.is_relative_to(places / "cache")
    monkeypatch.setenv("STEPPE_DATA", str(places / "variable"))
    assert find().path.is_relative_to(places / "variable")
    found = Lookup(data=places / "data").find("set", (LOCAL,))
    assert found.path.is_relative_to(places / "data")
    assert found.sha256 == DIGEST


def test_a_missing_file_names_what_to_download_and_where_to_put_it(places):
    lookup = Lookup(data=places / "data", download=False)
    remote = LOCAL._replace(url="https://example.org/file.bin")
    with pytest.raises(MissingDataError, match=r"set/file.bin.*example.org/file.bin.*STEPPE_DATA") as caught:
        lookup.find("set", (remote,))
    assert str(places / "data") in str(caught.value)
    with pytest.raises(MissingDataError, match="Write to the authors and put it there"):
        lookup.find("set", (LOCAL,), "Write to the authors")


def test_a_data_directory_that_is_not_there_is_refused(places):
    with pytest.raises(MissingDataError, match=r"data=.*nowhere` is not a directory"):
        Lookup(data=places / "nowhere").find("set", (LOCAL,))


def test_a_local_file_with_another_digest_is_refused(places):
    put(places / "data", LOCAL, CONTENT[:-1])
    with pytest.raises(DataError, match=r"file.bin has the SHA-256 .* instead of"):
        Lookup(data=places / "data").find("set", (LOCAL,))


def test_a_file_without_a_published_digest_is_taken_and_marked(places):
    file = LOCAL._replace(sha256=None)
    put(places / "data", file)
    found = Lookup(data=places / "data").find("set", (file,))
    assert (found.sha256, found.is_verified) == (DIGEST, False)


def test_a_download_lands_in_the_cache_and_is_not_repeated(server, places, capsys):
    remote = File("set/file.bin", DIGEST, len(CONTENT), f"{server}/file.bin")
    found = Lookup(progress=True).find("set", (remote,))
    assert found.path == places / "cache" / "set" / "file.bin"
    assert found.path.read_bytes() == CONTENT
    assert [entry.name for entry in found.path.parent.iterdir()] == ["file.bin"]
    assert "set" in capsys.readouterr().err  # the bar
    again = Lookup().find("set", (remote._replace(url="https://example.invalid/file.bin"),))
    assert again.path == found.path


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("truncated", "ended after 1000 of 256000 bytes"),
        ("cut", "251000 more expected"),
        ("longer", "more than the 256000 bytes"),
        ("damaged", "hash"),
        ("missing", "404"),
        ("away", "example.invalid/file.bin is not https"),
    ],
)
def test_a_bad_download_is_refused_and_leaves_nothing(server, places, name, reason):
    remote = File("set/file.bin", DIGEST, len(CONTENT), f"{server}/{name}.bin")
    with pytest.raises(DownloadError, match=f"(?s)'set' could not be downloaded.*({reason})"):
        Lookup().find("set", (remote,))
    assert not list((places / "cache" / "set").iterdir())


def test_plain_http_is_refused_outside_the_loopback_before_anything_is_sent():
    remote = LOCAL._replace(size=10, url="http://example.invalid/file.bin")
    with pytest.raises(DownloadError, match="is not https, and only https is followed"):
        Lookup().find("set", (remote,))


def test_nothing_is_downloaded_when_that_is_not_wanted(server):
    remote = File("set/file.bin", DIGEST, len(CONTENT), f"{server}/file.bin")
    with pytest.raises(MissingDataError):
        Lookup(download=False).find("set", (remote,))


def test_a_damaged_archive_is_refused_by_name(places):
    for name, content in (("a.gz", gzip.compress(CONTENT)[:-20]), ("b.xz", b"no archive")):
        file = File(name, None)
        put(places / "data", file, content)
        found = Lookup(data=places / "data").find("set", (file,))
        with pytest.raises(DataError, match=f"'set': .*{name} cannot be unpacked"):
            contents("set", found)


def test_a_missing_package_is_named_with_its_pip_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingPackageError, match=r'needs `sklearn`.*`pip install "steppe\[data\]"`'):
        require("sklearn.datasets", "data", "Loading digits")
