// Where the data of a buffer is: on one device, or spread over those of a mesh.
//
//   Placement on_first;                        // the one device
//   IsSplit(placement)                         // some device lacks a part of the data
//   ReplicatedOn(MeshOf(placement)) == 0x10000 // each device of the first mesh has all of it
//
// A number stands for a sharding, which only the compiler knows (torch_xla_lite/mesh/sharding.py):
// the upper half is that of the mesh, from 1; the lower that of the sharding among those of its
// mesh, where 0 is data that each device has in full.

#ifndef TORCH_XLA_LITE_CSRC_IR_PLACEMENT_H_
#define TORCH_XLA_LITE_CSRC_IR_PLACEMENT_H_

#include <cstdint>

namespace torch_xla_lite::ir {

using Placement = uint32_t;

inline constexpr Placement kOneDevice = 0;
// Of a result that no variable has a place for: the compiler chooses.
inline constexpr Placement kAnywhere = 0xffffffff;

constexpr uint32_t MeshOf(Placement placement) { return placement >> 16; }
constexpr bool IsSplit(Placement placement) { return (placement & 0xffff) != 0; }
constexpr Placement ReplicatedOn(uint32_t mesh) { return mesh << 16; }

}  // namespace torch_xla_lite::ir

#endif  // TORCH_XLA_LITE_CSRC_IR_PLACEMENT_H_
