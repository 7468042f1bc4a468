"""Names of source files, for tests that do not depend on their content."""

def _lite_file_names_impl(ctx):
    file = ctx.actions.declare_file(ctx.label.name + ".txt")
    ctx.actions.write(file, "".join([source.short_path + "\n" for source in ctx.files.srcs]))
    return [DefaultInfo(files = depset([file]))]

lite_file_names = rule(
    implementation = _lite_file_names_impl,
    doc = "NAME.txt with the paths of files, for tests that need no more: an edit of a file does not run them again.",
    attrs = {"srcs": attr.label_list(allow_files = True)},
)
