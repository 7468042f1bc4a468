"""Python file of each folder -> the targets that it uses. Written by scripts/python_deps.py."""

PYTHON_DEPS = {
    "third_party": {
        "interface": [":elf"],
    },
    "third_party/torch": {
        "layers": [":meta_functions"],
    },
}
