/* What torch allocates for CPU tensors, counted for each thread.
 *
 * All of it goes through libc10.so, which calls posix_memalign by an address in its global offset
 * table. While counting is on, that address is a function of ours, which calls the one before it.
 */
#ifndef PYROMETER_ALLOCATIONS_H
#define PYROMETER_ALLOCATIONS_H

#include <stdint.h>
#include <stdlib.h>

#include "compiler.h"

typedef struct {
    uint64_t bytes, calls;
} Allocations;

/* Successful allocations of the calling thread, from its start; they stand still while not counted. */
THREAD_LOCAL Allocations thread_allocations;

/* How often counting was switched on and not yet off; 0: the counters stand still. */
static unsigned allocations_counted;

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define IS_ADDRESS_OF_SYMBOL(kind) \
    ((kind) == R_X86_64_JUMP_SLOT || (kind) == R_X86_64_GLOB_DAT || (kind) == R_X86_64_64)
#else
#define IS_ADDRESS_OF_SYMBOL(kind) \
    ((kind) == R_AARCH64_JUMP_SLOT || (kind) == R_AARCH64_GLOB_DAT || (kind) == R_AARCH64_ABS64)
#endif

typedef int (*AlignedAllocate)(void **pointer, size_t alignment, size_t size);

/* A place from which libc10 takes the address of posix_memalign. */
typedef struct {
    uintptr_t *place;
    uintptr_t before;
    int read_only; /* the loader has protected it */
} Slot;

#define MAX_SLOTS 8

typedef struct {
    int is_loaded;
    int count;
    Slot slots[MAX_SLOTS];
    AlignedAllocate allocate;
} Slots;

static Slots allocation_slots;
static AlignedAllocate allocate_uncounted;

static int
allocate_counted(void **pointer, size_t alignment, size_t size)
{
    int failed = allocate_uncounted(pointer, alignment, size);
    if (LIKELY(!failed)) {
        thread_allocations.bytes += size;
        thread_allocations.calls++;
    }
    return failed;
}

static int
is_libc10(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    /* libc10-1a2b3c.so where a wheel was repaired; libc10_cuda.so is another library. */
    return strncmp(name, "libc10", 6) == 0 && (name[6] == '.' || name[6] == '-');
}

/* An address in the dynamic section: glibc adds where the object was loaded, musl does not. */
static uintptr_t
loaded_at(const struct dl_phdr_info *object, ElfW(Addr) address)
{
    return address < object->dlpi_addr ? object->dlpi_addr + address : address;
}

static int
object_holds(const struct dl_phdr_info *object, uintptr_t address, ElfW(Word) kind, uintptr_t page)
{
    for (ElfW(Half) i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;
        if (part->p_type == kind && address >= start - start % page && address < end - end % page)
            return 1;
    }
    return 0;
}

static void
find_slots_in(const struct dl_phdr_info *object, Slots *found, uintptr_t table, size_t size,
              uintptr_t symbols, uintptr_t names)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const ElfW(Rela) *relocations = (const ElfW(Rela) *)table;
    for (size_t i = 0; i < size / sizeof *relocations; i++) {
        const ElfW(Rela) *each = &relocations[i];
        if (!IS_ADDRESS_OF_SYMBOL(ELF64_R_TYPE(each->r_info)) || each->r_addend != 0)
            continue;
        const ElfW(Sym) *symbol = (const ElfW(Sym) *)symbols + ELF64_R_SYM(each->r_info);
        uintptr_t *place = (uintptr_t *)(object->dlpi_addr + each->r_offset);
        if (strcmp((const char *)names + symbol->st_name, "posix_memalign") != 0 ||
            (uintptr_t)place % sizeof *place != 0 || found->count == MAX_SLOTS)
            continue;
        Slot *slot = &found->slots[found->count++];
        slot->place = place;
        slot->before = __atomic_load_n(place, __ATOMIC_ACQUIRE);
        slot->read_only = object_holds(object, (uintptr_t)place, PT_GNU_RELRO, page);
        /* Bound at the first call, it still leads to the loader, which would then write over us. */
        if (!object_holds(object, slot->before, PT_LOAD, 1))
            found->allocate = (AlignedAllocate)slot->before;
    }
}

static int
find_slots(struct dl_phdr_info *object, size_t size, void *data)
{
    Slots *found = data;
    if (object->dlpi_name == NULL || !is_libc10(object->dlpi_name))
        return 0;
    found->is_loaded = 1;
    uintptr_t symbols = 0, names = 0, table = 0, calls_table = 0;
    size_t table_size = 0, calls_table_size = 0;
    for (ElfW(Half) i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *entry =
            (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
            switch (entry->d_tag) {
            case DT_SYMTAB: symbols = loaded_at(object, entry->d_un.d_ptr); break;
            case DT_STRTAB: names = loaded_at(object, entry->d_un.d_ptr); break;
            case DT_RELA: table = loaded_at(object, entry->d_un.d_ptr); break;
            case DT_RELASZ: table_size = entry->d_un.d_val; break;
            case DT_JMPREL: calls_table = loaded_at(object, entry->d_un.d_ptr); break;
            case DT_PLTRELSZ: calls_table_size = entry->d_un.d_val; break;
            default: break;
            }
        }
    }
    if (symbols == 0 || names == 0)
        return 0;
    find_slots_in(object, found, table, table == 0 ? 0 : table_size, symbols, names);
    find_slots_in(object, found, calls_table, calls_table == 0 ? 0 : calls_table_size, symbols, names);
    return 0;
}

static int
slot_write(const Slot *slot, uintptr_t address)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *start = (void *)((uintptr_t)slot->place - (uintptr_t)slot->place % page);
    if (slot->read_only && mprotect(start, page, PROT_READ | PROT_WRITE) < 0)
        return -1;
    __atomic_store_n(slot->place, address, __ATOMIC_RELEASE);
    if (slot->read_only)
        mprotect(start, page, PROT_READ);
    return 0;
}

static void
restore_slots(void)
{
    for (int i = 0; i < allocation_slots.count; i++) {
        const Slot *slot = &allocation_slots.slots[i];
        /* Another tool that came after us has the place now, and calls us: we go on passing on. */
        if (__atomic_load_n(slot->place, __ATOMIC_ACQUIRE) == (uintptr_t)allocate_counted)
            slot_write(slot, slot->before);
    }
    allocation_slots.count = 0;
}

/* NULL when libc10's allocations are counted from now on, else why not. */
static const char *
begin_counting(void)
{
    Slots found = {.allocate = posix_memalign};
    dl_iterate_phdr(find_slots, &found);
    if (!found.is_loaded)
        return "torch is not loaded";
    if (found.count == 0)
        return "this build of torch does not allocate its tensors with posix_memalign";
    allocate_uncounted = found.allocate;
    allocation_slots = found;
    for (int i = 0; i < found.count; i++) {
        if (slot_write(&found.slots[i], (uintptr_t)allocate_counted) < 0) {
            restore_slots();
            return "the system does not let the addresses in libc10 be changed";
        }
    }
    return NULL;
}
#else
static const char *
begin_counting(void)
{
    return "needs Linux on x86-64 or aarch64";
}

static void
restore_slots(void)
{
}
#endif

#endif
