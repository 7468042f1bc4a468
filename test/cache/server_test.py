"""Cache servers: scripts/cache_server.py, and what a build asks a server."""

import hashlib
import json
import os
import signal
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from bazel.pybuild.cache import remote_cache
from test.cache.servers import (
    Server,
    certificate,
    needs_nginx,
    run,
    server,
    tunnel,
)

pytestmark = needs_nginx


def _http(cache: Server, method: str, path: str, token: str, body: bytes | None = None) -> int:
    request = urllib.request.Request(cache.url + path, body, method=method)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def _blob(content: bytes) -> str:
    return f"/cas/{hashlib.sha256(content).hexdigest()}"


def _put(cache: Server, content: bytes) -> Path:
    assert _http(cache, "PUT", _blob(content), cache.write_token, content) == 201
    return cache.folder / "entries" / _blob(content)[1:]


def test_the_server_enforces_both_tokens(tmp_path: Path):
    with server(tmp_path, "http") as cache:
        nobody = remote_cache.probe(cache.options())
        wrong = remote_cache.probe(cache.options(reads="wrong"))
        reader = remote_cache.probe(cache.options(reads=cache.read_token))
        pretender = remote_cache.probe(cache.options(writes=cache.read_token))
        writer = remote_cache.probe(cache.options(writes=cache.write_token))
    assert nobody.problem
    assert wrong.problem
    assert (reader.problem, reader.refused) == ("", "")
    assert (pretender.problem, pretender.refused) == ("", "it answers 403 Forbidden")
    assert (writer.problem, writer.refused) == ("", "")


def test_a_refused_write_leaves_the_entry_as_it_was(tmp_path: Path):
    with server(tmp_path, "http") as cache:
        file = _put(cache, b"right")
        path = _blob(b"right")
        assert _http(cache, "PUT", path, "", b"wrong") == 401
        assert _http(cache, "PUT", path, cache.read_token, b"wrong") == 403
        assert _http(cache, "DELETE", path, cache.read_token) == 403
        assert file.read_bytes() == b"right"
        assert _http(cache, "GET", path, cache.read_token) == 200


def test_a_server_that_is_killed_during_an_upload_keeps_no_part_of_it(tmp_path: Path):
    path = _blob(b"new")
    with server(tmp_path, "http") as cache:
        url = urllib.parse.urlsplit(cache.url)
        with socket.create_connection((url.hostname, url.port)) as connection:
            lines = (
                f"PUT {path} HTTP/1.1",
                f"Host: {url.netloc}",
                f"Authorization: Bearer {cache.write_token}",
                "Content-Length: 2000000",
            )
            connection.sendall("\r\n".join([*lines, "", ""]).encode() + bytes(1000000))
            parts = tmp_path / "temporary"
            _wait_until(lambda: any(part.stat().st_size > 500000 for part in parts.iterdir()))
            master = int((tmp_path / "nginx.pid").read_text())
            children = Path(f"/proc/{master}/task/{master}/children").read_text().split()
            for pid in (master, *map(int, children)):
                os.kill(pid, signal.SIGKILL)
        _wait_until(lambda: not any(map(_runs, (master, *map(int, children)))))
        assert cache.entries() == []
        run("stop", tmp_path)
    with server(tmp_path, "http") as cache:
        assert [part for part in parts.iterdir() if part.is_file()] == []
        assert _http(cache, "GET", path, cache.read_token) == 404
        _put(cache, b"new")


def test_everybody_may_read_but_not_write_on_request(tmp_path: Path):
    with server(tmp_path, "http", "--public-read") as cache:
        _put(cache, b"right")
        assert _http(cache, "GET", _blob(b"right"), "") == 200
        assert _http(cache, "PUT", _blob(b"right"), "", b"wrong") == 403


def test_a_client_trusts_the_given_certificate_and_no_other(tmp_path: Path):
    certificates = [certificate(tmp_path / name) for name in ("ours", "other")]
    with server(tmp_path / "cache", "http", tls=certificates[0]) as cache:
        assert cache.url.startswith("https://")
        token = cache.read_token
        answers = [
            remote_cache.probe(cache.options(reads=token, certificate=f"{certificate}.pem"))
            for certificate in certificates
        ]
    assert answers[0].problem == ""
    assert "certificate" in answers[1].problem or "self-signed" in answers[1].problem


def test_a_tunnel_encrypts_and_checks_the_certificate(tmp_path: Path):
    ours, other = (certificate(tmp_path / name) for name in ("ours", "other"))
    answers = []
    with server(tmp_path / "cache", "http", tls=ours) as cache:
        for authority in (ours, other):
            with tunnel(cache.url, Path(f"{authority}.pem")) as url:
                through = cache._replace(url=url)
                answers.append(remote_cache.probe(through.options(writes=cache.write_token)))
    assert url.startswith("http://127.0.0.1:")
    assert (answers[0].problem, answers[0].refused) == ("", "")
    assert answers[1].problem


def test_stop_ends_all_processes_and_keeps_the_entries(tmp_path: Path):
    with server(tmp_path, "http") as cache:
        file = tmp_path / "entries" / "kept"
        file.write_text("kept")
        pids = [int(pid.read_text()) for pid in tmp_path.glob("*.pid")]
        assert len(pids) == 2
        assert json.loads(run("status", tmp_path).stdout)["running"]
        assert run("start", tmp_path).returncode == 1
        assert run("stop", tmp_path).returncode == 0
        assert not any(_runs(pid) for pid in pids)
        assert remote_cache.probe(cache.options()).problem == "Connection refused"
    status = run("status", tmp_path)
    assert status.returncode == 1
    assert json.loads(status.stdout)["files"] == 1


def _runs(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked about does not."""
    try:
        return "(zombie)" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_tokens_and_settings_are_private(tmp_path: Path):
    with server(tmp_path / "cache", "http") as cache:
        assert cache.folder.stat().st_mode & 0o077 == 0
        command_lines = [
            Path(f"/proc/{int(file.read_text())}/cmdline").read_bytes()
            for file in cache.folder.glob("*.pid")
        ]
        assert command_lines
        for token in (cache.read_token, cache.write_token):
            assert not any(token.encode() in line for line in command_lines)


def test_prune_removes_the_entries_whose_last_use_is_longest_ago(tmp_path: Path):
    with server(tmp_path, "http") as cache:
        files = [_put(cache, bytes([number]) * 1000) for number in range(4)]
        for age, file in enumerate(files):
            os.utime(file, (time.time() - 1000 * age,) * 2)
        assert run("prune", tmp_path, "--size", "2000").returncode == 0
        assert cache.entries() and set(cache.entries()) == set(files[:2])


def test_the_limit_of_start_is_kept_without_a_command(tmp_path: Path):
    with server(tmp_path, "http", "--size", "2K", "--every", "0.1") as cache:
        for first in (0, 4):
            for number in range(first, first + 4):
                _put(cache, bytes([number]) * 1000)
            _wait_until(lambda: len(cache.entries()) == 2)


def test_prune_removes_damaged_blobs_on_request(tmp_path: Path):
    with server(tmp_path, "http") as cache:
        whole, flipped, cut = (_put(cache, content * 100) for content in (b"a", b"b", b"c"))
        flipped.write_bytes(b"x" + flipped.read_bytes()[1:])
        os.truncate(cut, 10)
        assert run("prune", tmp_path).returncode == 0
        assert len(cache.entries()) == 3
        process = run("prune", tmp_path, "--verify")
        assert process.stderr == "removed 2 damaged blobs\n"
        assert cache.entries() == [whole]


def _wait_until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("missing", ["--certificate", "--key"])
def test_tls_with_half_of_what_it_needs_is_refused(tmp_path: Path, missing: str):
    process = run("start", tmp_path, missing, "x.pem")
    assert process.returncode == 1
    assert process.stderr == "error: TLS needs both --certificate and --key.\n"


def test_a_port_in_use_is_named_and_leaves_no_process(tmp_path: Path):
    with server(tmp_path / "first", "http") as cache:
        port = cache.url.rpartition(":")[2]
        process = run("start", tmp_path / "second", "--port", port)
    assert process.returncode == 1
    assert "Address already in use" in process.stderr
    assert not list((tmp_path / "second").glob("*.pid"))
