"""Collects the public headers of libraries in one folder, for a wheel.

    public_headers(
        name = "headers",
        folder = "include",
        deps = ["//torch_xla_lite/csrc:bridge"],
    )

A header is public when its library is (`lite_cc_library(public = True)`). Other Bazel workspaces may depend on the same
libraries, so a wheel and this tree have the same public headers.
"""

# The tag of targets with public headers. Rules and aspects cannot read visibility.
PUBLIC_TAG = "public-headers"

_PublicHeadersInfo = provider(
    doc = "Headers of public libraries.",
    fields = {"headers": "depset of File: of a target and all that it depends on."},
)

def _collect_impl(target, ctx):
    own = ctx.rule.files.hdrs if PUBLIC_TAG in ctx.rule.attr.tags else []
    deps = getattr(ctx.rule.attr, "deps", [])
    return [_PublicHeadersInfo(headers = depset(
        own,
        transitive = [dep[_PublicHeadersInfo].headers for dep in deps if _PublicHeadersInfo in dep],
    ))]

_collect = aspect(
    implementation = _collect_impl,
    doc = "Gathers the headers of public libraries along `deps`.",
    attr_aspects = ["deps"],
)

def _public_headers_impl(ctx):
    copies = []
    for dep in ctx.attr.deps:
        for header in dep[_PublicHeadersInfo].headers.to_list():
            path = header.owner.package + "/" + header.owner.name
            copy = ctx.actions.declare_file(ctx.attr.folder + "/" + path)
            ctx.actions.symlink(output = copy, target_file = header)
            copies.append(copy)
    return [DefaultInfo(files = depset(copies))]

public_headers = rule(
    implementation = _public_headers_impl,
    doc = "The public headers of `deps`, below `folder`, with their paths from the root of the tree.",
    attrs = {
        "deps": attr.label_list(aspects = [_collect], mandatory = True),
        "folder": attr.string(mandatory = True),
    },
)
