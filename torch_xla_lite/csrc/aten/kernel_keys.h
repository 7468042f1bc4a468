// Makes a thread call ATen's CPU kernels directly, without autograd, autocast and Python modes.
//
//   const KernelKeysGuard guard;      // until the end of the scope
//   op.callBoxed(&stack);
//
// The dispatch state of the thread becomes that of a new thread with autograd off. A graph may run
// on the user's thread, inside a torch.func transform, a tracing mode or autocast, none of which
// may intercept the kernels.

#ifndef TORCH_XLA_LITE_CSRC_ATEN_KERNEL_KEYS_H_
#define TORCH_XLA_LITE_CSRC_ATEN_KERNEL_KEYS_H_

#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace torch_xla_lite::aten {

class KernelKeysGuard {
 public:
  KernelKeysGuard()
      : guard_(c10::default_included_set.remove(c10::DispatchKey::ADInplaceOrView),
               c10::default_excluded_set | c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                   c10::autocast_dispatch_keyset) {}

 private:
  c10::impl::ForceDispatchKeyGuard guard_;
};

}  // namespace torch_xla_lite::aten

#endif  // TORCH_XLA_LITE_CSRC_ATEN_KERNEL_KEYS_H_
