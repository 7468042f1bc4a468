"""Checks the shared objects of a build before they replace the installed ones.

    check(changed, outcome.outputs, root)     # BuildError, or all is well

It finds errors that would appear when the package is imported, perhaps on another machine: a
library that users do not have, a search path of this machine, an undefined symbol, strings of
another C++ ABI than torch's. torch is not imported.
"""

import os
import re
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from bazel.pybuild.call.events import Output
from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import packages
from third_party import elf

# Libraries that every machine with torch has.
_SYSTEM = (
    r"ld-linux-[\w-]+\.so\.\d",
    r"lib(c|m)\.so\.6",
    # Separate files before glibc 2.34.
    r"lib(dl\.so\.2|pthread\.so\.0|rt\.so\.1)",
    r"libgcc_s\.so\.1",
    r"libstdc\+\+\.so\.6",
)
_TORCH = (r"libc10\.so", r"libtorch_cpu\.so")
# Additional libraries of extension modules.
_MODULE = (r"libtorch_python\.so", r"libtorch_xla_lite\.so")
_BUILD_INFO = "_build_info.py"


def check(changed: Iterable[Output], built: Iterable[Output], root: Path) -> None:
    """Checks shared objects.

    Args:
      changed: files to check; only shared objects are.
      built: all files of the same build, our own libraries among them.
      root: of the tree, whose path no file may contain.

    Raises:
      BuildError: names each file and all its problems.
    """
    objects = [output for output in changed if output.path.endswith(".so")]
    built = list(built)
    infos = [output.file for output in built if Path(output.path).name == _BUILD_INFO]
    if not objects and not infos:
        return
    torch = installed_torch()
    ours = {Path(output.path).name: output.file for output in built}
    found = [
        f"  {output.path} {problem}"
        for output in objects
        for problem in problems(output, torch, ours, root)
    ]
    found += [f"  {info} {problem}" for info in infos for problem in _other_torch(info, torch)]
    if found:
        raise BuildError(
            "The built files would not work, or not on every machine. The installed files have "
            "not changed.\n" + "\n".join(found),
            "If torch or the compiler was replaced, build again:  "
            "python setup.py clean && python setup.py develop",
        )


def problems(
    output: Output, torch: packages.Package, ours: Mapping[str, Path], root: Path
) -> Iterator[str]:
    """The problems of a shared object, each a phrase that continues its name.

    Args:
      output: the file, and its path in the package.
      torch: the installed torch.
      ours: files of our libraries, by name.
      root: of the tree.
    """
    try:
        with elf.opened(output.file) as file:
            yield from _wrong_libraries(Path(output.path).name, file)
            yield from _wrong_search_path(output.path, file)
            yield from _wrong_abi(file)
            yield from _undefined(file, _files(file, torch, ours))
            own = root / "torch_xla_lite"
            if file.contains(os.fsencode(own)):
                yield f"contains the path of this tree, {own}"
    except elf.NotElf as error:
        yield str(error).removeprefix(f"{output.file} ")


def _wrong_libraries(name: str, file: elf.File) -> Iterator[str]:
    allowed = [*_SYSTEM, *_TORCH, *(_MODULE if name.startswith("_") else ())]
    for library in file.needed:
        if not any(re.fullmatch(pattern, library) for pattern in allowed):
            yield f"needs {library}, which it must not be linked to"


def _wrong_search_path(path: str, file: elf.File) -> Iterator[str]:
    for folder in file.search_path:
        if folder.partition("/")[0] != "$ORIGIN":
            yield f"looks for libraries in {folder!r}, which is not relative to $ORIGIN"
            continue
        origin = Path(path).parent
        relative = os.path.normpath(folder.replace("$ORIGIN", str(origin), 1))
        if relative.startswith(".."):
            yield f"looks for libraries in {folder}, outside of site-packages"


def _wrong_abi(file: elf.File) -> Iterator[str]:
    """Finds uses of the std::string of GCC 4, which torch does not use; libstdc++ has both, so no
    symbol is undefined."""
    for symbol in [*file.undefined(), *file.exported()]:
        # Its mangled name is `Ss`.
        if re.search(r"^_ZNK?Ss|^_Z.*([RPEv]K?Ss|Ss$)", symbol.name):
            yield (
                f"uses {symbol.name}, of another C++ ABI than torch's (_GLIBCXX_USE_CXX11_ABI=1)"
            )
            return


def _files(
    file: elf.File, torch: packages.Package, ours: Mapping[str, Path]
) -> dict[str, Path | None]:
    """The files of the needed libraries; None for a library that this machine does not have."""
    files: dict[str, Path | None] = {}
    places = [torch.info.parent / "torch" / "lib", *_installed_libraries()]
    for name in file.needed:
        beside = next((place / name for place in places if (place / name).exists()), None)
        files[name] = ours.get(name) or beside or _system_file(name)
    if "libtorch_python.so" in files:
        # The process that loads an extension module has Python's own symbols.
        from third_party import interface

        files["python"] = interface.interpreter_binary()
    return files


def _installed_libraries() -> list[Path]:
    """The folder of our installed libraries, to which a Python-only wheel is linked."""
    package = packages.installed([packages.LIBRARY], packages.search_path())
    return [found.info.parent / "torch_xla_lite" / "lib" for found in package.values()]


def _system_file(name: str) -> Path | None:
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    folders = [f"/lib/{multiarch}", f"/usr/lib/{multiarch}", "/lib64", "/usr/lib64", "/lib"]
    return next((file for folder in folders if (file := Path(folder, name)).exists()), None)


def _undefined(file: elf.File, libraries: Mapping[str, Path | None]) -> Iterator[str]:
    # The symbols of a library that is not on this machine are unknown.
    if None in libraries.values():
        return
    missing = {symbol.name for symbol in file.undefined() if not symbol.weak}
    for library in libraries.values():
        assert library is not None
        with elf.opened(library) as opened:
            missing = {name for name in missing if not opened.exports(name)}
    for name in sorted(missing):
        yield f"uses {name}, which none of its libraries has"


def installed_torch() -> packages.Package:
    """The torch that the tree was configured for, which has checked that it is installed."""
    return packages.installed(["torch"], packages.search_path())["torch"]


def _other_torch(info: Path, torch: packages.Package) -> Iterator[str]:
    """Compares the torch in the build information with the installed one."""
    match = re.search(r'^TORCH_VERSION = "([^"+]+)', info.read_text(), re.M)
    if match and torch.version.partition("+")[0] != match[1]:
        yield f"says torch {match[1]}, but torch {torch.version} is installed"
