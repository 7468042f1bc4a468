"""The folder of torch's real shared objects, for programs that Bazel runs."""

def _torch_runtime_impl(ctx):
    return [platform_common.TemplateVariableInfo({"TORCH_LIBRARIES": ctx.attr.libraries})]

torch_runtime = rule(
    implementation = _torch_runtime_impl,
    doc = "Defines $(TORCH_LIBRARIES) for targets that name this rule in `toolchains`.",
    attrs = {"libraries": attr.string(mandatory = True)},
)
