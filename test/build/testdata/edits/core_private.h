// What only core.cc includes.
#pragma once

inline constexpr int kFactor = 2;
