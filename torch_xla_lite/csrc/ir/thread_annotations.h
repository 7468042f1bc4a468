// Annotations that say which lock guards what. clang checks them (test/lint/thread_safety_test.py);
// other compilers skip them.
//
//   Mutex mutex;
//   int count LITE_GUARDED_BY(mutex) = 0;        // an error where mutex is not held
//   void Increment() LITE_REQUIRES(mutex);       // likewise where it is called
//
// https://clang.llvm.org/docs/ThreadSafetyAnalysis.html describes each.

#ifndef TORCH_XLA_LITE_CSRC_IR_THREAD_ANNOTATIONS_H_
#define TORCH_XLA_LITE_CSRC_IR_THREAD_ANNOTATIONS_H_

#ifdef __clang__
#define LITE_THREAD_ANNOTATION(attribute) __attribute__((attribute))
#else
#define LITE_THREAD_ANNOTATION(attribute)
#endif

// Of classes: a lock, and an object that holds one while it exists.
#define LITE_CAPABILITY(name) LITE_THREAD_ANNOTATION(capability(name))
#define LITE_SCOPED_CAPABILITY LITE_THREAD_ANNOTATION(scoped_lockable)

// Of variables: a lock to hold where they, or what they point to, are used.
#define LITE_GUARDED_BY(lock) LITE_THREAD_ANNOTATION(guarded_by(lock))
#define LITE_PT_GUARDED_BY(lock) LITE_THREAD_ANNOTATION(pt_guarded_by(lock))

// Of functions: locks that their callers hold, and locks that they do not hold.
#define LITE_REQUIRES(...) LITE_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define LITE_EXCLUDES(...) LITE_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

// Of functions: what they lock and unlock. A scoped object without arguments: what it holds.
#define LITE_ACQUIRE(...) LITE_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define LITE_TRY_ACQUIRE(...) LITE_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define LITE_RELEASE(...) LITE_THREAD_ANNOTATION(release_capability(__VA_ARGS__))

// Of functions that do nothing: the lock is held from here on, though clang does not see why.
#define LITE_ASSERT_CAPABILITY(...) LITE_THREAD_ANNOTATION(assert_capability(__VA_ARGS__))

// Of functions that are right for a reason that clang does not see; a comment gives it.
#define LITE_NO_THREAD_SAFETY_ANALYSIS LITE_THREAD_ANNOTATION(no_thread_safety_analysis)

#endif  // TORCH_XLA_LITE_CSRC_IR_THREAD_ANNOTATIONS_H_
