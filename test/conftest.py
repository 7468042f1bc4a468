"""Plain pytest reads this file, and Bazel does not: its runner loads the plugin itself."""

pytest_plugins = ["bazel.pytest_plugin"]
