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

def _coverage_tools_replacement_impl(repository_ctx):
    template = Label("//third_party/bazel_rules:coverage_tools.BUILD.tpl")
    repository_ctx.template("BUILD.bazel", template, executable = False)
    repository_ctx.template("unavailable.sh", Label("//third_party/bazel_rules:unavailable.sh"))

coverage_tools_replacement = repository_rule(
    implementation = _coverage_tools_replacement_impl,
    doc = "Programs in the place of Bazel's coverage tools, which Debian does not package.",
)

_RULES_CC = ["action_names", "cc_toolchain_config_lib", "defs", "find_cc_toolchain", "native"]

def _rules_cc_replacement_impl(repository_ctx):
    repository_ctx.file("cc/BUILD.bazel", "")
    for name in _RULES_CC:
        template = Label("//third_party/bazel_rules:rules_cc/%s.bzl.tpl" % name)
        repository_ctx.template("cc/%s.bzl" % name, template, executable = False)

rules_cc_replacement = repository_rule(
    implementation = _rules_cc_replacement_impl,
    doc = "A rules_cc whose rules are the native ones of a Bazel before version 7.",
)
