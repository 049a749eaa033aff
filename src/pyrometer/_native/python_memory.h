/* Small Python objects, which never come to malloc: counted by wrapping the interpreter's own allocators.
 *
 * Up to 512 bytes only: what is larger goes on to malloc and is counted there. The wrapper puts nothing
 * in front of blocks, so it may come and go at any time; with the GIL held, as all of this is.
 */
#ifndef PYROMETER_PYTHON_MEMORY_H
#define PYROMETER_PYTHON_MEMORY_H

#include <Python.h>

#include "allocations.h"

#define SMALL_OBJECT_BYTES 512

static const PyMemAllocatorDomain python_domains[] = {PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};
static PyMemAllocatorEx python_allocators[2];
static unsigned python_counted;

static inline void *
note_object(void *block, size_t size)
{
    if (LIKELY(block != NULL && size <= SMALL_OBJECT_BYTES)) {
        thread_memory.counters.python.bytes += size;
        thread_memory.counters.python.calls++;
        thread_memory.counters.allocations++;
        if (UNLIKELY(thread_memory.state != KNOWN_THREAD))
            meet_thread();
    }
    return block;
}

static void *
object_malloc(void *context, size_t size)
{
    PyMemAllocatorEx *theirs = context;
    return note_object(theirs->malloc(theirs->ctx, size), size);
}

static void *
object_calloc(void *context, size_t count, size_t size)
{
    PyMemAllocatorEx *theirs = context;
    return note_object(theirs->calloc(theirs->ctx, count, size), count * size);
}

static void *
object_realloc(void *context, void *block, size_t size)
{
    PyMemAllocatorEx *theirs = context;
    return note_object(theirs->realloc(theirs->ctx, block, size), size);
}

static void
object_free(void *context, void *block)
{
    PyMemAllocatorEx *theirs = context;
    theirs->free(theirs->ctx, block);
}

static int
is_our_allocator(int domain)
{
    PyMemAllocatorEx now;
    PyMem_GetAllocator(python_domains[domain], &now);
    return now.malloc == object_malloc && now.ctx == &python_allocators[domain];
}

/* NULL when small objects are counted from now on, else why not. */
static const char *
begin_counting_objects(void)
{
#ifdef Py_GIL_DISABLED
    return "this build of Python runs without the GIL";
#else
    if (process_memory_prepare() != 0)
        return "the system has no room for one more key of threads";
    for (int i = 0; i < 2; i++) {
        if (is_our_allocator(i))
            continue;
        PyMem_GetAllocator(python_domains[i], &python_allocators[i]);
        PyMemAllocatorEx ours = {&python_allocators[i], object_malloc, object_calloc, object_realloc,
                                 object_free};
        PyMem_SetAllocator(python_domains[i], &ours);
    }
    return NULL;
#endif
}

/* Where another tool has wrapped us meanwhile, we go on passing on. */
static void
end_counting_objects(void)
{
    for (int i = 0; i < 2; i++)
        if (is_our_allocator(i))
            PyMem_SetAllocator(python_domains[i], &python_allocators[i]);
}

#endif
