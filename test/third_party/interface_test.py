"""Interface libraries have the symbols of the shared objects that they replace."""

import subprocess
from pathlib import Path

import pytest

from third_party import elf, interface

_SOURCE = """
int table[10] = {1};
thread_local int counter = 0;
int add(int a, int b) { return a + b + counter; }
__attribute__((weak)) int replaceable() { return 1; }
static int hidden_in_file() { return 2; }
__attribute__((visibility("hidden"))) int hidden_in_library() { return hidden_in_file(); }
"""


def _gcc(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["gcc", *arguments], capture_output=True, text=True, check=False)


@pytest.fixture
def real(tmp_path: Path) -> Path:
    (tmp_path / "real.cc").write_text(_SOURCE)
    library = tmp_path / "libreal.so"
    result = _gcc("-shared", "-fPIC", tmp_path / "real.cc", "-o", library)
    assert result.returncode == 0, result.stderr
    return library


@pytest.fixture
def replacement(real: Path, tmp_path: Path) -> Path:
    interface.main(str(real), str(tmp_path / "interface.S"))
    library = tmp_path / "libinterface.so"
    result = _gcc("-shared", "-nostdlib", tmp_path / "interface.S", "-o", library)
    assert result.returncode == 0, result.stderr
    return library


def test_symbols_have_the_names_kinds_and_sizes_of_the_original(real: Path, replacement: Path):
    def known(library: Path) -> dict[str, tuple[int, bool, int | None]]:
        # The size of a function is that of its code, which the replacement does not have.
        return {
            symbol.name: (symbol.kind, symbol.weak, symbol.size if symbol.kind != 2 else None)
            for symbol in elf.exported_symbols(library)
        }

    assert known(replacement) == known(real)
    assert set(known(real)) == {"_Z3addii", "_Z11replaceablev", "counter", "table"}


def test_symbols_that_the_original_does_not_have_are_undefined(replacement: Path, tmp_path: Path):
    user = tmp_path / "user.cc"
    user.write_text(
        "int add(int, int); int subtract(int, int);\nint f() { return subtract(add(1, 2), 3); }\n"
    )
    result = _gcc(
        "-shared", "-fPIC", user, replacement, "-Wl,-z,defs", "-o", tmp_path / "libuser.so"
    )
    assert result.returncode != 0
    assert "subtract" in result.stderr
    assert "add" not in result.stderr.replace("user.cc", "")


def test_only_symbols_whose_names_are_words_of_the_headers_are_kept(tmp_path: Path):
    source, library, words = (tmp_path / name for name in ("real.cc", "libreal.so", "words.txt"))
    source.write_text("""\
namespace outer {
struct Base { virtual ~Base(); int member(int) const; static int count; };
struct Hidden { virtual ~Hidden(); };
Base::~Base() {}
Hidden::~Hidden() {}
int Base::member(int) const { return 1; }
int Base::count = 0;
int function(const Base&) { return 1; }
int other(const Base&) { return 1; }
bool operator==(const Base&, const Base&) { return true; }
template <typename T, int> T made() { return T(); }
template int made<int, 12>();
}
extern "C" int function_of_c() { return 1; }
extern "C" int other_of_c() { return 1; }
""")
    assert _gcc("-shared", "-fPIC", source, "-o", library).returncode == 0
    words.write_text("outer\nBase\nmember\ncount\nfunction\nfunction_of_c\nmade\nvirtual\n")
    interface.main(str(library), str(tmp_path / "kept.S"), str(words))
    kept = {line[:-1] for line in (tmp_path / "kept.S").read_text().splitlines() if ":" in line}
    assert kept == {
        *(f"_ZN5outer4BaseD{kind}Ev" for kind in "012"),
        *("_ZTVN5outer4BaseE", "_ZTIN5outer4BaseE", "_ZTSN5outer4BaseE"),
        *("_ZNK5outer4Base6memberEi", "_ZN5outer4Base5countE", "_ZN5outer8functionERKNS_4BaseE"),
        *("_ZN5outereqERKNS_4BaseES2_", "_ZN5outer4madeIiLi12EEET_v", "function_of_c"),
    }


@pytest.mark.parametrize(
    ("symbol", "names"),
    [
        ("_ZN3c1015GetCPUAllocatorEv", ["c10", "GetCPUAllocator"]),
        ("_ZNKSt6vectorIN2at6TensorESaIS1_EE4sizeEv", ["vector"]),
        ("_ZThn16_N5torch3jit4NodeD1Ev", ["torch", "jit", "Node"]),
        ("_ZTv0_n24_N3c105ErrorD0Ev", ["c10", "Error"]),
        ("_ZGVZN2at4nameEvE5value", ["at", "name"]),
        ("_ZZN2at4nameEvE5value", ["at", "name"]),
        ("_ZTVSt13runtime_error", ["runtime_error"]),
        ("_ZlsRSoRKN3c106DeviceE", []),
        ("_ZSt4cout", ["cout"]),
        ("cblas_sgemm", ["cblas_sgemm"]),
    ],
)
def test_the_scopes_of_a_symbol_are_read(symbol: str, names: list[str]):
    assert interface.scopes(symbol) == names


def test_the_interpreter_exports_the_c_api():
    names = {symbol.name for symbol in elf.exported_symbols(interface.interpreter_binary())}
    assert {"PyErr_SetString", "PyExc_RuntimeError", "PyList_Type"} <= names


def test_a_file_that_is_not_a_shared_object_is_refused(tmp_path: Path):
    text = tmp_path / "libtext.so"
    text.write_text("INPUT(-lreal)")
    with pytest.raises(SystemExit, match=r"libtext\.so is not a 64-bit little-endian ELF file"):
        interface.main(str(text), str(tmp_path / "text.S"))
