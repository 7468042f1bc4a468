"""Places the most used functions of a shared object side by side, with a linker script for GNU ld.

    USE_PRIORITIZED_TEXT_FOR_LD=1 python setup.py develop
    bazel build --define=link_order=on //torch_xla_lite:outputs

PyTorch does the same for 64-bit ARM. Only linking is repeated: optimised code has one section for each function.
"""

# The default script of GNU ld depends on these options: with lazy binding, other sections are writable.
LINK_OPTIONS = "-fuse-ld=bfd -shared -Wl,-z,relro,-z,now"

def ordered_link(link_order):
    """The inputs and the options of a link: with //bazel/link_order, or if None, with that if the user enables it."""
    enabled = str(Label("//bazel/link_order:enabled"))
    label = link_order or str(Label("//bazel/link_order"))
    options = LINK_OPTIONS.split(" ") + ["-Wl,-T,$(location %s)" % label]
    if link_order:
        return [label], options
    otherwise = {"//conditions:default": []}
    return select(dict(otherwise, **{enabled: [label]})), select(dict(otherwise, **{enabled: options}))
