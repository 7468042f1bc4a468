"""Makes `comparison`, a file beside the tests, importable, and hides an installed package."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
# Outside a sandbox, an editable install would supply the lowerings that a test does not declare.
sys.meta_path[:] = [one for one in sys.meta_path if "__editable__" not in str(one.__module__)]
sys.path[:] = [folder for folder in sys.path if not folder.endswith("build/editable")]
