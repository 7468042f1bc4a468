"""The command line torch-xla-lite, with working and with broken copies of the package."""

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path

import jax
import pytest

from bazel.pybuild.cache import folders
from test.python import programs
from test.python.copies import PACKAGE, change, copy_of_the_package, edit_a_source
from torch_xla_lite import commands
from torch_xla_lite.commands import cache, doctor, env
from torch_xla_lite.commands.finding import MARK, Finding
from torch_xla_lite.startup import caches


def run(
    *arguments: str, folder: Path = PACKAGE.parent, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command of the package in `folder`; the exit code is not checked."""
    # The tests themselves may run with a cache of jax.
    variables = {"JAX_COMPILATION_CACHE_DIR": "", "PYTHONPATH": str(folder), **environ}
    return programs.call(sys.executable, "-P", "-m", "torch_xla_lite", *arguments, **variables)


def test_the_doctor_reports_another_torch_and_the_remedy(tmp_path: Path):
    change(copy_of_the_package(tmp_path, checkout=False), "TORCH_VERSION", "2.12.1")
    result = run("doctor", folder=tmp_path)
    assert result.returncode == 1
    last = result.stdout.splitlines()[-2:]
    assert last[0].startswith("bad  torch: torch_xla_lite was built for torch 2.12.1 but")
    assert "Install a wheel that was built for this torch" in last[1]


def test_the_doctor_prints_the_folder_of_the_installation(tmp_path: Path):
    change(copy_of_the_package(tmp_path), "TORCH_VERSION", "2.12.1")
    first = run("doctor", folder=tmp_path).stdout.splitlines()[0]
    assert first.startswith("ok   build: torch_xla_lite ")
    assert first.endswith(f", in {tmp_path / 'torch_xla_lite'}")


@pytest.mark.nightly
def test_the_doctor_reports_a_misspelt_variable_and_continues():
    result = run("doctor", "--json", TORCH_XLA_LITE_IRDEBUG="1")
    assert result.returncode == 1
    found = json.loads(result.stdout)
    (problem,) = [check for check in found["checks"] if not check["ok"]]
    assert problem["detail"].startswith("TORCH_XLA_LITE_IRDEBUG is set")
    assert problem["remedy"] == "Remove it:  unset TORCH_XLA_LITE_IRDEBUG"
    names = [check["name"] for check in found["checks"]]
    # In a checkout, the checks of builds come first.
    names = names[names.index("build") :]
    assert names[:4] == ["build", "variables", "Python", "torch"]
    assert names[-5:] == ["compiled parts", "graph", "device", "TPU", "CUDA"]


def test_the_doctor_knows_a_tpu_that_jax_does_not_use(monkeypatch: pytest.MonkeyPatch):
    assert doctor.tpus() == ("there is none", True, "")
    found = "jax._src.hardware_utils.num_available_tpu_chips_and_device_id"
    monkeypatch.setattr(found, lambda: (4, "v5e"))
    detail, is_fine, remedy = doctor.tpus()
    assert (detail, is_fine) == ("jax uses 0 of 4 chips", False)
    assert remedy.endswith(f"pip install 'jax[tpu]=={jax.__version__}'")


def test_in_a_checkout_the_doctor_begins_with_what_builds_need(tmp_path: Path):
    change(copy_of_the_package(tmp_path), "TORCH_VERSION", "2.12.1")
    checks = tmp_path / "bazel" / "pybuild" / "commands" / "doctor.py"
    checks.parent.mkdir(parents=True)
    # What other code prints, such as a sitecustomize, is no finding.
    checks.write_text(
        "import json\n"
        "print('[1, 2]')\n"
        f"print({MARK!r} + json.dumps(['linker', True, 'slow', 'Install gold']))\n"
        f"print({MARK!r} + json.dumps(['disk space', False, 'none', '']))\n"
    )
    assert run("doctor", folder=tmp_path).stdout.startswith(
        "warn linker: slow\n     Install gold\nbad  disk space: none\nok   build: "
    )


@pytest.mark.nightly
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_the_command_line_works_without_standard_streams(closed: str):
    # As cron and supervisors may start it.
    command = ["sh", "-c", f'"$@" {closed}', "sh", sys.executable, "-P", "-m", "torch_xla_lite"]
    environ = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    process = subprocess.run([*command, "doctor"], env=environ, capture_output=True, check=False)
    assert (process.returncode, process.stderr) == (0, b"")


def test_the_doctor_names_a_source_that_is_newer_than_the_libraries(tmp_path: Path):
    edit_a_source(copy_of_the_package(tmp_path))
    assert (
        "warn sources: the libraries are older than torch_xla_lite/csrc/some.cc; build them\n"
        "     Build them:  python setup.py develop\n"
    ) in run("doctor", folder=tmp_path).stdout


def described(folder: Path, name: str, *requires: str) -> None:
    """Writes metadata of an installed distribution into `folder`."""
    info = folder / f"{name}-0.1.0.dist-info"
    info.mkdir()
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 0.1.0"]
    lines += [f"Requires-Dist: {required}" for required in requires]
    (info / "METADATA").write_text("\n".join(lines) + "\n")


# The installed wheels, with what each requires; what the doctor says of them.
WHEELS = {
    "two halves": ({"python": ["torch_xla_lite_lib==0.1.0"], "lib": []}, True, ""),
    "all over one half": ({"": [], "lib": []}, False, " uninstall torch_xla_lite_lib"),
    "all over both halves": (
        {"": [], "lib": [], "python": []},
        False,
        " uninstall torch_xla_lite_lib torch_xla_lite_python",
    ),
    "code without libraries": (
        {"python": ["torch_xla_lite_lib==0.1.0"]},
        False,
        " install --no-deps 'torch_xla_lite_lib==0.1.0'",
    ),
    "other libraries": (
        {"python": ["torch_xla_lite_lib==0.2.0"], "lib": []},
        False,
        "requires torch_xla_lite_lib==0.2.0, but torch_xla_lite_lib 0.1.0 is installed",
    ),
}


@pytest.mark.parametrize("kind", WHEELS)
def test_the_doctor_knows_wheels_that_do_not_fit_together(kind: str, tmp_path: Path):
    copy_of_the_package(tmp_path, checkout=False)
    wheels, is_fine, text = WHEELS[kind]
    for half, requires in wheels.items():
        described(tmp_path, f"torch_xla_lite_{half}".rstrip("_"), *requires)
    # The checks after this one take seconds; a broken torch skips them.
    (tmp_path / "torch.py").write_text("raise OSError\n")
    result = run("doctor", "--json", folder=tmp_path)
    assert result.returncode == 1
    (check,) = [row for row in json.loads(result.stdout)["checks"] if row["name"] == "wheels"]
    assert check["ok"] == is_fine
    assert text in check["detail"] + check["remedy"]


def test_the_doctor_reports_a_torch_that_does_not_load(tmp_path: Path):
    copy_of_the_package(tmp_path)
    (tmp_path / "torch.py").write_text("raise OSError('libfoo.so is missing')\n")
    lines = run("doctor", folder=tmp_path).stdout.splitlines()
    place = lines.index("bad  import torch: OSError: libfoo.so is missing")
    assert lines[place + 1].startswith("     Reinstall it:  python -m pip install ")


def test_the_doctor_does_not_use_assertions():
    # PYTHONOPTIMIZE removes them. Running with it would compile all of torch and jax again.
    assert "assert" not in doctor._PROBE


def test_a_closed_pipe_ends_a_command_silently():
    command = f"{shlex.quote(sys.executable)} -m torch_xla_lite env | true; exit ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert (result.returncode, result.stderr) == (141, b"")


def test_the_doctor_reports_that_nothing_was_built(tmp_path: Path):
    (copy_of_the_package(tmp_path) / "_build_info.py").unlink()
    result = run("doctor", folder=tmp_path)
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1].endswith("Build it:  python setup.py develop")


@pytest.mark.nightly
def test_the_doctor_reports_a_library_that_does_not_load(tmp_path: Path):
    module = copy_of_the_package(tmp_path, skip="_XLAC") / "_XLAC.so"
    module.write_text("not a library")
    result = run("doctor", folder=tmp_path)
    assert result.returncode == 1
    assert "ok   C++ ABI" in result.stdout
    assert "bad  compiled parts: ImportError: torch_xla_lite's compiled" in result.stdout
    assert "     Build it again:  python setup.py develop" in result.stdout


@pytest.mark.nightly
def test_the_doctor_survives_a_library_that_aborts_the_process(tmp_path: Path):
    module = copy_of_the_package(tmp_path, skip="_XLAC") / "_XLAC.so"
    source = tmp_path / "abort.c"
    source.write_text("#include <stdlib.h>\nint PyInit__XLAC(void) { abort(); }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", module], check=True)
    result = run("doctor", folder=tmp_path)
    assert result.returncode == 1
    assert "bad  compiled parts: The process ended with code -6." in result.stdout


def test_env_shows_versions_and_the_build():
    found = json.loads(run("env", "--json").stdout)
    assert found["packages"]["torch"].startswith(found["built with"]["torch_version"])
    assert found["system"]["Python"].startswith(sys.version.split()[0])


def test_env_works_where_nothing_was_built(tmp_path: Path):
    (copy_of_the_package(tmp_path) / "_build_info.py").unlink()
    result = run("env", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "state: not built" in result.stdout


def test_env_shows_no_secrets_no_host_and_no_home():
    environ = {
        "HOME": "/home/ada",
        "HOSTNAME": "secret-host",
        "HTTPS_PROXY": "secret-proxy",
        "TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS": "--remote_header=secret-password",
        "XLA_FLAGS": "--xla_dump_to=/home/ada/dump",
    }
    report = env.report(environ)
    assert report["variables"] == {
        "TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS": "(set)",
        "XLA_FLAGS": "--xla_dump_to=~/dump",
    }
    text = json.dumps(report)
    assert "secret" not in text
    assert socket.gethostname() not in text


def test_cache_shows_sizes_and_ages_and_removes_nothing_by_default(tmp_path: Path):
    ours, programs = (tmp_path / "torch_xla_lite" / name for name in ("bazel", "programs"))
    ours.mkdir(parents=True)
    (ours / "blob").write_bytes(b"x" * 1_500_000)
    of_ours = ["results of builds: 1 file, 1.5 MB, used seconds ago", f"  {ours}"]
    result = run("cache", XDG_CACHE_HOME=str(tmp_path))
    assert result.stdout.splitlines() == [*of_ours, "compiled programs: empty", f"  {programs}"]
    programs.mkdir()
    for name, size, age in (("a", 1_000, 90), ("b", 2_500, 7_300), ("c", 999, 200_000)):
        (programs / name).write_bytes(bytes(size))
        os.utime(programs / name, (time.time() - age,) * 2)
    result = run("cache", XDG_CACHE_HOME=str(tmp_path))
    assert result.stdout.splitlines() == [
        *of_ours,
        "compiled programs: 3 programs, 4.5 kB of 2.1 GB, used 1 minute to 2 days ago",
        f"  {programs}",
    ]
    assert (ours / "blob").exists()


def test_clearing_removes_only_the_folder_of_this_project(tmp_path: Path):
    ours, others = tmp_path / "torch_xla_lite" / "bazel", tmp_path / "others"
    compiled = tmp_path / "jax"
    for folder in (ours, others, compiled):
        folder.mkdir(parents=True)
        (folder / "file").write_text("")
    variables = {"XDG_CACHE_HOME": str(tmp_path), "JAX_COMPILATION_CACHE_DIR": str(compiled)}
    result = run("cache", "--clear", **variables)
    assert result.returncode == 0
    assert not ours.exists()
    assert (others / "file").exists()
    assert (compiled / "file").exists()
    assert f"jax's compiled programs: 1 file, 0 bytes, used seconds ago\n  {compiled}\n" in (
        result.stdout
    )


def test_clearing_a_link_does_not_remove_its_target(tmp_path: Path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "file").write_text("")
    (tmp_path / "bazel").symlink_to(tmp_path / "disk")
    assert cache.remove(tmp_path / "bazel")
    assert not (tmp_path / "bazel").exists()
    assert (tmp_path / "disk" / "file").exists()


@pytest.mark.parametrize("environ", [{}, {"XDG_CACHE_HOME": "/x"}, {"XDG_CACHE_HOME": "x"}])
def test_the_cache_is_the_folder_that_the_build_uses(environ: dict[str, str]):
    assert caches.home(environ) == folders.home(environ)


def test_a_command_with_a_closed_output_ends_silently():
    command = f"{shlex.quote(sys.executable)} -m torch_xla_lite cache >&-"
    result = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert (result.returncode, result.stderr) == (0, b"")


def test_a_cache_that_cannot_be_removed_is_an_error_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    # Not tested with permissions, which do not restrict root.
    def refuse(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr("shutil.rmtree", refuse)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "torch_xla_lite" / "bazel").mkdir(parents=True)
    assert cache.main(clear=True) == 1
    assert f"Permission denied: '{tmp_path}" in capsys.readouterr().err


def test_without_a_home_folder_the_caches_are_unknown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    # As for a user without an entry in the password database.
    monkeypatch.setattr("os.path.expanduser", str)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache.main(clear=False) == 1
    assert capsys.readouterr().err.splitlines()[-1].endswith("export XDG_CACHE_HOME=...")


def test_without_a_command_the_commands_are_listed():
    result = run()
    assert result.returncode == 0
    listed = re.findall(r"^    (\w+) ", result.stdout, re.MULTILINE)
    assert listed == ["doctor", "env", "cache"]


@pytest.mark.parametrize("arguments", [["mend"], ["doctor", "--clear"]])
def test_the_error_of_a_wrong_argument_lists_the_accepted_ones(arguments: list[str]):
    result = run(*arguments)
    assert result.returncode == 2
    assert "usage: torch-xla-lite" in result.stderr


@pytest.mark.parametrize(
    ("argv", "whole", "called"),
    [
        (["/venv/bin/torch-xla-lite", "env"], ["python", "/venv/bin/torch-xla-lite", "env"], True),
        (["-m", "env"], ["python", "-P", "-m", "torch_xla_lite", "env"], True),
        (["-m"], ["python", "-m", "torch_xla_lite"], True),
        (["-m", "env"], ["python", "-mtorch_xla_lite", "env"], True),
        (["-m"], ["python", "-m", "torch_xla_lite.examples.digits"], False),
        (["-m", "torch_xla_lite"], ["python", "-m", "timeit", "torch_xla_lite"], False),
        (["train.py", "torch-xla-lite"], ["python", "train.py", "torch-xla-lite"], False),
        ([""], ["python"], False),
        ([], [], False),
    ],
)
def test_only_its_own_processes_are_the_command_line(argv, whole, called):
    assert commands.called(argv, whole) is called


def test_a_finding_fits_the_terminal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    finding = Finding("editable install", True, "the package is imported from " + "a folder " * 9)
    lines = doctor._line(finding).splitlines()
    assert len(lines) == 2
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("ok   editable install: ")
