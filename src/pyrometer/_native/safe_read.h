/* Memory of this process that may be gone or change while it is read: by the kernel, which says so
 * instead of ending us. */
#ifndef PYROMETER_SAFE_READ_H
#define PYROMETER_SAFE_READ_H

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "high_files.h"

#if defined(__linux__)
#include <sys/uio.h>

typedef struct {
    pid_t process;
    KeptFile memory_file; /* /proc/self/mem, where the system call is refused */
} Reader;

typedef struct {
    const void *from;
    void *to;
    size_t size;
} ReadPart;

#define MAX_READ_PARTS 64

static int
reader_read_from_file(const Reader *reader, const ReadPart *parts, int count)
{
    for (int i = 0; i < count; i++)
        if (pread(reader->memory_file.number, parts[i].to, parts[i].size, (off_t)(uintptr_t)parts[i].from) !=
            (ssize_t)parts[i].size)
            return 0;
    return 1;
}

/* Whether all of it could be read. At most MAX_READ_PARTS. */
static int
reader_read_parts(const Reader *reader, const ReadPart *parts, int count)
{
    if (reader->memory_file.number != 0)
        return reader_read_from_file(reader, parts, count);
    struct iovec from[MAX_READ_PARTS], to[MAX_READ_PARTS];
    ssize_t size = 0;
    for (int i = 0; i < count; i++) {
        from[i] = (struct iovec){(void *)parts[i].from, parts[i].size};
        to[i] = (struct iovec){parts[i].to, parts[i].size};
        size += (ssize_t)parts[i].size;
    }
    return process_vm_readv(reader->process, to, (unsigned long)count, from, (unsigned long)count, 0) == size;
}

static inline int
reader_read(const Reader *reader, const void *from, void *to, size_t size)
{
    ReadPart part = {from, to, size};
    return reader_read_parts(reader, &part, 1);
}

/* Each part, all bytes 0 where it cannot be read or is to come from NULL. At most MAX_READ_PARTS. */
static void
reader_read_what_is_there(const Reader *reader, const ReadPart *parts, int count)
{
    ReadPart wanted[MAX_READ_PARTS];
    int wanted_count = 0;
    for (int i = 0; i < count; i++)
        if (parts[i].from != NULL)
            wanted[wanted_count++] = parts[i];
        else
            memset(parts[i].to, 0, parts[i].size);
    if (wanted_count == 0 || reader_read_parts(reader, wanted, wanted_count))
        return;
    for (int i = 0; i < wanted_count; i++)
        if (!reader_read(reader, wanted[i].from, wanted[i].to, wanted[i].size))
            memset(wanted[i].to, 0, wanted[i].size);
}

static int
reader_works(const Reader *reader)
{
    static const uint64_t known = 0x5079726F6D657465;
    uint64_t seen = 0;
    return reader_read(reader, &known, &seen, sizeof seen) && seen == known;
}

/* NULL, or why nothing can be read. `by_file` leaves the system call out. */
static const char *
reader_open(Reader *reader, int by_file)
{
    reader->process = getpid();
    reader->memory_file = (KeptFile){0};
    if (!by_file && reader_works(reader))
        return NULL;
    int file = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (file >= 0)
        reader->memory_file = kept_file(file);
    if (reader->memory_file.number != 0 && reader_works(reader))
        return NULL;
    kept_file_close(&reader->memory_file);
    return "this system lets no process read its own memory, neither by process_vm_readv nor by /proc/self/mem";
}

static void
reader_close(Reader *reader)
{
    kept_file_close(&reader->memory_file);
}
#endif

#endif
