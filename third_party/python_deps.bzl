"""Python file of each folder -> the targets that it uses. Written by scripts/python_deps.py."""

PYTHON_DEPS = {
    "third_party": {
        "elf": [],
        "interface": [":elf"],
    },
    "third_party/torch": {
        "autocast_ops": [],
        "layers": [":meta_functions"],
        "meta_functions": [],
    },
}
