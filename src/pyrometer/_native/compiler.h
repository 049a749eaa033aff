/* What the compiler is told: likely branches, and storage for each thread. */
#ifndef PYROMETER_COMPILER_H
#define PYROMETER_COMPILER_H

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Initial-exec keeps the access to one instruction and free of malloc; what we hold for each thread
 * is a few words, which fit in the surplus that the loader leaves. */
#if defined(__linux__)
#define THREAD_LOCAL static __thread __attribute__((tls_model("initial-exec")))
#else
#define THREAD_LOCAL static __thread
#endif

#endif
