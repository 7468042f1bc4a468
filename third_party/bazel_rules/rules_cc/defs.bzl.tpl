"""The C++ rules, as the native ones of the same names."""

load(
    ":native.bzl",
    _CcInfo = "NATIVE_CC_INFO",
    _CcToolchainConfigInfo = "NATIVE_CC_TOOLCHAIN_CONFIG_INFO",
    _cc_common = "NATIVE_CC_COMMON",
)

CcInfo = _CcInfo
CcToolchainConfigInfo = _CcToolchainConfigInfo
cc_binary = native.cc_binary
cc_common = _cc_common
cc_import = native.cc_import
cc_library = native.cc_library
cc_proto_library = native.cc_proto_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
objc_library = native.objc_library
