"""Checks before a release: hermetic actions, and the same wheel without a cache.

Both run in a small copy of this tree.
"""

import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import check_hermetic, release_wheel
from test.build.nested import OUTPUTS, Nested
from test.build.tree import ROOT

_MORE = """
genrule(
    name = "reads",
    outs = ["reads.txt"],
    cmd = "cat '%s' > $@",
)

genrule(
    name = "sends",
    outs = ["sends.txt"],
    cmd = "exec 3<>/dev/udp/127.0.0.1/9; echo > $@",
)
"""


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nested]:
    tree = Nested(tmp_path_factory.mktemp("nested"), tmp_path_factory.mktemp("shared"))
    (tree.root / "scripts").mkdir()
    for name in ("check_hermetic.py", "clones.py", "release_wheel.py"):
        shutil.copy(ROOT / "scripts" / name, tree.root / "scripts")
    (tree.root / ".gitignore").write_text("/bazel-*\n/build/\n/dist/\n.bazelrc.generated*\n")
    tree.run("git", "init", "--quiet")
    yield tree
    tree.close()


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_an_action_that_reads_the_home_folder_or_uses_the_network_is_named(nested: Nested):
    secret = Path(nested.environ()["HOME"]) / "secret"
    secret.parent.mkdir(parents=True, exist_ok=True)
    secret.write_text("not an input\n")
    file = nested.root / "torch_xla_lite" / "BUILD.bazel"
    before = file.read_text()
    file.write_text(before + _MORE % secret)
    nested.configure()
    bazel = ("--bazel", shutil.which("bazelisk") or "bazel")
    targets = [f"//torch_xla_lite:{name}" for name in ("outputs", "reads", "sends")]
    process = nested.run(nested.python, "scripts/check_hermetic.py", *bazel, *targets)
    file.write_text(before)
    if "no strategy with that identifier" in process.stderr:
        pytest.skip("sandboxes do not work on this machine")
    assert process.returncode == 1, process.stderr
    read, sent, count = process.stdout.splitlines()
    assert (read.split()[0], count) == (str(secret), "2 findings")
    assert "reads.txt" in read
    assert sent.startswith("network ")
    assert "sends.txt" in sent


_SANDBOX = "AT_FDCWD</o/sandbox/linux-sandbox/7/execroot/w>"


def test_what_bazel_itself_and_the_sandbox_do_is_no_finding():
    lines = [
        f'1<java> openat(AT_FDCWD</o>, "{Path.home()}/.bazelrc", O_RDONLY) = 3<{Path.home()}>',
        "2<linux-sandbox> socket(AF_INET, SOCK_DGRAM, IPPROTO_IP) = 3<UDP:[1]>",
        f'2<cc1plus> openat({_SANDBOX}, "a.h", O_RDONLY) = 3<{Path.home()}/a.h>',
        f'2<cc1plus> openat({_SANDBOX}, "/usr/include/stdio.h", O_RDONLY) = 3</usr>',
        "2<cc1plus> +++ exited with 0 +++",
        # A thread of Bazel that gets the number of a process that has ended, and the reverse.
        f'2<java> openat(AT_FDCWD</o>, "{Path.home()}/.bazelrc", O_RDONLY) = 3<{Path.home()}>',
        "2<java> +++ exited with 0 +++",
        f'2<cc1plus> openat({_SANDBOX}, "a.h", O_RDONLY) = 3<{Path.home()}/a.h>',
    ]
    assert list(check_hermetic.findings(lines)) == []


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (
            f'openat({_SANDBOX}, "/usr/local/include/a.h", O_RDONLY) = 3<a>',
            "/usr/local/include/a.h",
        ),
        ('execve("/usr/local/bin/as", ["as"], 0x1 /* 1 vars */) = 0', "/usr/local/bin/as"),
        ("socket(AF_INET6, SOCK_STREAM, IPPROTO_TCP) = 3<TCPv6:[1]>", "network"),
    ],
)
def test_files_programs_and_sockets_are_findings_with_the_action(call: str, what: str):
    lines = [
        '2<java> execve("/x/linux-sandbox", ["/x/linux-sandbox", "-w", '
        '"/o/sandbox/linux-sandbox/7/execroot/w", "--", "gcc", "-c", "a.cc"], 0x1) = 0',
        f'2<gcc> openat({_SANDBOX}, "a.cc", O_RDONLY) = 3<a.cc>',
        f"2<gcc> {call}",
    ]
    assert list(check_hermetic.findings(lines)) == [check_hermetic.Finding(what, "gcc -c a.cc")]


def test_a_wheel_without_a_cache_has_the_same_bytes(nested: Nested):
    process = nested.run(nested.python, "scripts/release_wheel.py", "--dist-dir", "dist")
    assert process.returncode == 0, process.stdout + process.stderr
    (wheel,) = (nested.root / "dist").glob("*.whl")
    assert process.stdout.splitlines()[-1].startswith(f"{wheel}: built without a cache; the same")


_DAY = """
genrule(
    name = "day",
    outs = ["day.txt"],
    cmd = "date > $@",
)
"""
_FAKETIME = next(iter(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), None)


def _built_on(day: str, nested: Nested, folder: Path) -> dict[str, Path]:
    """The objects, libraries and wheel of a build on another day, and the day that actions see."""
    with (nested.root / "torch_xla_lite" / "BUILD.bazel").open("a") as file:
        file.write(_DAY)
    nested.write("one.cc", "const char* now = __DATE__ __TIME__;\nint one() { return now[0]; }\n")
    # Repository rules run on the true day, because they compare the times of files.
    nested.configure()
    assert nested.bazel("build", "--nobuild", OUTPUTS).returncode == 0
    options = ["--disk_cache=", f"--action_env=LD_PRELOAD={_FAKETIME}"]
    options.append(f"--action_env=FAKETIME={day}")
    changes = {"TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS": " ".join(options)}
    process = nested.setup("bdist_wheel", "-d", str(folder), **changes)
    assert process.returncode == 0, process.stdout + process.stderr
    assert nested.bazel("build", *options, "//torch_xla_lite:day").returncode == 0
    outputs = (nested.root / "bazel-bin").resolve()
    kinds = (".o", ".a", ".so", "day.txt")
    files = [file for file in outputs.rglob("*") if file.is_file() and file.name.endswith(kinds)]
    return {
        "wheel": next(folder.glob("*.whl")),
        **{str(file.relative_to(outputs)): file for file in files},
    }


@pytest.mark.skipif(_FAKETIME is None, reason="libfaketime is not installed")
def test_a_clone_on_another_day_builds_the_same_bytes(tmp_path: Path):
    clones = [Nested(tmp_path / name, tmp_path / f"shared_{name}") for name in ("one", "two")]
    built = []
    try:
        for clone, day in zip(clones, ("+0", "+400d"), strict=True):
            built.append(_built_on(day, clone, tmp_path / day))
    finally:
        for clone in clones:
            clone.close()
    today, later = built
    day = "torch_xla_lite/day.txt"
    # The actions saw another year, or the test would prove nothing.
    assert today.pop(day).read_text().split()[-1] != later.pop(day).read_text().split()[-1]
    assert today.keys() == later.keys()
    assert {Path(name).suffix for name in today} >= {".o", ".so", ""}
    for name, file in today.items():
        same = file.read_bytes() == later[name].read_bytes()
        assert same, f"{name}\n{release_wheel.diffoscope(file, later[name])}"


def test_a_wheel_that_depends_on_the_build_is_not_released(nested: Nested, tmp_path: Path):
    compiler = tmp_path / "gcc"
    stamp = "-DSTAMP=$(date +%N | sed s/^0*//)"
    compiler.write_text(f'#!/bin/sh\nexec {shutil.which("gcc")} "{stamp}" "$@"\n')
    compiler.chmod(0o755)
    nested.write("one.cc", "#ifndef STAMP\n#define STAMP 1\n#endif\nint one() { return STAMP; }\n")
    process = nested.run(
        nested.python,
        *("scripts/release_wheel.py", "--dist-dir", tmp_path / "dist"),
        CC=str(compiler),
    )
    assert process.returncode == 1, process.stdout + process.stderr
    assert "  torch_xla_lite/lib/libtorch_xla_lite.so\n" in process.stdout
    assert not (tmp_path / "dist").exists()
    if shutil.which("diffoscope") is None:
        pytest.skip("diffoscope is not installed")
    assert "objdump" in process.stdout or "readelf" in process.stdout


def test_archives_with_equal_files_can_differ(tmp_path: Path):
    for name, order in (("a", "xy"), ("b", "yx")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member in order:
                archive.writestr(member, "same")
    assert len(release_wheel.differences(tmp_path / "a", tmp_path / "b")) == 1
    assert release_wheel.differences(tmp_path / "a", tmp_path / "a") == []
