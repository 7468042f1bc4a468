"""Prints the table of variables: for docs/build.md, or with the current values.

python setup.py options                  # value, where it comes from, default, accepted values
python setup.py options --markdown       # the table in docs/build.md
"""

import textwrap
from collections.abc import Mapping

from bazel.pybuild import options
from bazel.pybuild.errors import BuildError
from bazel.pybuild.variables import CACHE_URL, SECRET, VARIABLES


def markdown() -> str:
    """The table of docs/build.md."""
    rows = ["| variable | value | default | meaning |", "|---|---|---|---|"]
    rows += [
        f"| `{variable.name}` | {variable.kind.description} | {variable.default} "
        f"| {variable.meaning} |"
        for variable in VARIABLES
    ]
    return "\n".join(rows)


def show(environ: Mapping[str, str]) -> None:
    """Prints the table, then all errors in the variables.

    Raises:
      BuildError: there are errors.
    """
    print(current(environ))
    wrong = options.problems(environ)
    if wrong:
        details = "\n".join(textwrap.indent(str(problem), "  ") for problem in wrong)
        count = "One variable is" if len(wrong) == 1 else f"{len(wrong)} variables are"
        remedy = "Fix these before running any other command."
        raise BuildError(f"{count} wrong:\n{details}", remedy)


def current(environ: Mapping[str, str]) -> str:
    """Name and value of each variable, and below it where that comes from and what is accepted."""
    rows = []
    for variable in VARIABLES:
        text = environ.get(variable.name, "").strip()
        # The text before the colon is the value; the rest explains it.
        value = text or variable.default.partition(":")[0]
        if text and variable.kind in (CACHE_URL, SECRET):
            value = "(set)"
        source = f"environment, default {variable.default}" if text else "default"
        rows.append(f"{variable.name} = {value}")
        rows += textwrap.wrap(
            f"from: {source}; accepts: {variable.kind.description}",
            width=80,
            initial_indent="    ",
            subsequent_indent="    ",
        )
    return "\n".join(rows)
