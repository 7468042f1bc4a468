"""Places the most used functions of a shared object side by side, with a linker script for GNU ld.

    USE_PRIORITIZED_TEXT_FOR_LD=1 python setup.py develop
    bazel build --define=link_order=on //torch_xla_lite:outputs

PyTorch does the same for 64-bit ARM. Only linking is repeated: optimised code has one section for each function.
"""

# The default script of GNU ld depends on these options: with lazy binding, other sections are writable.
_OPTIONS = "-fuse-ld=bfd -shared -Wl,-z,relro,-z,now"

_GENERATE = str(Label("//bazel/link_order:generate.py"))
_PYTHON = "@python//:interpreter"
_TOOLCHAIN = "@bazel_tools//tools/cpp:current_cc_toolchain"

def lite_link_order(name, symbols, visibility = None):
    """Writes a linker script that places functions in a given order.

    Args:
      name: of the target.
      symbols: file with their mangled names, most used first.
      visibility: of the target.
    """
    native.genrule(
        name = name,
        srcs = [
            symbols,
            _TOOLCHAIN,
        ],
        outs = [name + ".lds"],
        cmd = "$(location %s) -I $(location %s) $(location %s) $@ $(CC) %s" % (_PYTHON, _GENERATE, symbols, _OPTIONS),
        message = "Ordering functions for",
        toolchains = [_TOOLCHAIN],
        tools = [
            _GENERATE,
            _PYTHON,
        ],
        visibility = visibility,
    )

def ordered_link(link_order):
    """The inputs and the options of a link: for a lite_link_order, or if None, for the one that the user enables."""
    enabled = str(Label("//bazel/link_order:enabled"))
    label = link_order or str(Label("//bazel/link_order"))
    options = _OPTIONS.split(" ") + ["-Wl,-T,$(location %s)" % label]
    if link_order:
        return [label], options
    otherwise = {"//conditions:default": []}
    return select(dict(otherwise, **{enabled: [label]})), select(dict(otherwise, **{enabled: options}))
