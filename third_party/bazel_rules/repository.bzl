"""Bazel's own rule sets, read from the disk if the distribution installs them there.

Bazel's built-in WORKSPACE suffix downloads rules_java, rules_proto and the like. Debian patches its Bazel to run
without the network and installs these sets under /usr/share/bazel; if they are declared before the suffix runs, it
does not download them. For any other Bazel, such as one that bazelisk downloads, nothing is declared here.

The files are inspected, because `bazel --version` prints "no_version" on Debian.
"""

_ROOT = "/usr/share/bazel"

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

# Repository name -> folder of this package that replaces it if the disk does not have it.
_STUBS = {
    "remote_coverage_tools": "coverage_tools",
    "rules_cc": "rules_cc",
}

# Debian's package of rules_cc needs a newer Bazel than Debian 12's, which does not support modules.
_SUPPORTS_MODULES = hasattr(native, "module_name")

def _is_debians(repository_ctx):
    """Whether the running Bazel is the one that the rule sets on disk were packaged for."""
    return str(repository_ctx.path(Label("@bazel_tools//tools:BUILD")).realpath).startswith(_ROOT + "/")

def _bazel_rule_sets_impl(repository_ctx):
    # Resolved: another workspace sees this tree through a link, which Bazel deletes with the repositories it fetched.
    here = repository_ctx.path(Label("//third_party/bazel_rules:BUILD.bazel")).realpath.dirname
    lines = []
    if _is_debians(repository_ctx):
        found = {}
        for name, folder in _ON_DISK.items():
            usable = _SUPPORTS_MODULES or name != "rules_cc"
            if usable and repository_ctx.path(_ROOT + "/" + folder).exists:
                found[name] = _ROOT + "/" + folder
        for name, folder in _STUBS.items():
            if name not in found:
                found[name] = str(here.get_child(folder))
        lines = ["    native.local_repository(name = %r, path = %r)" % item for item in sorted(found.items())]
    repository_ctx.file("BUILD.bazel", "")
    repository_ctx.file("declare.bzl", "\n".join(
        ["def declare_rule_sets():"] + (lines or ["    pass"]) + [""],
    ))

bazel_rule_sets = repository_rule(
    implementation = _bazel_rule_sets_impl,
    doc = "A repository whose declare.bzl declares the rule sets found under /usr/share/bazel.",
    local = True,
)
