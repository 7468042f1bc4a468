"""Bazel's own rule sets, from the disk where a distribution keeps them there.

Bazel's built-in WORKSPACE suffix downloads rules_java, rules_proto and the like. Debian patches its Bazel to run
without the network and keeps those sets under /usr/share/bazel; declaring them before the suffix runs makes it
leave them alone. For any other Bazel (one fetched by bazelisk, say) nothing is declared and its own defaults apply.

What is there is found by looking, not from `bazel --version`, which says "no_version" on Debian.
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

# Repository name -> folder of this package that stands in where the disk has none.
_STUBS = {
    "remote_coverage_tools": "coverage_tools",
    "rules_cc": "rules_cc",
}

# Debian's package of rules_cc needs a newer Bazel than Debian 12's, which knows no modules.
_KNOWS_MODULES = hasattr(native, "module_name")

def _is_debians(repository_ctx):
    """Whether the Bazel that runs is the one that the rule sets on disk were packaged for."""
    return str(repository_ctx.path(Label("@bazel_tools//tools:BUILD")).realpath).startswith(_ROOT + "/")

def _bazel_rule_sets_impl(repository_ctx):
    # Where it really is: seen from another workspace, this tree is a link that goes away with what Bazel has fetched.
    here = repository_ctx.path(Label("//third_party/bazel_rules:BUILD.bazel")).realpath.dirname
    lines = []
    if _is_debians(repository_ctx):
        found = {}
        for name, folder in _ON_DISK.items():
            usable = _KNOWS_MODULES or name != "rules_cc"
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
