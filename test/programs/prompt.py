"""What is typed at a prompt: expressions that are shown, and errors that do not end it."""

import code
import contextlib
import io


def run(device: str, steps: int) -> list[float]:
    lines = [
        "import torch",
        f"x = torch.arange(6.0).view(2, 3).to('{device}')",
        "x.sum()",
        "x @ x",
        *(f"(x * {step}).mean().item()" for step in range(steps)),
    ]
    shown, errors = io.StringIO(), io.StringIO()
    console = code.InteractiveConsole()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(errors):
        for line in lines:
            console.push(line)
    assert "RuntimeError" in errors.getvalue()
    total, *means = shown.getvalue().splitlines()
    assert total.startswith("tensor(15.")
    return [float(mean) for mean in means]
