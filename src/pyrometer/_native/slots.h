/* The places from which loaded objects take the addresses of other functions, and putting ours there.
 *
 * An object calls malloc by an address in a table of its own, which the loader has filled in. While
 * counting is on, ours stands there. Nothing is in front of blocks, so a block may be freed by the one
 * or the other. Left alone are the loader, the object that has malloc, our own, and every place
 * with an address that is neither malloc's nor still to be found: some other tool's.
 */
#ifndef PYROMETER_SLOTS_H
#define PYROMETER_SLOTS_H

#include "allocations.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#define SLOTS_CAN_BE_FOUND 1
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define IS_VARIABLE(kind) ((kind) == R_X86_64_64)
#define IS_ADDRESS_OF_SYMBOL(kind) \
    ((kind) == R_X86_64_JUMP_SLOT || (kind) == R_X86_64_GLOB_DAT || (kind) == R_X86_64_64)
#else
#define IS_VARIABLE(kind) ((kind) == R_AARCH64_ABS64)
#define IS_ADDRESS_OF_SYMBOL(kind) \
    ((kind) == R_AARCH64_JUMP_SLOT || (kind) == R_AARCH64_GLOB_DAT || (kind) == R_AARCH64_ABS64)
#endif

/* A function of the system's, and what stands in its place; in libc10, where tensors come from. */
typedef struct {
    const char *name;
    uintptr_t theirs, ours, ours_in_libc10;
} Replaced;

typedef struct {
    uintptr_t *place;
    uintptr_t before, ours, theirs;
    int read_only; /* the loader has protected it */
    int is_tensors;
} Slot;

typedef struct {
    ElfW(Addr) base;
    const ElfW(Phdr) *parts;
} KnownObject;

typedef struct {
    uintptr_t start, end;
    int writable;
} Mapping;

#define MAX_UNCOUNTED 16
#define MAX_UNCOUNTED_NAME 64

typedef struct {
    int is_on;
    unsigned long long adds, subs; /* of the loader, at the last look */
    int looked;
    Slot *slots;
    size_t count, capacity;
    KnownObject *objects;
    size_t object_count, object_capacity;
    Mapping *mappings; /* while looking */
    size_t mapping_count;
    int mappings_read;
    int has_libc10;
    size_t refused; /* places the system does not let be changed */
    char uncounted[MAX_UNCOUNTED][MAX_UNCOUNTED_NAME]; /* objects with an allocator, or a place, of another's */
    int uncounted_count;
} Slots;

static Slots slots;

static const Replaced *replaced_functions(void);

static const char *
file_name(const char *path)
{
    const char *slash = path == NULL ? NULL : strrchr(path, '/');
    return path == NULL ? "" : slash == NULL ? path : slash + 1;
}

static int
is_libc10(const char *path)
{
    const char *name = file_name(path);
    /* libc10-1a2b3c.so where a wheel was repaired; libc10_cuda.so is another library. */
    return strncmp(name, "libc10", 6) == 0 && (name[6] == '.' || name[6] == '-');
}

/* Libraries known to bring an allocator of their own, whose blocks never come from malloc. */
static int
has_own_allocator(const char *path)
{
    static const char *const known[] = {"libarrow.", "libjemalloc", "libmimalloc", "libtcmalloc"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(file_name(path), known[i], strlen(known[i])) == 0)
            return 1;
    return 0;
}

static void
note_uncounted(const char *path)
{
    const char *name = file_name(path);
    if (*name == '\0')
        name = "the program itself";
    for (int i = 0; i < slots.uncounted_count; i++)
        if (strncmp(slots.uncounted[i], name, MAX_UNCOUNTED_NAME - 1) == 0)
            return;
    if (slots.uncounted_count < MAX_UNCOUNTED)
        snprintf(slots.uncounted[slots.uncounted_count++], MAX_UNCOUNTED_NAME, "%s", name);
}

/* An address in the dynamic section: glibc adds where the object was loaded, musl does not. */
static uintptr_t
loaded_at(const struct dl_phdr_info *object, ElfW(Addr) address)
{
    return address < object->dlpi_addr ? object->dlpi_addr + address : address;
}

static int
object_holds(const struct dl_phdr_info *object, uintptr_t address)
{
    for (ElfW(Half) i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && address >= start && address < start + part->p_memsz)
            return 1;
    }
    return 0;
}

/* Whether a page is protected now. Asked of the system, not worked out from the object: one that
 * another thread is just loading will be protected by the loader, when that has written all it wants. */

static int
add_mapping(const char *line, size_t *capacity)
{
    unsigned long long start, end;
    char rights[5];
    if (sscanf(line, "%llx-%llx %4s", &start, &end, rights) != 3)
        return 1;
    if (slots.mapping_count == *capacity) {
        size_t wanted = *capacity ? *capacity * 2 : 512;
        Mapping *mappings = realloc(slots.mappings, wanted * sizeof *mappings);
        if (mappings == NULL)
            return 0;
        slots.mappings = mappings;
        *capacity = wanted;
    }
    slots.mappings[slots.mapping_count++] = (Mapping){(uintptr_t)start, (uintptr_t)end, rights[1] == 'w'};
    return 1;
}

static void
read_mappings(void)
{
    char buffer[8192];
    size_t held = 0, capacity = 0;
    slots.mappings_read = 1;
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t got = 1; file >= 0 && got > 0;) {
        got = read(file, buffer + held, sizeof buffer - 1 - held);
        held += got > 0 ? (size_t)got : 0;
        buffer[held] = '\0';
        char *line = buffer, *end;
        while ((end = strchr(line, '\n')) != NULL) {
            *end = '\0';
            if (!add_mapping(line, &capacity))
                got = 0;
            line = end + 1;
        }
        held = (size_t)(buffer + held - line);
        if (held == sizeof buffer - 1)
            held = 0; /* a line of that length has nothing more to say */
        memmove(buffer, line, held);
    }
    if (file >= 0)
        close(file);
}

static int
is_read_only(uintptr_t address)
{
    if (!slots.mappings_read)
        read_mappings();
    for (size_t i = 0; i < slots.mapping_count; i++)
        if (address >= slots.mappings[i].start && address < slots.mappings[i].end)
            return !slots.mappings[i].writable;
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

/* Bound at the first call, it may have been bound since the last time. */
static void
slot_put(Slot *slot)
{
    uintptr_t value = __atomic_load_n(slot->place, __ATOMIC_ACQUIRE);
    if (value != slot->before && value != slot->theirs)
        return;
    slot->before = value;
    if (slot_write(slot, slot->ours) < 0)
        slots.refused++;
}

/* Another tool that came after us may have the place now, and call us: we go on passing on. */
static void
slot_restore(const Slot *slot)
{
    if (__atomic_load_n(slot->place, __ATOMIC_ACQUIRE) == slot->ours)
        slot_write(slot, slot->before);
}

static void
add_slot(const struct dl_phdr_info *object, uintptr_t *place, const Replaced *function, int in_libc10,
         int is_variable)
{
    uintptr_t value = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    /* Bound at the first call, it still leads into the object itself, and from there to the loader. */
    if (value != function->theirs && !object_holds(object, value)) {
        if (!is_variable) /* a variable of the program's may have been given another function */
            note_uncounted(object->dlpi_name);
        return;
    }
    if (slots.count == slots.capacity) {
        size_t capacity = slots.capacity ? slots.capacity * 2 : 256;
        Slot *grown = realloc(slots.slots, capacity * sizeof *grown);
        if (grown == NULL)
            return;
        slots.slots = grown;
        slots.capacity = capacity;
    }
    int is_tensors = in_libc10 && function->ours_in_libc10 != 0;
    slots.slots[slots.count++] = (Slot){
        .place = place,
        .before = value,
        .theirs = function->theirs,
        .ours = is_tensors ? function->ours_in_libc10 : function->ours,
        .read_only = is_read_only((uintptr_t)place),
        .is_tensors = is_tensors,
    };
    if (slots.is_on)
        slot_put(&slots.slots[slots.count - 1]);
}

static void
find_slots_in(const struct dl_phdr_info *object, uintptr_t table, size_t size, uintptr_t symbols,
              uintptr_t names)
{
    const ElfW(Rela) *relocations = (const ElfW(Rela) *)table;
    int in_libc10 = is_libc10(object->dlpi_name);
    for (size_t i = 0; i < size / sizeof *relocations; i++) {
        const ElfW(Rela) *each = &relocations[i];
        if (!IS_ADDRESS_OF_SYMBOL(ELF64_R_TYPE(each->r_info)) || each->r_addend != 0)
            continue;
        const ElfW(Sym) *symbol = (const ElfW(Sym) *)symbols + ELF64_R_SYM(each->r_info);
        const char *name = (const char *)names + symbol->st_name;
        uintptr_t *place = (uintptr_t *)(object->dlpi_addr + each->r_offset);
        if (strchr("mcrfpa", *name) == NULL || (uintptr_t)place % sizeof *place != 0)
            continue;
        for (const Replaced *function = replaced_functions(); function->name != NULL; function++)
            if (strcmp(name, function->name) == 0)
                add_slot(object, place, function, in_libc10, IS_VARIABLE(ELF64_R_TYPE(each->r_info)));
    }
}

static void
find_slots_of(const struct dl_phdr_info *object)
{
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
        return;
    find_slots_in(object, table, table == 0 ? 0 : table_size, symbols, names);
    find_slots_in(object, calls_table, calls_table == 0 ? 0 : calls_table_size, symbols, names);
}

/* Objects. */

static int
is_left_alone(const struct dl_phdr_info *object)
{
    const Replaced *functions = replaced_functions();
    if (object_holds(object, functions[0].ours) || object->dlpi_addr == getauxval(AT_BASE) ||
        object->dlpi_addr == getauxval(AT_SYSINFO_EHDR) || strncmp(file_name(object->dlpi_name), "libc.", 5) == 0)
        return 1;
    for (const Replaced *function = functions; function->name != NULL; function++)
        if (object_holds(object, function->theirs))
            return 1;
    return 0;
}

static int
meet_object(const struct dl_phdr_info *object)
{
    for (size_t i = 0; i < slots.object_count; i++)
        if (slots.objects[i].base == object->dlpi_addr && slots.objects[i].parts == object->dlpi_phdr)
            return 0;
    if (slots.object_count == slots.object_capacity) {
        size_t capacity = slots.object_capacity ? slots.object_capacity * 2 : 256;
        KnownObject *grown = realloc(slots.objects, capacity * sizeof *grown);
        if (grown == NULL)
            return 0;
        slots.objects = grown;
        slots.object_capacity = capacity;
    }
    slots.objects[slots.object_count++] = (KnownObject){object->dlpi_addr, object->dlpi_phdr};
    return 1;
}

typedef struct {
    unsigned long long adds, subs;
    int is_first;
} Look;

/* After an object has gone its place may be another's: all is looked for again. What is still ours
 * is put back first, in the objects that are still there. */
static int
restore_in(struct dl_phdr_info *object, size_t size, void *data)
{
    for (size_t i = 0; i < slots.count; i++)
        if (object_holds(object, (uintptr_t)slots.slots[i].place))
            slot_restore(&slots.slots[i]);
    return 0;
}

static int
look_at_object(struct dl_phdr_info *object, size_t size, void *data)
{
    Look *look = data;
    look->adds = object->dlpi_adds;
    look->subs = object->dlpi_subs;
    if (!meet_object(object) || is_left_alone(object))
        return 0;
    if (has_own_allocator(object->dlpi_name))
        note_uncounted(object->dlpi_name);
    slots.has_libc10 |= is_libc10(object->dlpi_name);
    find_slots_of(object);
    return 0;
}

static int
read_loads(struct dl_phdr_info *object, size_t size, void *data)
{
    Look *look = data;
    look->adds = object->dlpi_adds;
    look->subs = object->dlpi_subs;
    return 1;
}

/* Look through objects that were loaded since the last time. Whether there were any. */
static int
find_slots(void)
{
    Look look = {0};
    dl_iterate_phdr(read_loads, &look);
    if (LIKELY(slots.looked && look.adds == slots.adds && look.subs == slots.subs))
        return 0;
    if (slots.looked && look.subs != slots.subs) {
        dl_iterate_phdr(restore_in, NULL);
        slots.count = slots.object_count = 0;
        slots.has_libc10 = 0;
    }
    dl_iterate_phdr(look_at_object, &look);
    slots.adds = look.adds;
    slots.subs = look.subs;
    slots.looked = 1;
    free(slots.mappings);
    slots.mappings = NULL;
    slots.mapping_count = 0;
    slots.mappings_read = 0;
    return 1;
}

static int
put_all(struct dl_phdr_info *object, size_t size, void *data)
{
    for (size_t i = 0; i < slots.count; i++)
        slot_put(&slots.slots[i]);
    return 1;
}

static int
restore_all(struct dl_phdr_info *object, size_t size, void *data)
{
    for (size_t i = 0; i < slots.count; i++)
        slot_restore(&slots.slots[i]);
    return 1;
}

/* Inside dl_iterate_phdr, so that no object goes meanwhile. */
static void
slots_on(void)
{
    slots.refused = 0;
    find_slots();
    slots.is_on = 1;
    dl_iterate_phdr(put_all, NULL);
}

static void
slots_off(void)
{
    find_slots();
    slots.is_on = 0;
    dl_iterate_phdr(restore_all, NULL);
}
#else
#define SLOTS_CAN_BE_FOUND 0
#endif

#endif
