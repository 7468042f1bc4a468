"""What is wrong around a repository stops that repository at most, and is reported clearly."""

import fcntl
import json
import os
import pty
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from test.scripts.repos.nests import Nest
from test.scripts.repos.world import TOOL, Ran, World, needs_rights


@needs_rights
def test_a_neighbour_that_may_not_be_read_is_ignored(world: World):
    server = world.server("a")
    clone = world.unconfigured("my-own-name")
    for name in ("lost+found", "usual"):
        (world.folder / "src" / name).mkdir(mode=0)
    new = server.commit()
    ran = world.run(as_a_user=True)
    assert (ran.code, ran.err, clone.head) == (0, "", new)


@pytest.mark.parametrize(
    "content", ["\0" * 60, "junk\xff", "gitdir: "], ids=["zeros", "junk", "nothing"]
)
@pytest.mark.parametrize("words", [["status"], ["--dry-run"], ["undo", "--list"]], ids=str)
def test_a_neighbour_with_a_damaged_git_file_is_ignored(world: World, words: list[str], content):
    world.unconfigured("my-own-name")
    for name in ("neighbour", "usual"):
        (world.folder / "src" / name).mkdir()
        (world.folder / "src" / name / ".git").write_text(content)
    done = world.run(*words)
    assert (done.code, done.err) == (0, "")


_DAMAGES: tuple[str | dict[str, object], ...] = (
    *("", "{", "[]", "{}", '{"schema": "x"}', "\0\xff"),
    # Values of a wrong kind.
    *({"peers": peers} for peers in (None, [1], "abc", [["a", 5]], [["a"]])),
    *({"command": 5}, {"command": None}, {"undone": 5}, {"state": []}, {"changes": {}}),
    {"changes": [{"kind": "ref"}]},
    {"changes": [{"kind": "ref", "ref": 3, "old": None, "new": ""}]},
    {"changes": [{"kind": "ref", "ref": "refs/heads/main", "old": 5, "new": ""}]},
)


def test_damaged_records_are_named_and_the_others_are_undone(world: World):
    pairs = {f"a{number}": world.pair(f"a{number}") for number in range(len(_DAMAGES))}
    server, sound = world.pair("sound")
    old = sound.head
    for changed in (*(server for server, _ in pairs.values()), server):
        changed.commit()
    run = world.run().json["run"]
    for damage, (_, clone) in zip(_DAMAGES, pairs.values(), strict=True):
        record = clone.path / ".git/update-repos" / f"{run}.json"
        if isinstance(damage, dict):
            damage = json.dumps({**json.loads(record.read_text()), **damage})
        record.write_text(damage)
        record.with_name("state.json").write_text(damage)
    assert {r["state"] for r in world.run("undo", "--list").json["runs"]} == {"damaged", "update"}
    ran = world.run("undo")
    assert (ran.code, sound.head) == (1, old)
    for name, damage in zip(pairs, _DAMAGES, strict=True):
        one = ran.one(name)
        said = one["status"], "is damaged" in one["reason"], one["branch"]
        assert said == ("skipped", True, "main"), damage
    new = {name: server.commit() for name, (server, _) in pairs.items()}
    assert world.run(*pairs).code == 0
    assert {name: clone.head for name, (_, clone) in pairs.items()} == new


def test_the_standard_library_is_enough_and_the_file_can_be_executed(world: World):
    server, clone = world.pair()
    new = server.commit()
    words = world.command()
    without_packages = [sys.executable, "-I", "-S", *words[1:]]
    done = subprocess.run(without_packages, env=world.environ, capture_output=True, check=False)
    assert (done.returncode, done.stderr, clone.head) == (0, b"", new)
    assert os.access(TOOL, os.X_OK)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_the_output_may_have_any_encoding(world: World, encoding: str):
    server, clone = world.pair()
    new = server.commit()
    ran = world.run(json=False, PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert (ran.code, ran.err, clone.head) == (0, "", new)


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_a_full_disk_behind_the_output_stops_no_update_and_is_reported(
    world: World, json: list[str]
):
    server, clone = world.pair()
    new = server.commit()
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            world.command(*json), env=world.environ, stdout=full, stderr=-1, text=True, check=False
        )
    assert (done.returncode, clone.head) == (1, new)
    assert done.stderr.startswith("error: the output is not whole: ")
    assert "Traceback" not in done.stderr


def test_a_closed_output_stops_no_update(world: World):
    server, clone = world.pair()
    new = server.commit()
    words = ["sh", "-c", 'exec "$@" >&-', "sh", *world.command()]
    done = subprocess.run(words, env=world.environ, capture_output=True, text=True, check=False)
    assert (clone.head, "Traceback" in done.stderr) == (new, False)


@pytest.mark.parametrize("columns", [20, 50, 80, 200])
def test_a_terminal_of_any_width_shows_what_was_done(world: World, columns: int):
    server, clone = world.pair("a-repository-with-a-long-name")
    server.commit("README", "theirs\n")
    clone.write("README", "mine\n")
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environ = {**world.environ, "TERM": "xterm"}
    subprocess.run(world.command(), env=environ, stdout=slave, stderr=slave, check=False)
    os.close(slave)
    output = b""
    while data := _read(master):
        output += data
    assert b"skipped:" in output
    assert b"README" in output


def _read(master: int) -> bytes:
    """What is left to read of a terminal whose other end is closed."""
    try:
        return os.read(master, 65536)
    except OSError:
        return b""


# No file that git checks out can be longer than so many blocks of 512 bytes.
_SMALL_DISK = """\
case " $* " in *" merge "*|*" checkout "*) trap '' XFSZ; ulimit -f 64;; esac
"""


@pytest.mark.parametrize("attributes", ["of the old commit", "of the new one"])
def test_files_that_git_wrote_half_before_the_disk_was_full_are_removed(
    world: World, attributes: str
):
    server = world.server("a")
    if attributes == "of the old commit":
        server.commit(".gitattributes", "large text eol=crlf\n")
    server.commit("large", "old\n")
    server.commit("z", "old\n")
    clone = world.clone(server, "a")
    if attributes == "of the new one":
        server.commit(".gitattributes", "large text eol=crlf\n")
    server.commit("added", "x" * 100_000)
    server.commit("large", "y\n" * 50_000)
    assert world.run("--plan").code == 0
    before = clone.everything()
    ran = world.run(**world.wrapped_git(_SMALL_DISK))
    assert (ran.code, ran.one()["status"]) == (1, "failed")
    assert clone.everything() == before
    assert world.run().code == 0


def test_a_damaged_index_is_named_with_the_commands_that_make_a_new_one(world: World):
    server, clone = world.pair()
    new = server.commit()
    clone.write(".git/index", b"DIRC no index\n")
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "skipped")
    assert "the index is damaged" in ran.one()["reason"]
    assert ran.one()["branch"] == "main"
    subprocess.run(ran.one()["remedy"][0], shell=True, env=world.environ, check=True)
    assert (world.run().code, clone.head) == (0, new)


def test_own_commits_of_a_detached_head_are_counted_before_a_switch_is_advised(world: World):
    server, clone = world.pair()
    clone.git("switch", "-q", "--detach")
    server.commit()
    assert any(" switch main" in command for command in world.run().one()["remedy"])
    clone.commit("one")
    mine = clone.commit("two")
    ran = world.run()
    one = ran.one()
    assert (ran.code, clone.head, clone.branch) == (1, mine, "HEAD")
    assert "2 commits of it on no branch" in one["reason"]
    assert one["remedy"] == [f"git -C {clone.path} switch -c my-work"]


def test_a_repository_inside_another_is_not_its_local_work_also_when_one_is_named(world: World):
    server, outer = world.pair("outer")
    inner_server = world.server("inner")
    inner = world.clone(inner_server, "outer/inner")
    world.table["inner"] = world.table.pop("outer/inner")
    new, of_inner = server.commit(), inner_server.commit()
    ran = world.run("outer")
    assert (ran.code, outer.head, ran.one("outer")["local"]["untracked"]) == (0, new, 0)
    new = server.commit()
    assert (world.run().code, outer.head, inner.head) == (0, new, of_inner)


def test_a_dry_run_needs_no_server_and_says_so(world: World):
    server, clone = world.pair()
    with server.gone():
        assert world.run("--dry-run").one()["status"] == "current"
        out = world.run("--dry-run", json=False).out
    assert ("no server was asked" in out, "All is current" in out) == (True, False)
    assert clone.git("rev-parse", "origin/main") == clone.head


def test_a_checkout_at_the_usual_place_with_another_remote_is_named(world: World):
    clone = world.unconfigured("my-own-name")
    usual = world.init(world.folder / "src" / "usual")
    one = world.run().one()
    assert one["path"] == str(clone.path)
    assert any(str(usual.path) in note and "no remote of it" in note for note in one["notes"])
    assert f"a: {usual.path} is at a usual place too" in world.run("status", json=False).out


@pytest.mark.parametrize("others", [0, 2])
def test_a_rebase_of_a_run_that_was_killed_is_removed_and_no_worktree_of_the_user(
    world: World, others: int
):
    server, clone = world.pair()
    clone.commit_on_feature()
    server.commit()
    for number in range(others):
        clone.git("worktree", "add", "-q", "--detach", f"../my-tree{number}")
        shutil.rmtree(clone.path.parent / f"my-tree{number}")
    name = "update-repos-tree"
    clone.git("worktree", "add", "-q", "--detach", f".git/update-repos/{name}")
    assert world.run("--rebase").code == 0
    trees = clone.git("worktree", "list", "--porcelain")
    assert (name in trees, trees.count("my-tree")) == (False, others)


def test_a_fault_of_our_own_ends_one_repository_and_not_the_run(world: World):
    world.pair("a")
    world.pair("b")
    copy = world.folder / "copy"
    shutil.copytree(TOOL.parent, copy / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    with (copy / "scripts" / "repos" / "plan.py").open("a") as plan:
        plan.write("\n\ndef make(repo, options):\n    return [][repo.name]\n")
    words = [w if w != str(TOOL) else str(copy / "scripts" / TOOL.name) for w in world.command()]
    done = subprocess.run(words, env=world.environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.count("internal error, TypeError") >= 2


# Runs a command where a folder is on a disk of 8 MB of which the given bytes are free.
_FULL_DISK = """\
set -e
folder=$1 free=$2; shift 2
cp -a "$folder" "$folder.copy"
mount -t tmpfs -o size=8m none "$folder"
cp -a "$folder.copy/." "$folder"
head -c "$free" /dev/zero > "$folder/.git/reserve"
cat /dev/zero > "$folder/.git/fill" 2>/dev/null || true
rm "$folder/.git/reserve"
set +e
"$@"
code=$?
git -C "$folder" rev-parse HEAD > "$folder.copy/head"
exit $code
"""


def _can_mount() -> bool:
    words = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    tried = shutil.which("unshare") and subprocess.run(words, capture_output=True, check=False)
    return bool(tried) and tried.returncode == 0


@pytest.mark.skipif(not _can_mount(), reason="no file system can be mounted here")
@pytest.mark.parametrize("free", [0, 100_000, 3_500_000], ids=["", "fetch", "checkout"])
def test_a_full_disk_is_named_and_is_no_problem_of_the_network(world: World, free: int):
    server, clone = world.pair()
    old = clone.head
    server.commit("large", os.urandom(2_000_000))
    words = ["unshare", "--mount", "sh", "-c", _FULL_DISK, "sh", str(clone.path), str(free)]
    done = subprocess.run(
        [*words, *world.command("--json")], env=world.environ, capture_output=True, check=False
    )
    one = Ran(done.returncode, done.stdout.decode(), done.stderr.decode()).one()
    assert (done.returncode, one["status"]) == (1, "failed")
    assert one["reason"].startswith("the disk is full; ")
    assert one["remedy"] == [f"df -h {clone.path}"]
    assert (Path(f"{clone.path}.copy") / "head").read_text().strip() == old


def test_an_interrupt_while_modules_are_imported_is_no_traceback(world: World):
    copy = world.folder / "copy"
    shutil.copytree(TOOL.parent, copy / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    git = copy / "scripts" / "repos" / "git.py"
    git.write_text(f"import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n{git.read_text()}")
    words = [sys.executable, str(copy / "scripts" / TOOL.name)]
    done = subprocess.run(words, env=world.environ, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_names_of_files_break_no_row_of_the_table(world: World):
    server, clone = world.pair()
    name = "two\nlines\x1b[31m\x85\u2028"
    server.commit(name, "theirs\n")
    clone.write(name, "mine\n")
    out = world.run(json=False).out
    named = "two\\nlines\\x1b[31m\\x85\\u2028"
    assert f"skipped: in the way: {named}\n" in out
    assert f"a: files: {named}\n" in out
    assert all(
        line.startswith(("Result", "repository", "a", "Plan", "  "))
        for line in out.split("\n")[:-1]
    )


def test_a_link_in_the_place_of_a_submodule_is_named(world: World, nest: Nest):
    nest.clone.shell("mv middle aside; ln -s aside middle")
    nest.top.commit()
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "skipped")
    assert "submodule path 'middle' not to be a symbolic link" in ran.one()["reason"]


@needs_rights
def test_a_folder_of_settings_that_may_not_be_read_is_ignored(world: World):
    words = world.command("status", as_a_user=True)
    (world.home / ".config").chmod(0)
    done = subprocess.run(words, env=world.environ, capture_output=True, text=True, check=False)
    (world.home / ".config").chmod(0o755)
    assert (done.returncode, done.stderr) == (0, "")
