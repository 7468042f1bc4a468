"""What is typed at IPython's prompt: expressions that are shown, and errors that do not end it."""

import contextlib
import io
import tempfile


def run(device: str, steps: int) -> list[float]:
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    shown = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(shown):
        no_history = Config(HistoryManager={"enabled": False})
        shell = InteractiveShell(config=no_history, ipython_dir=folder)
        shell.run_cell("import torch")
        shell.run_cell(f"x = torch.arange(6.0).view(2, 3).to('{device}')")
        total = shell.run_cell("x.sum()")
        wrong = shell.run_cell("x @ x")
        means = [shell.run_cell(f"(x * {step}).mean().item()").result for step in range(steps)]
    assert "tensor(15." in shown.getvalue() and "RuntimeError" in shown.getvalue()
    assert total.success and not wrong.success
    return means
