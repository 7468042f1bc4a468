"""Configures the remote cache for Bazel, and checks by a request whether the server works.

    lines(options)      # ["build:remote-cache --remote_cache=https://cache.example", ...]
    answer = probe(options)
    answer.problem      # "it does not answer within 3 s"; empty if the cache can be used
    describe(options)   # (True, "https://cache.example answers in 3.1 ms; you may read, not write")

Bazel 4 waits for a server that does not answer in each action. So setup.py asks first, and builds
without the cache where the server is silent.
"""

import base64
import shlex
import time
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from bazel.pybuild.options import Options

CONFIG = "--config=remote-cache"

# Why each option is there is said in docs/cache.md, "What the setting does".
_OPTIONS = (
    "--remote_local_fallback",
    "--incompatible_remote_results_ignore_disk",
    "--jobs=32",
)
_TIMEOUT_S = 3.0

# A key that no action has, and a blob that a writer may store: its name is its SHA-256.
_MISSING = "/ac/" + "0" * 64
_BLOB = b"torch_xla_lite\n"
_STORED = "/cas/1611c61272a69446652ff9eff8c9d12fe8760b302537c58f8b58da745b16ca73"


class Answer(NamedTuple):
    """What a server said.

    Attributes:
      latency_s: of one request, with the connection.
      problem: why it cannot be used; empty if it can.
      refused: why it does not store results of this user, who has a write token; empty if it does,
        and for readers.
    """

    latency_s: float = 0
    problem: str = ""
    refused: str = ""


def lines(options: Options) -> list[str]:
    """The lines of an rc file that define --config=remote-cache; none without a remote cache."""
    if options.remote_cache is None:
        return []
    flags = [f"--remote_cache={options.remote_cache}", *_OPTIONS]
    flags.append(
        "--remote_upload_local_results"
        if options.remote_cache_write_token
        else "--noremote_upload_local_results"
    )
    if options.remote_cache_certificate:
        flags.append(f"--tls_certificate={options.remote_cache_certificate}")
    # Bazel 4 ignores --remote_cache_header with HTTP.
    flags += [f"--remote_header={name}={value}" for name, value in _authorization(options).items()]
    return [f"build:remote-cache {shlex.quote(flag)}" for flag in flags]


def probe(options: Options, timeout_s: float = _TIMEOUT_S) -> Answer:
    """Asks the server for a result that it does not have, and whether a writer may store one."""
    assert options.remote_cache is not None
    url = urlsplit(options.remote_cache)
    begin = time.monotonic()
    try:
        problem = _ask(url, options, timeout_s, offers=False)
        latency_s = time.monotonic() - begin
        writes = not problem and options.remote_cache_write_token is not None
        refused = _ask(url, options, timeout_s, offers=True) if writes else ""
        return Answer(latency_s, problem, refused)
    except TimeoutError:
        return Answer(problem=f"it does not answer within {timeout_s:g} s")
    except OSError as error:
        reason = getattr(error, "verify_message", "") or error.strerror or str(error)
        return Answer(problem=reason)


def flags(options: Options) -> tuple[list[str], str]:
    """Bazel's options for the cache, none if it cannot be used now, and what is wrong with it."""
    answer = probe(options)
    if answer.problem:
        return [], f"is not used: {answer.problem}"
    if answer.refused:
        said = f"is used, but it does not store results: {answer.refused}"
        return [CONFIG, "--noremote_upload_local_results"], said
    return [CONFIG], ""


def describe(options: Options) -> tuple[bool, str]:
    """Whether there is no problem with the remote cache, and a sentence about it."""
    if options.remote_cache is None:
        return True, "none is set; TORCH_XLA_LITE_REMOTE_CACHE names one"
    answer = probe(options)
    if answer.problem:
        return False, f"{options.remote_cache} is not used: {answer.problem}"
    may_write = options.remote_cache_write_token and not answer.refused
    text = f"{options.remote_cache} answers in {answer.latency_s * 1000:.1f} ms"
    text += f"; you may {'read and write' if may_write else 'read, not write'}"
    if answer.refused:
        return False, f"{text}: it does not store results: {answer.refused}"
    return True, text


def _authorization(options: Options) -> dict[str, str]:
    """The Authorization header, if there is one."""
    token = options.remote_cache_write_token or options.remote_cache_read_token
    if not token:
        return {}
    if ":" in token:
        return {"Authorization": f"Basic {base64.b64encode(token.encode()).decode()}"}
    return {"Authorization": f"Bearer {token}"}


def _connection(url: SplitResult, options: Options, timeout_s: float) -> HTTPConnection:
    if url.scheme == "http":
        return HTTPConnection(url.hostname or "", url.port, timeout=timeout_s)
    import ssl

    context = ssl.create_default_context(cafile=options.remote_cache_certificate)
    return HTTPSConnection(url.hostname or "", url.port, timeout=timeout_s, context=context)


def _ask(url: SplitResult, options: Options, timeout_s: float, *, offers: bool) -> str:
    """Why the server refuses a request; empty if it does not."""
    method, path, body = ("PUT", _STORED, _BLOB) if offers else ("GET", _MISSING, None)
    with closing(_connection(url, options, timeout_s)) as connection:
        try:
            connection.request(method, url.path + path, body, _authorization(options))
            answer = connection.getresponse()
        except HTTPException:
            return "it does not speak HTTP"
    expected = (200, 201, 204) if offers else (200, 204, 404)
    return "" if answer.status in expected else f"it answers {answer.status} {answer.reason}"
