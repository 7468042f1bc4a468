"""Bazel's own rule sets, read from the disk if the distribution installs them there.

Bazel's built-in WORKSPACE suffix downloads rules_java, rules_proto and the like. Debian patches its Bazel to run
without the network and installs these sets under /usr/share/bazel; if they are declared before the suffix runs, it
does not download them. For any other Bazel, such as one that bazelisk downloads, nothing is declared here.

The files are inspected, because `bazel --version` prints "no_version" on Debian.
"""

_ROOT = "/usr/share/bazel"

_THIS_FILE = "@torch_xla_lite//third_party/bazel_rules:repository.bzl"

# Repository name -> folder under _ROOT.
_ON_DISK = {
    "bazel_features": "tools/features",
    "bazel_skylib": "tools/skylib",
    "platforms": "tools/platforms",
    "rules_cc": "rules/cc",
    "rules_java": "rules/java",
    "rules_license": "rules/license",
    "rules_proto": "rules/proto",
    "rules_python": "rules/python",
}

# Bazel 7 and newer, which read MODULE.bazel instead unless the user selects WORKSPACE.
_SUPPORTS_MODULES = hasattr(native, "module_name")

def _is_debians(repository_ctx):
    """Whether the running Bazel is the one that the rule sets on disk were packaged for."""
    return str(repository_ctx.path(Label("@bazel_tools//tools:BUILD")).realpath).startswith(_ROOT + "/")

def _bazel_rule_sets_impl(repository_ctx):
    lines = []
    if not _SUPPORTS_MODULES:
        lines.append("    rules_cc_replacement(name = \"rules_cc\")")
    if _is_debians(repository_ctx):
        for name, folder in sorted(_ON_DISK.items()):
            usable = _SUPPORTS_MODULES or name != "rules_cc"
            if usable and repository_ctx.path(_ROOT + "/" + folder).exists:
                lines.append("    native.local_repository(name = %r, path = %r)" % (name, _ROOT + "/" + folder))
        lines.append("    coverage_tools_replacement(name = \"remote_coverage_tools\")")
    repository_ctx.file("BUILD.bazel", "")
    repository_ctx.file("declare.bzl", "\n".join([
        "load(%r, \"coverage_tools_replacement\", \"rules_cc_replacement\")" % _THIS_FILE,
        "def declare_rule_sets():",
    ] + (lines or ["    pass"]) + [""]))

bazel_rule_sets = repository_rule(
    implementation = _bazel_rule_sets_impl,
    doc = "A repository whose declare.bzl declares the rule sets found under /usr/share/bazel.",
    local = True,
)

# The replacements are repositories of their own rules. With local_repository and folders of this package, Bazel 4
# sometimes takes this package for missing: `bazel query 'deps(//...)'` fails until WORKSPACE changes.

_COVERAGE_TOOLS = """
package(default_visibility = ["//visibility:public"])

filegroup(name = "coverage_report_generator")

filegroup(name = "lcov_merger")
"""

def _coverage_tools_replacement_impl(repository_ctx):
    repository_ctx.file("BUILD.bazel", _COVERAGE_TOOLS)

coverage_tools_replacement = repository_rule(
    implementation = _coverage_tools_replacement_impl,
    doc = "Nothing in the place of Bazel's tools for `bazel coverage`, which Debian does not package.",
)

# A file cannot define a name that Bazel has, but it can load it under another name and define it then.
_NATIVE = """
NATIVE_CC_COMMON = cc_common
NATIVE_CC_INFO = CcInfo
"""

_NATIVE_RULES = ["cc_binary", "cc_library", "cc_toolchain", "cc_toolchain_suite", "objc_library"]

_RULES_CC = {
    "cc_binary": "cc_binary = native.cc_binary",
    "cc_library": "cc_library = native.cc_library",
    # Bazel's own packages load it.
    "defs": "\n".join(["%s = native.%s" % (name, name) for name in _NATIVE_RULES]),
    "cc_test": "cc_test = native.cc_test",
    "common/cc_common": "load(':native.bzl', 'NATIVE_CC_COMMON')\ncc_common = NATIVE_CC_COMMON",
    "common/cc_info": "load(':native.bzl', 'NATIVE_CC_INFO')\nCcInfo = NATIVE_CC_INFO",
    "common/native": _NATIVE,
    "find_cc_toolchain": "load('@bazel_tools//tools/cpp:toolchain_utils.bzl', _find = 'find_cpp_toolchain')\n" +
                         "find_cc_toolchain = _find",
}

def _rules_cc_replacement_impl(repository_ctx):
    for package in ["cc", "cc/common"]:
        repository_ctx.file(package + "/BUILD.bazel", "")
    for name, code in _RULES_CC.items():
        repository_ctx.file("cc/%s.bzl" % name, code + "\n")

rules_cc_replacement = repository_rule(
    implementation = _rules_cc_replacement_impl,
    doc = "A rules_cc whose rules are the native ones of a Bazel before version 7.",
)
