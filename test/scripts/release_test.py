"""Checks before a release: the same wheel without a cache, in a small copy of this tree."""

import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.ci import release_wheel
from test.build.nested import OUTPUTS, Nested
from test.build.shell import program


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nested]:
    tree = Nested(tmp_path_factory.mktemp("nested"), tmp_path_factory.mktemp("shared"))
    tree.add("scripts/bench/clones.py", "scripts/ci/release_wheel.py")
    (tree.root / ".gitignore").write_text("/bazel-*\n/build/\n/dist/\n.bazelrc.generated*\n")
    tree.run("git", "init", "--quiet")
    yield tree
    tree.close()


def test_a_wheel_without_a_cache_has_the_same_bytes(nested: Nested):
    process = nested.run(
        nested.python, "scripts/ci/release_wheel.py", "--dist-dir", "dist", check=True
    )
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
    nested.append("torch_xla_lite/BUILD.bazel", _DAY)
    nested.write("one.cc", "const char* now = __DATE__ __TIME__;\nint one() { return now[0]; }\n")
    # Repository rules run on the true day, because they compare the times of files.
    nested.configure()
    assert nested.bazel("build", "--nobuild", OUTPUTS).returncode == 0
    options = ["--disk_cache=", f"--action_env=LD_PRELOAD={_FAKETIME}"]
    options.append(f"--action_env=FAKETIME={day}")
    changes = {"TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS": " ".join(options)}
    nested.must("bdist_wheel", "-d", str(folder), **changes)
    assert nested.bazel("build", *options, "//torch_xla_lite:day").returncode == 0
    outputs = (nested.root / "bazel-bin").resolve()
    kinds = (".o", ".a", ".so", "day.txt")
    files = [file for file in outputs.rglob("*") if file.is_file() and file.name.endswith(kinds)]
    return {
        "wheel": next(folder.glob("*.whl")),
        **{str(file.relative_to(outputs)): file for file in files},
    }


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_a_wheel_that_depends_on_the_build_is_not_released(nested: Nested, tmp_path: Path):
    stamp = "-DSTAMP=$(date +%N | sed s/^0*//)"
    compiler = program(tmp_path / "gcc", f'exec {shutil.which("gcc")} "{stamp}" "$@"')
    nested.write("one.cc", "#ifndef STAMP\n#define STAMP 1\n#endif\nint one() { return STAMP; }\n")
    process = nested.run(
        nested.python,
        *("scripts/ci/release_wheel.py", "--dist-dir", tmp_path / "dist"),
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
