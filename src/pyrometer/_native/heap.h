/* The functions that stand in the places of malloc and its like while allocations are counted. */
#ifndef PYROMETER_HEAP_H
#define PYROMETER_HEAP_H

#include "allocation_sites.h"
#include "slots.h"

#if SLOTS_CAN_BE_FOUND

/* Much comes between two allocations, so each finds what it needs out of the nearest caches: the code
 * of the usual ones stands together, and they look at one line of data. */
#define COUNTS static __attribute__((section(".text.counting"), aligned(64)))

/* Whether glibc keeps the size of a block, with three flags, in the word before it. Asking for it takes as
 * long as all the rest of our counting. Read there only if that was tried and found true. */
static int sizes_are_before_blocks;

/* How large a block is with that word. */
static inline size_t
size_before_block(const void *block)
{
    const size_t *place = block;
    __asm__("" : "+r"(place)); /* the compiler knows what malloc gives, and that nothing is before it */
    return place[-1] & ~(size_t)7;
}

static inline size_t
asked_size(void *block)
{
    return malloc_usable_size(block) + sizeof(size_t);
}

static inline size_t
block_size(void *block)
{
    return sizes_are_before_blocks ? size_before_block(block) : asked_size(block);
}

static void
try_sizes_before_blocks(void)
{
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
    Dl_info found;
    int is_glibc = dladdr((void *)malloc, &found) != 0 && strncmp(file_name(found.dli_fname), "libc.so.6", 9) == 0;
    for (size_t size = 1; is_glibc && size < (4u << 20); size = size * 3 + 1) {
        void *block = malloc(size);
        /* One that is mapped has another word before it. */
        size_t beyond = block == NULL ? 1 : size_before_block(block) - asked_size(block);
        is_glibc = beyond == 0 || beyond == sizeof(size_t);
        free(block);
    }
    sizes_are_before_blocks = is_glibc;
#endif
}

/* What does not happen at every allocation: none of it shows in errno. */
static __attribute__((noinline)) void
allocated_slowly(size_t size)
{
    int error = errno;
    if (thread_memory.state != KNOWN_THREAD)
        meet_thread();
    if (thread_memory.before_own_work == NULL) {
        tell_kept();
        sample_allocation(size);
    }
    errno = error;
}

static __attribute__((noinline)) void
freed_slowly(void)
{
    if (thread_memory.state != KNOWN_THREAD)
        meet_thread();
    tell_kept();
}

static inline void
note_allocated(uint64_t *bytes, size_t size, size_t block_bytes)
{
    *bytes += size;
    thread_memory.counters.allocations++;
    thread_memory.counters.kept_bytes += (int64_t)block_bytes;
    thread_memory.until_sample -= (int64_t)size;
    if (UNLIKELY(thread_memory.until_sample < 0 ||
                 thread_memory.counters.kept_bytes - thread_memory.told_bytes > UNTOLD_BYTES))
        allocated_slowly(size);
}

static inline void
note_tensor(size_t size, size_t block_bytes)
{
    thread_memory.counters.tensors.calls++;
    note_allocated(&thread_memory.counters.tensors.bytes, size, block_bytes);
}

static inline void
note_freed(size_t block_bytes)
{
    thread_memory.counters.frees++;
    thread_memory.counters.freed_bytes += block_bytes;
    thread_memory.counters.kept_bytes -= (int64_t)block_bytes;
    if (UNLIKELY(thread_memory.counters.kept_bytes - thread_memory.told_bytes < -UNTOLD_BYTES))
        freed_slowly();
}

/* The usual ones, for blocks with their sizes before them; and for others. */

COUNTS void *
counted_malloc(size_t size)
{
    void *block = malloc(size);
    if (LIKELY(block != NULL))
        note_allocated(&thread_memory.counters.heap_bytes, size, size_before_block(block));
    return block;
}

COUNTS void
counted_free(void *block)
{
    if (LIKELY(block != NULL))
        note_freed(size_before_block(block));
    free(block);
}

/* As libc10 calls it: for tensors, and nothing else. */
COUNTS int
counted_tensor(void **pointer, size_t alignment, size_t size)
{
    int failed = posix_memalign(pointer, alignment, size);
    if (LIKELY(!failed))
        note_tensor(size, size_before_block(*pointer));
    return failed;
}

static void *
asking_malloc(size_t size)
{
    void *block = malloc(size);
    if (LIKELY(block != NULL))
        note_allocated(&thread_memory.counters.heap_bytes, size, asked_size(block));
    return block;
}

static void
asking_free(void *block)
{
    if (LIKELY(block != NULL))
        note_freed(asked_size(block));
    free(block);
}

static int
asking_tensor(void **pointer, size_t alignment, size_t size)
{
    int failed = posix_memalign(pointer, alignment, size);
    if (LIKELY(!failed))
        note_tensor(size, asked_size(*pointer));
    return failed;
}

static void *
counted_calloc(size_t count, size_t size)
{
    void *block = calloc(count, size);
    if (LIKELY(block != NULL))
        note_allocated(&thread_memory.counters.heap_bytes, count * size, block_size(block));
    return block;
}

/* The old block is freed and the new one allocated, wherever that is. */
static void *
counted_realloc(void *block, size_t size)
{
    size_t before = block == NULL ? 0 : block_size(block);
    void *moved = realloc(block, size);
    if (UNLIKELY(moved == NULL && size != 0))
        return NULL;
    if (block != NULL)
        note_freed(before);
    if (LIKELY(moved != NULL))
        note_allocated(&thread_memory.counters.heap_bytes, size, block_size(moved));
    return moved;
}

static void *
counted_reallocarray(void *block, size_t count, size_t size)
{
    size_t whole;
    if (__builtin_mul_overflow(count, size, &whole)) {
        errno = ENOMEM;
        return NULL;
    }
    return counted_realloc(block, whole);
}

static int
counted_posix_memalign(void **pointer, size_t alignment, size_t size)
{
    int failed = posix_memalign(pointer, alignment, size);
    if (LIKELY(!failed))
        note_allocated(&thread_memory.counters.heap_bytes, size, block_size(*pointer));
    return failed;
}

static void *
counted_aligned_alloc(size_t alignment, size_t size)
{
    void *block = aligned_alloc(alignment, size);
    if (LIKELY(block != NULL))
        note_allocated(&thread_memory.counters.heap_bytes, size, block_size(block));
    return block;
}

static void *
counted_memalign(size_t alignment, size_t size)
{
    void *block = memalign(alignment, size);
    if (LIKELY(block != NULL))
        note_allocated(&thread_memory.counters.heap_bytes, size, block_size(block));
    return block;
}

/* Addresses that may not be touched take no memory. */
static void *
counted_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
    void *place = mmap(address, size, protection, flags, file, offset);
    int is_own = (flags & MAP_ANONYMOUS) && (flags & MAP_TYPE) == MAP_PRIVATE;
    if (place != MAP_FAILED && protection != PROT_NONE)
        note_map(is_own ? &process_memory.mapped : &process_memory.mapped_shared, size);
    return place;
}

static int
counted_munmap(void *place, size_t size)
{
    int failed = munmap(place, size);
    if (!failed)
        note_map(&process_memory.unmapped, size);
    return failed;
}

static const Replaced *
replaced_functions(void)
{
    static Replaced functions[12];
    if (functions[0].name == NULL) {
        int before = sizes_are_before_blocks;
        uintptr_t tensor = before ? (uintptr_t)counted_tensor : (uintptr_t)asking_tensor;
        uintptr_t ours_malloc = before ? (uintptr_t)counted_malloc : (uintptr_t)asking_malloc;
        uintptr_t ours_free = before ? (uintptr_t)counted_free : (uintptr_t)asking_free;
        functions[1] = (Replaced){"calloc", (uintptr_t)calloc, (uintptr_t)counted_calloc, 0};
        functions[2] = (Replaced){"realloc", (uintptr_t)realloc, (uintptr_t)counted_realloc, 0};
        functions[3] = (Replaced){"free", (uintptr_t)free, ours_free, 0};
        functions[4] =
            (Replaced){"posix_memalign", (uintptr_t)posix_memalign, (uintptr_t)counted_posix_memalign, tensor};
        functions[5] =
            (Replaced){"aligned_alloc", (uintptr_t)aligned_alloc, (uintptr_t)counted_aligned_alloc, 0};
        functions[6] = (Replaced){"memalign", (uintptr_t)memalign, (uintptr_t)counted_memalign, 0};
        functions[7] =
            (Replaced){"reallocarray", (uintptr_t)reallocarray, (uintptr_t)counted_reallocarray, 0};
        functions[8] = (Replaced){"mmap", (uintptr_t)mmap, (uintptr_t)counted_mmap, 0};
        functions[9] = (Replaced){"mmap64", (uintptr_t)mmap, (uintptr_t)counted_mmap, 0};
        functions[10] = (Replaced){"munmap", (uintptr_t)munmap, (uintptr_t)counted_munmap, 0};
        functions[0] = (Replaced){"malloc", (uintptr_t)malloc, ours_malloc, 0};
    }
    return functions;
}

/* NULL when tensors are counted too, else why not. */
static const char *
uncounted_tensors(void)
{
    if (!slots.has_libc10)
        return "torch is not loaded";
    for (size_t i = 0; i < slots.count; i++)
        if (slots.slots[i].is_tensors)
            return NULL;
    return "this build of torch does not allocate its tensors with posix_memalign";
}

static void
note_counted_kinds(void)
{
    counted_kinds = (counted_kinds & COUNTS_PYTHON) | COUNTS_HEAP |
                    (uncounted_tensors() == NULL ? COUNTS_TENSORS : 0);
}

/* NULL when allocations are counted from now on, else why not. */
static const char *
begin_counting(void)
{
    if (process_memory_prepare() != 0)
        return "the system has no room for one more key of threads";
    try_sizes_before_blocks();
    slots_on();
    if (slots.count == 0)
        return "no loaded library takes malloc from the system's";
    if (slots.refused == slots.count) {
        slots_off();
        return "the system does not let the addresses of libraries be changed";
    }
    note_counted_kinds();
    return NULL;
}

static void
end_counting(void)
{
    slots_off();
    tell_kept();
    counted_kinds &= COUNTS_PYTHON;
}

/* Whether libraries were loaded since the last look; then they count too. Called with the GIL. */
static int
count_in_new_libraries(void)
{
    if (allocations_counted == 0 || !find_slots())
        return 0;
    note_counted_kinds();
    return 1;
}
#else
static const char *
uncounted_tensors(void)
{
    return "needs Linux on x86-64 or aarch64";
}

static const char *
begin_counting(void)
{
    return uncounted_tensors();
}

static void
end_counting(void)
{
}

static int
count_in_new_libraries(void)
{
    return 0;
}
#endif

#endif
