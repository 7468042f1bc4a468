"""What a build asks a cache server before it begins."""

from pathlib import Path

from bazel.pybuild.cache import remote_cache
from test.cache.servers import certificate, needs_nginx, server

pytestmark = needs_nginx


def test_a_client_trusts_the_given_certificate_and_no_other(tmp_path: Path):
    certificates = [certificate(tmp_path / name) for name in ("ours", "other")]
    with server(tmp_path / "cache", tls=certificates[0]) as cache:
        token = cache.read_token
        answers = [
            remote_cache.probe(cache.options(reads=token, certificate=f"{stem}.pem"))
            for stem in certificates
        ]
    assert answers[0].problem == ""
    assert "certificate" in answers[1].problem or "self-signed" in answers[1].problem
