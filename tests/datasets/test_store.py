"""Finding, checking and downloading files; the network is a server on this machine."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ssge.datasets import store
from ssge.datasets.facts import DATASETS, Facts, File
from ssge.datasets.store import cache_folder, obtain
from ssge.errors import InputError

CONTENT = bytes(range(256)) * 4096


def archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as content:
        content.writestr("top/raw/a.bin", CONTENT)
        content.writestr("top/raw/b.bin", b"b")
    return buffer.getvalue()


class Handler(BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = archive() if self.path == "/archive.zip" else CONTENT
        if self.path == "/absent":
            self.send_error(404)
            return
        self.send_response(200)
        if self.path != "/unsized":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if self.path == "/broken" else body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    Handler.asked = []
    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    running.server_close()
    thread.join()


def facts(*files: File) -> Facts:
    texts = dict.fromkeys(("name", "description", "source", "reference", "license"), "x")
    return Facts(title="Tiny", format="npz", files=files, **texts)  # type: ignore[arg-type]


def checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if not path.is_dir()]


def test_download_goes_to_the_cache_and_happens_once(server: str, cache: Path, tmp_path: Path) -> None:
    root = tmp_path / "data"
    root.mkdir()
    tiny = facts(File("Tiny/raw/a.bin", f"{server}/good", checksum(CONTENT)))
    for _ in range(2):
        paths = obtain(tiny, root)
        assert paths == {"a.bin": cache / "Tiny/raw/a.bin"}
        assert paths["a.bin"].read_bytes() == CONTENT
    assert Handler.asked == ["/good"]
    assert files_in(root) == []
    assert files_in(cache) == [cache / "Tiny/raw/a.bin"]


def test_wrong_checksum_leaves_nothing_behind(server: str, cache: Path) -> None:
    tiny = facts(File("Tiny/raw/a.bin", f"{server}/good", "0" * 64))
    with pytest.raises(InputError, match=f"a.bin.*{server}/good.*expected sha256 0+, received {checksum(CONTENT)}"):
        obtain(tiny)
    assert files_in(cache) == []


@pytest.mark.parametrize("sha256", [None, checksum(CONTENT)])
def test_broken_connection_leaves_nothing_behind(server: str, cache: Path, sha256: str | None) -> None:
    tiny = facts(File("Tiny/raw/a.bin", f"{server}/broken", sha256))
    with pytest.raises(InputError) as caught:
        obtain(tiny)
    half = len(CONTENT) // 2
    assert f"IncompleteRead({half} bytes read, {half} more expected)" in str(caught.value)
    assert "put a.bin at" in str(caught.value)
    assert files_in(cache) == []


def test_nothing_at_the_address_says_what_to_put_where(server: str, cache: Path, tmp_path: Path) -> None:
    tiny = facts(File("Tiny/raw/a.bin", f"{server}/absent"))
    with pytest.raises(InputError) as caught:
        obtain(tiny)
    message = str(caught.value)
    assert f"put a.bin at {cache}/Tiny/raw/a.bin, from {server}/absent" in message
    assert "404" in message
    assert "\n" not in message
    with pytest.raises(InputError, match=f"put a.bin at {tmp_path}/Tiny/raw/a.bin"):
        obtain(tiny, tmp_path)


def test_no_server_at_all(cache: Path) -> None:
    tiny = facts(File("a.bin", "http://127.0.0.1:1/a.bin"))
    with pytest.raises(InputError, match="download failed"):
        obtain(tiny)


def test_archive_is_fetched_once_and_removed(server: str, cache: Path) -> None:
    url = f"{server}/archive.zip"
    tiny = facts(
        File("T/raw/a.bin", url, checksum(CONTENT), "top/raw/a.bin"),
        File("T/raw/b.bin", url, None, "top/raw/b.bin"),
    )
    paths = obtain(tiny)
    assert paths["a.bin"].read_bytes() == CONTENT
    assert paths["b.bin"].read_bytes() == b"b"
    assert Handler.asked == ["/archive.zip"]
    assert sorted(files_in(cache)) == [cache / "T/raw/a.bin", cache / "T/raw/b.bin"]


def test_archive_without_the_member_or_no_archive(server: str, cache: Path) -> None:
    for url, member in ((f"{server}/archive.zip", "top/c.bin"), (f"{server}/good", "top/raw/a.bin")):
        with pytest.raises(InputError, match=f"put a.bin at .* from {member} in {url}"):
            obtain(facts(File("T/a.bin", url, None, member)))
        assert files_in(cache) == []


@pytest.mark.parametrize(("address", "member"), [("good", None), ("unsized", None), ("archive.zip", "top/raw/a.bin")])
def test_too_large_a_file_is_refused(
    server: str, cache: Path, monkeypatch: pytest.MonkeyPatch, address: str, member: str | None
) -> None:
    monkeypatch.setattr(store, "MOST_BYTES", 500_000)  # the archive itself is smaller
    tiny = facts(File("a.bin", f"{server}/{address}", None, member))
    with pytest.raises(InputError, match=r"500,000.*put a\.bin at"):
        obtain(tiny)
    assert files_in(cache) == []


def test_data_folder_of_the_environment_is_read_first(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, content in (("data", b"data"), ("cache", b"cache")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.bin").write_bytes(content)
    tiny = facts(File("a.bin", "https://nowhere.invalid"))
    assert obtain(tiny)["a.bin"].read_bytes() == b"cache"
    monkeypatch.setenv("SSGE_DATA", str(tmp_path / "data"))
    assert obtain(tiny)["a.bin"].read_bytes() == b"data"


def test_root_that_is_no_folder(cache: Path) -> None:
    with pytest.raises(InputError, match="root must be a folder"):
        obtain(DATASETS["cora"], "/no/such/folder")


def test_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSGE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder() == Path("/xdg/ssge")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert cache_folder() == Path("/home/me/.cache/ssge")
    monkeypatch.setenv("SSGE_CACHE", "~/own")
    assert cache_folder() == Path("/home/me/own")
