"""The names of C++ actions."""

load(
    "@bazel_tools//tools/build_defs/cc:action_names.bzl",
    _ACTION_NAMES = "ACTION_NAMES",
    _CPP_COMPILE_ACTION_NAME = "CPP_COMPILE_ACTION_NAME",
)

ACTION_NAMES = _ACTION_NAMES
CPP_COMPILE_ACTION_NAME = _CPP_COMPILE_ACTION_NAME
