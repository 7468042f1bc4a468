"""torch_xla_lite.__config__: the versions and options of the build."""

import re
import subprocess

import jaxlib.version
import torch

import torch_xla_lite
from torch_xla_lite import __config__


def test_the_versions_are_those_that_are_installed():
    found = __config__.parameters()
    assert found["torch_version"] == torch.__version__.partition("+")[0]
    assert found["jaxlib_version"] == jaxlib.version.__version__


def test_the_compiler_is_named_with_its_version():
    command = ["gcc", "-dumpfullversion", "-dumpversion"]
    version = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert __config__.parameters()["compiler"] == f"GCC {version}"


def test_the_abi_is_that_of_torch():
    assert __config__.parameters()["cxx11_abi"] == str(int(torch._C._GLIBCXX_USE_CXX11_ABI))


def test_the_description_has_every_parameter():
    text = torch_xla_lite.__config__.show()
    assert text.startswith("torch_xla_lite ")
    for value in __config__.parameters().values():
        assert value in text


def test_two_builds_of_the_same_sources_record_the_same():
    for value in __config__.parameters().values():
        assert not re.search(r"/|\d{2}:\d{2}|\b[0-9a-f]{12,}\b", value)
