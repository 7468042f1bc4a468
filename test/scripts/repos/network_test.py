"""Servers that are slow, refuse, stop half-way or have changed; credentials are never printed."""

import signal
import subprocess
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from bazel.pytest_plugin import mostly_nightly
from test.build.shell import program
from test.scripts.repos.servers import Server, http_server, silent_port
from test.scripts.repos.world import Repo, World, wait_for_orphans


class Web(NamedTuple):
    """A repository that is served over http, and a clone of it that is behind."""

    server: Server
    upstream: Repo
    clone: Repo


@pytest.fixture
def web(world: World) -> Iterator[Web]:
    upstream, clone = world.pair()
    with http_server(world.folder / "servers") as server:
        _point(world, clone, f"{server.url}/a/.git")
        upstream.commit("file")
        upstream.git("update-server-info")
        yield Web(server, upstream, clone)


def _point(world: World, clone: Repo, url: str) -> None:
    clone.git("remote", "set-url", "origin", url)
    world.table["a"]["upstream"] = [url]


# Keeps its options, and carries out here what is meant for another machine.
_SSH = """\
echo "$@" >> "$HOME/ssh-options"
for command; do :; done
exec sh -c "$command"
"""


@pytest.mark.parametrize("is_own", mostly_nightly([False, True], [False]))
def test_ssh_has_limits_unless_the_user_has_another_command(world: World, is_own: bool):
    upstream, clone = world.pair()
    ssh = program(world.folder / "bin" / ("ssh" if not is_own else "own"), _SSH)
    if is_own:
        clone.git("config", "core.sshCommand", str(ssh))
    _point(world, clone, f"git@work:{upstream.path}")
    new = upstream.commit()
    path = f"{ssh.parent}:{world.environ['PATH']}"
    assert (world.run(PATH=path).code, clone.head) == (0, new)
    options = (world.home / "ssh-options").read_text()
    limits = "-o ConnectTimeout=60 -o ServerAliveInterval=60 -o ServerAliveCountMax=1"
    assert (limits in options) != is_own


@pytest.mark.parametrize("status", mostly_nightly([401, 404, 500], [404]))
def test_a_server_that_refuses_is_named_and_the_others_are_updated(
    world: World, web: Web, status: int
):
    other_server, other = world.pair("b")
    new = other_server.commit()
    web.server.status = status
    before = web.clone.everything()
    ran = world.run()
    assert (ran.code, ran.one()["status"], web.clone.everything()) == (3, "unreachable", before)
    assert (len(web.server.requests), other.head) == (1, new)
    assert "cannot be fetched from origin" in ran.one()["reason"]
    assert ran.one()["remedy"] == [f"git -C {web.clone.path} fetch origin"]
    assert (ran.one()["branch"], ran.one()["remote"]) == ("main", "origin")


@pytest.mark.parametrize(("answers", "said"), [(False, "connect to"), (True, "Operation too slow")])
def test_a_port_without_a_server_is_unreachable_and_a_silent_one_is_ended(
    world: World, answers: bool, said: str
):
    _, clone = world.pair()
    with silent_port(answers=answers) as port:
        _point(world, clone, f"http://127.0.0.1:{port}/a")
        ran = world.run(GIT_HTTP_LOW_SPEED_LIMIT="1", GIT_HTTP_LOW_SPEED_TIME="1")
    assert (ran.code, ran.one()["status"], said in ran.one()["reason"]) == (3, "unreachable", True)
    wait_for_orphans(clone.path)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            "git update-ref -d refs/remotes/origin/main;"
            " git update-ref refs/remotes/origin/main/old HEAD",
            "try running 'git remote prune origin' to remove any old, conflicting branches",
        ),
        (
            "mkdir -p .git/refs/remotes/origin; touch .git/refs/remotes/origin/main.lock",
            "main.lock",
        ),
    ],
)
def test_a_fault_of_this_machine_is_no_problem_of_the_network_and_git_s_remedy_is_whole(
    world: World, fault: str, said: str
):
    server, clone = world.pair(branch="main")
    server.commit()
    clone.shell(fault)
    ran = world.run()
    assert (ran.code, ran.one()["status"], ran.json["run"]) == (1, "failed", None)
    assert said in ran.one()["reason"]
    # The survey failed, and knows the branch all the same.
    assert ran.one()["branch"] == "main"


def test_a_default_branch_that_was_renamed_is_named_with_what_to_do(world: World):
    server, clone = world.pair(branch="main")
    old = clone.head
    server.git("branch", "-m", "trunk")
    ran = world.run()
    assert (ran.code, clone.head) == (1, old)
    assert ran.one()["reason"] == "origin has no branch main"
    clone.shell(ran.one()["remedy"][0])
    assert clone.git("symbolic-ref", "refs/remotes/origin/HEAD") == "refs/remotes/origin/trunk"


_SECRET = "s3cret-Passw0rd"


def test_credentials_are_used_and_never_printed(world: World, web: Web):
    web.server.password = _SECRET
    host = web.server.url.removeprefix("http://")
    web.clone.git("remote", "set-url", "origin", f"http://me:{_SECRET}@{host}/a/.git")
    outputs = [world.run(json=False)]
    assert web.clone.head == web.upstream.head
    web.server.status = 500
    outputs += [world.run(json=json, GIT_TRACE_CURL="1") for json in (True, False)]
    web.clone.git("remote", "set-url", "origin", f"http://me:{_SECRET}@{host}/other/.git")
    world.table["a"]["upstream"] = [f"https://me:{_SECRET}@example.invalid/a"]
    outputs.append(world.run("--plan", json=False))
    assert "remote add upstream https://***@example.invalid/a" in outputs[-1].out
    assert not any(_SECRET in ran.out + ran.err for ran in outputs)
    web.server.status, web.server.password = None, "another"
    _point(world, web.clone, f"http://{host}/a/.git")
    assert "terminal prompts disabled" in world.run().one()["reason"]


@pytest.mark.nightly
def test_an_interrupt_ends_network_calls_and_changes_nothing(world: World, web: Web):
    # Longer than any test may take: only the interrupt can end the call.
    web.server.wait = 3600
    before = web.clone.everything()
    process = subprocess.Popen(world.command(), env=world.environ, stdout=-1, stderr=-1)
    while not web.server.requests:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert (process.returncode, web.clone.everything()) == (130, before)
    assert errors == b"stopping after the current step ...\n"
