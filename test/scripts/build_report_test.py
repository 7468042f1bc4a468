"""Where the time of a build went: a real build of a small tree, and the page in a real browser."""

import collections
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.bench import build_report
from test.build.nested import Nested

_ONE = '#include <vector>\n#include "c10/core/Device.h"\nint one() { return 1; }\n'

# Little text, and much code.
_LOOPS = "".join(
    f"void loop{i}(float* a, int n) {{ for (int i = 0; i < n; ++i) a[i] += a[n] * {i}; }}\n"
    for i in range(200)
)

_REPORT = build_report.Report(
    actions=[
        build_report.Action("CppCompile", "a.cc", 0, 60),
        build_report.Action("CppCompile", "b.cc", 0, 40),
        build_report.Action("CppLink", "c.so", 60, 10),
    ],
    files={
        "a.cc": {"C++ library": 40.0, "torch core": 20.0},
        "b.cc": {build_report.OWN: 30.0, "C++ library": 10.0},
    },
    includes={"external/torch/include/ATen/a.h": (20.0, 1)},
)


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nested]:
    """A tree in which everything was compiled."""
    tree = Nested(tmp_path_factory.mktemp("nested"), tmp_path_factory.mktemp("shared"))
    tree.add("scripts/bench/build_report.py")
    build_file = tree.root / "torch_xla_lite/BUILD.bazel"
    with_torch = '    srcs = ["loops.cc", "one.cc"],\n    deps = ["@torch//:c10"],\n'
    build_file.write_text(build_file.read_text().replace('    srcs = ["one.cc"],\n', with_torch))
    tree.write("one.cc", _ONE)
    tree.write("loops.cc", _LOOPS)
    tree.build("--disk_cache=")
    yield tree
    tree.close()


@pytest.fixture(scope="module")
def report(nested: Nested) -> build_report.Report:
    return build_report.analyse(nested.root)


@pytest.fixture(scope="module")
def page(report: build_report.Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(build_report.page(report))
    return file


@pytest.mark.nightly
def test_every_compiled_file_has_its_seconds(report: build_report.Report):
    compiled = {a.name: a.seconds for a in report.actions if a.mnemonic == "CppCompile"}
    assert "torch_xla_lite/one.cc" in compiled
    assert report.seconds() == pytest.approx(compiled)


@pytest.mark.nightly
def test_the_seconds_of_a_file_are_divided_among_the_layers_of_its_headers(
    report: build_report.Report,
):
    shares = report.files["torch_xla_lite/one.cc"]
    assert {"torch c10", "C++ library", "C library", build_report.OWN} <= shares.keys()
    assert shares["C++ library"] > shares["torch c10"] > shares[build_report.OWN] > 0
    # Without includes.
    expected = {build_report.OWN, build_report.CODE, "C library"}
    assert report.files["torch_xla_lite/two.cc"].keys() == expected


@pytest.mark.nightly
def test_headers_do_not_have_the_seconds_of_code_generation(report: build_report.Report):
    loops = report.files["torch_xla_lite/loops.cc"]
    assert loops[build_report.CODE] > 0.5 * sum(loops.values())
    headers = report.files["torch_xla_lite/one.cc"]
    assert headers[build_report.CODE] < 0.5 * sum(headers.values())


@pytest.mark.nightly
def test_an_include_has_the_seconds_of_all_that_it_includes(report: build_report.Report):
    includes = {build_report._short(name): value for name, value in report.includes.items()}
    assert includes.keys() == {"vector", "c10/core/Device.h"}
    seconds, files = includes["vector"]
    assert files == 1
    assert 0 < seconds < report.seconds()["torch_xla_lite/one.cc"]


def test_text_belongs_to_the_file_in_which_it_is():
    output = (
        b'# 1 "a.cc"\n1234\n# 1 "/usr/include/c++/12/b" 1 3\n12\n'
        b'# 1 "/usr/include/c.h" 1 3 4\n1\n# 9 "/usr/include/c++/12/b" 2 3\n\n# 2 "a.cc" 2\n12345\n'
    )
    text = build_report._text(output)
    assert {name: size for name, size in text.of.items() if size} == {
        "a.cc": 11,
        "/usr/include/c++/12/b": 4,
        "/usr/include/c.h": 2,
    }
    assert text.below == {"/usr/include/c++/12/b": 6}


def test_the_areas_of_the_treemap_are_proportional_and_fill_it():
    sizes = {"a": 50.0, "b": 20.0, "c": 20.0, "d": 9.0, "e": 1.0}
    box = build_report.Box(0, 0, 200, 100)
    boxes = dict(build_report.treemap({**sizes, "nothing": 0.0, "nor this": 0.0}, box))
    areas = {name: box.width * box.height / 200 for name, box in boxes.items()}
    assert areas == pytest.approx(sizes)


def _script(tree: Nested, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return tree.run(tree.python, "-m", "scripts.bench.build_report", *arguments)


@pytest.mark.nightly
def test_the_script_prints_three_tables_and_writes_the_page(nested: Nested, tmp_path: Path):
    process = _script(nested, "--html", str(tmp_path / "page.html"))
    assert process.returncode == 0, process.stderr
    tables = process.stdout.split("\n\n")
    assert [table.split("\n")[0] for table in tables[1:4]] == [
        "seconds  file",
        "seconds  share  layer",
        "seconds  files  include",
    ]
    assert re.search(r"^ +\d+\.\d  torch_xla_lite/one.cc$", tables[1], re.MULTILINE)
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


@pytest.mark.nightly
def test_a_build_that_compiled_nothing_has_no_report(nested: Nested, tmp_path: Path):
    logs = nested.root / "build"
    kept = shutil.copytree(logs, tmp_path / "kept")
    nested.build()
    process = _script(nested)
    shutil.copytree(kept, logs, dirs_exist_ok=True)
    assert process.returncode == 1
    assert "Compile all:  python setup.py rebuild" in process.stderr


@pytest.mark.nightly
def test_a_source_that_does_not_compile_any_more_is_an_error(nested: Nested):
    nested.write("two.cc", "no C++\n")
    process = _script(nested)
    assert process.returncode == 1
    assert "error: A file does not compile as in the last build:\ntorch_xla" in process.stderr


@pytest.mark.nightly
def test_the_page_needs_no_other_file(page: Path):
    assert not re.search(r"https?:|src=|url\(|@import|<link", page.read_text())


@pytest.mark.nightly
def test_a_browser_shows_the_treemap_and_the_timeline_in_their_colours_and_sizes(tmp_path: Path):
    image = pytest.importorskip("PIL.Image")
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("there is no chromium (Debian's package chromium)")
    page, picture = tmp_path / "page.html", tmp_path / "page.png"
    page.write_text(build_report.page(_REPORT))
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
    subprocess.run(
        [
            *(browser, *options, "--force-device-scale-factor=1", "--window-size=1200,1100"),
            *(f"--user-data-dir={tmp_path}", f"--screenshot={picture}", page.as_uri()),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    found = image.open(picture).convert("RGB").getcolors(1 << 24)
    areas = collections.Counter({f"#{bytes(colour).hex()}": count for count, colour in found})
    area = build_report._WIDTH * build_report._HEIGHT
    shares = [areas[colour] / area for colour in build_report._COLOURS[:4]]
    # The first one is also that of compilations in the timeline; labels hide some pixels.
    assert shares == pytest.approx([0.5, 0.3, 0.2, 0], rel=0.1)
    # A seventh of the width, without the white border.
    link = areas[build_report._KINDS["CppLink"]]
    assert link == pytest.approx(build_report._WIDTH / 7 * build_report._ROW, rel=0.5)
