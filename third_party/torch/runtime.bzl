"""Where torch's real shared objects are, for programs that run."""

def _torch_runtime_impl(ctx):
    return [platform_common.TemplateVariableInfo({"TORCH_LIBRARIES": ctx.attr.libraries})]

torch_runtime = rule(
    implementation = _torch_runtime_impl,
    doc = "Offers $(TORCH_LIBRARIES), to be named in `toolchains`.",
    attrs = {"libraries": attr.string(mandatory = True)},
)
