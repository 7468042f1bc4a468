"""Bazel's own objects under other names; a file cannot define a name that Bazel has."""

NATIVE_CC_COMMON = cc_common
NATIVE_CC_INFO = CcInfo
NATIVE_CC_TOOLCHAIN_CONFIG_INFO = CcToolchainConfigInfo
