"""Servers that are slow, refuse, stop half-way or have changed; credentials are never printed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

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
    with http_server(world.folder / "servers", world.environ) as server:
        _point(world, clone, f"{server.url}/a/.git")
        upstream.commit("file", os.urandom(20_000))
        yield Web(server, upstream, clone)


def _point(world: World, clone: Repo, url: str) -> None:
    clone.git("remote", "set-url", "origin", url)
    world.table["a"]["upstream"] = [url]


# Carries out here what is meant for another machine.
_SSH = """\
for command; do :; done
exec sh -c "$command"
"""


def test_a_repository_is_updated_over_ssh_as_its_user_set_it_up(world: World):
    upstream, clone = world.pair()
    clone.git("config", "core.sshCommand", str(program(world.folder / "ssh", _SSH)))
    _point(world, clone, f"git@work:{upstream.path}")
    new = upstream.commit()
    assert (world.run().code, clone.head) == (0, new)


def test_nothing_to_do_takes_one_call(world: World, web: Web):
    world.run()
    web.server.requests.clear()
    assert world.run().code == 0
    assert len([r for r in web.server.requests if r.startswith("GET")]) == 1


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_server_that_refuses_is_not_asked_again(world: World, web: Web, status: int):
    world.settings["retries"] = 3
    web.server.manners.status = status
    before = web.clone.everything()
    ran = world.run()
    assert (ran.code, ran.one()["status"], web.clone.everything()) == (3, "unreachable", before)
    assert len(web.server.requests) == 1
    assert "origin cannot be reached" in ran.one()["reason"]
    assert ran.one()["remedy"] == [f"git -C {web.clone.path} fetch origin"]
    assert (ran.one()["branch"], ran.one()["remote"]) == ("main", "origin")


@pytest.mark.parametrize("status", [500, 502, 503])
def test_a_server_in_trouble_is_asked_again(world: World, web: Web, status: int):
    world.settings["retries"] = 3
    web.server.manners.status, web.server.manners.wrong_requests = status, 2
    assert world.run().code == 0
    assert web.clone.head == web.upstream.head


def test_a_server_that_stays_in_trouble_is_given_up_after_attempts_that_back_off(
    world: World, web: Web
):
    world.settings |= {"retries": 2, "backoff": 0.2}
    web.server.manners.status = 500
    began = time.monotonic()
    ran = world.run()
    # A lower bound cannot be missed on a busy machine: 0.2 and 0.4 s between the attempts.
    assert time.monotonic() - began >= 0.6
    assert (ran.code, len(web.server.requests)) == (3, 3)
    assert "(3 attempts)" in ran.one()["reason"]


def test_a_port_on_which_no_server_listens_is_unreachable(world: World):
    _, clone = world.pair()
    with silent_port(answers=False) as port:
        _point(world, clone, f"http://127.0.0.1:{port}/a")
        ran = world.run()
    assert (ran.code, ran.one()["status"]) == (3, "unreachable")


def test_a_server_that_never_answers_is_ended_by_the_timeout(world: World):
    _, clone = world.pair()
    with silent_port(answers=True) as port:
        _point(world, clone, f"http://127.0.0.1:{port}/a")
        ran = world.run("--timeout=0.5")
    assert (ran.code, ran.one()["status"]) == (3, "unreachable")
    assert "no answer in 0.5 s" in ran.one()["reason"]
    wait_for_orphans(clone.path)


def test_a_slow_server_is_waited_for(world: World, web: Web):
    web.server.manners.wait = 0.5
    assert world.run().code == 0
    assert web.clone.head == web.upstream.head


# Copies its input slowly: 1.2 MB in about 5 s; a call may be silent for 3 s.
_SLOWLY = "import os, time\nwhile data := os.read(0, 16384): os.write(1, data), time.sleep(0.07)"


def _serve_slowly(world: World) -> None:
    """Every server here sends objects slowly from now on."""
    hook = program(world.folder / "hook", f"\"$@\" | {sys.executable} -c '{_SLOWLY}'")
    with (world.home / ".gitconfig").open("a") as stream:
        stream.write(f"[uploadpack]\n\tpackObjectsHook = {hook}\n")
    world.settings["timeout"] = 3


@pytest.mark.nightly
def test_a_fetch_of_one_large_object_is_not_taken_for_silent(world: World):
    server, clone = world.pair()
    new = server.commit("large", os.urandom(1_200_000))
    _serve_slowly(world)
    assert (world.run().code, clone.head) == (0, new)


@pytest.mark.nightly
@pytest.mark.parametrize("is_new", [True, False])
def test_a_submodule_of_one_large_object_is_not_taken_for_silent(world: World, is_new: bool):
    inner, server = world.server("inner"), world.server("a")
    clone = world.clone(server, "a")
    server.add_submodule(inner, "inner")
    if not is_new:
        assert world.run().code == 0
    new = inner.commit("large", os.urandom(1_200_000))
    world.repo(server.path / "inner").git("pull", "-q", "origin", "main")
    server.git("commit", "-q", "-a", "-m", "bump")
    _serve_slowly(world)
    assert (world.run().code, world.repo(clone.path / "inner").head) == (0, new)


# Computes for 5 s, prints nothing and reads nothing.
_COMPUTES = """\
import sys, time
while time.process_time() < 5: pass
sys.stdout.write(sys.stdin.read())
"""


@pytest.mark.nightly
def test_a_clone_whose_files_take_long_to_compute_is_not_taken_for_silent(world: World):
    inner, (server, clone) = world.server("inner"), world.pair()
    inner.commit(".gitattributes", "large filter=slow\n")
    inner.commit("large", "text\n")
    server.add_submodule(inner, "inner")
    smudge = program(world.folder / "smudge", f"exec {sys.executable} -c '{_COMPUTES}'")
    clone.git("config", "--global", "filter.slow.smudge", str(smudge))
    ran = world.run("--timeout=4")
    assert (ran.code, ran.one()["reason"]) == (0, "fast-forward to origin/main")
    assert (clone.path / "inner" / "large").read_text() == "text\n"


@pytest.mark.parametrize(
    "fault",
    [
        "git update-ref -d refs/remotes/origin/main;"
        " git update-ref refs/remotes/origin/main/below HEAD",
        "mkdir -p .git/refs/remotes/origin; touch .git/refs/remotes/origin/main.lock",
    ],
)
def test_a_fault_of_this_machine_is_no_problem_of_the_network(world: World, fault: str):
    server, clone = world.pair()
    server.commit()
    clone.shell(fault)
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "failed")
    assert "origin/main" in ran.one()["reason"]


def test_a_fetch_that_is_cut_in_the_middle_changes_nothing(world: World, web: Web):
    web.server.manners.cut = 5_000
    before = web.clone.everything()
    ran = world.run()
    assert (ran.code, ran.one()["status"], web.clone.everything()) == (3, "unreachable", before)
    # What git says about it, and not how far it had come.
    assert "cannot be fetched" in ran.one()["reason"]
    assert "fatal: " in ran.one()["reason"]
    assert "%" not in ran.one()["reason"]
    web.server.manners.cut = None
    assert world.run().code == 0
    assert web.clone.head == web.upstream.head


def test_a_fetch_that_is_cut_once_is_tried_again(world: World, web: Web):
    world.settings["retries"] = 1
    # ls-remote makes two requests, and the fetch two before the one that transfers the files.
    web.server.manners.cut, web.server.manners.wrong_requests = 5_000, 5
    assert world.run().code == 0
    assert web.clone.head == web.upstream.head


def test_the_others_are_updated_when_one_is_unreachable(world: World, web: Web):
    other_server, other = world.pair("b")
    new = other_server.commit()
    web.server.manners.status = 403
    ran = world.run()
    assert (ran.code, ran.one("a")["status"], ran.one("b")["status"]) == (
        3,
        "unreachable",
        "updated",
    )
    assert other.head == new


def test_a_default_branch_that_was_renamed_is_named_with_what_to_do(world: World, web: Web):
    world.table["a"]["branch"] = "main"
    old = web.clone.head
    web.upstream.git("branch", "-m", "trunk")
    ran = world.run()
    assert (ran.code, web.clone.head) == (1, old)
    assert ran.one()["reason"] == "origin has no branch main"
    assert ran.one()["notes"] == ["the default branch is now trunk, it was main"]
    assert any("branch -m main trunk" in command for command in ran.one()["remedy"])


def test_a_default_branch_that_is_asked_of_the_server_follows_a_rename(world: World, web: Web):
    web.upstream.git("branch", "-m", "trunk")
    old = web.clone.head
    ran = world.run()
    assert (ran.code, ran.one()["default_branch"], web.clone.head) == (1, "trunk", old)
    assert any("default branch is now trunk, it was main" in note for note in ran.one()["notes"])


def test_a_default_branch_that_was_deleted_is_named(world: World, web: Web):
    world.table["a"]["branch"] = "main"
    web.upstream.git("switch", "-q", "--detach")
    web.upstream.git("branch", "-q", "-D", "main")
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "skipped")
    assert "has no branch main" in ran.one()["reason"]


def test_a_feature_branch_that_was_deleted_upstream_stays(world: World, web: Web):
    web.upstream.git("branch", "feature", "HEAD~1")
    web.clone.git("fetch", "-q", "origin", "feature:refs/remotes/origin/feature")
    web.clone.git("switch", "-q", "--track", "origin/feature")
    web.upstream.git("branch", "-q", "-D", "feature")
    before = web.clone.head
    assert world.run().code == 0
    assert (web.clone.head, web.clone.branch) == (before, "feature")
    assert web.clone.git("rev-parse", "origin/feature") == before


_SECRET = "s3cret-Passw0rd"


def test_credentials_in_an_address_are_used_and_never_printed(world: World, web: Web):
    web.server.manners.password = _SECRET
    host = web.server.url.removeprefix("http://")
    web.clone.git("remote", "set-url", "origin", f"http://me:{_SECRET}@{host}/a/.git")
    outputs = [world.run("--plan", json=json) for json in (True, False)]
    outputs.append(world.run(json=False))
    assert web.clone.head == web.upstream.head
    web.server.manners.status = 500
    outputs += [world.run(json=json) for json in (True, False)]
    web.clone.git("remote", "set-url", "origin", f"http://me:{_SECRET}@{host}/other/.git")
    outputs += [world.run("--plan", json=json) for json in (True, False)]
    outputs += [world.run("undo", json=json) for json in (True, False)]
    assert not any(_SECRET in ran.out + ran.err for ran in outputs)


def test_credentials_of_the_users_table_are_never_printed(world: World):
    _, clone = world.pair()
    clone.git("remote", "remove", "origin")
    world.table["a"]["upstream"] = [f"https://me:{_SECRET}@example.invalid/a"]
    outputs = [world.run("--dry-run", json=json) for json in (True, False)]
    assert all("remote add upstream https://***@example.invalid/a" in ran.out for ran in outputs)
    assert not any(_SECRET in ran.out + ran.err for ran in outputs)


def test_wrong_credentials_are_refused_without_a_prompt_and_never_printed(world: World, web: Web):
    web.server.manners.password = "another"
    host = web.server.url.removeprefix("http://")
    web.clone.git("remote", "set-url", "origin", f"http://me:{_SECRET}@{host}/a/.git")
    ran = world.run(GIT_TRACE="1", GIT_CURL_VERBOSE="1", GIT_TRACE_CURL="1")
    assert (ran.code, _SECRET in ran.out + ran.err) == (3, False)
    web.clone.git("remote", "set-url", "origin", f"http://{host}/a/.git")
    assert "terminal prompts disabled" in world.run().one()["reason"]


def test_an_interrupt_ends_network_calls_and_changes_nothing(world: World, web: Web):
    # Longer than any test may take: only the interrupt can end the call.
    web.server.manners.wait = 3600
    before = web.clone.everything()
    process = subprocess.Popen(
        world.command(),
        env=world.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not web.server.requests:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert (process.returncode, web.clone.everything()) == (130, before)
    assert errors == b"stopping after the current step ...\n"


def test_a_terminal_shows_which_server_is_asked_and_what_git_says(world: World, web: Web):
    ours, theirs = os.openpty()
    done = subprocess.run(
        world.command(),
        env={**world.environ, "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=theirs,
        check=False,
    )
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert (done.returncode, web.clone.head) == (0, web.upstream.head)
    assert "\r\x1b[Kasking the server of a" in shown
    assert "fetching a" in shown
    # Nothing is left of it before the table.
    assert shown.endswith("\r\x1b[K")
    assert b"\x1b" not in done.stdout
