/* Names of functions in libraries: from the symbol table in the file, read when first asked for. */
#ifndef PYROMETER_ELF_SYMBOLS_H
#define PYROMETER_ELF_SYMBOLS_H

#include "stack_layout.h"

#if STACKS_CAN_BE_READ

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    uint64_t address, size; /* from where the library was loaded */
    const char *name;       /* in the file, which stays mapped */
} Symbol;

typedef struct {
    char *path;
    uintptr_t base, low, high; /* where it was loaded to, and where its code is */
    int is_read;
    const char *file;
    size_t file_size;
    Symbol *symbols; /* by address */
    size_t symbol_count;
} Library;

typedef struct {
    Library *libraries;
    size_t count, capacity;
    unsigned long long adds, subs; /* what the loader had loaded and unloaded when it was last asked */
} Libraries;

#define NO_SYMBOL UINT32_MAX

/* Files. */

static int
compare_symbols(const void *one, const void *other)
{
    uint64_t first = ((const Symbol *)one)->address, second = ((const Symbol *)other)->address;
    return first < second ? -1 : first > second;
}

/* Whether a table of so many entries lies within the file. */
static inline int
is_inside(const Library *library, uint64_t offset, uint64_t size)
{
    return offset <= library->file_size && size <= library->file_size - offset;
}

static void
take_symbols(Library *library, const ElfW(Shdr) *table, const ElfW(Shdr) *names)
{
    if (!is_inside(library, table->sh_offset, table->sh_size) ||
        !is_inside(library, names->sh_offset, names->sh_size) || names->sh_size == 0 ||
        library->file[names->sh_offset + names->sh_size - 1] != '\0')
        return;
    size_t count = table->sh_size / sizeof(ElfW(Sym));
    Symbol *symbols = malloc((count + 1) * sizeof *symbols);
    if (symbols == NULL)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        ElfW(Sym) symbol;
        memcpy(&symbol, library->file + table->sh_offset + i * sizeof symbol, sizeof symbol);
        int kind = ELF64_ST_TYPE(symbol.st_info);
        if ((kind == STT_FUNC || kind == STT_GNU_IFUNC) && symbol.st_value != 0 && symbol.st_name < names->sh_size)
            symbols[kept++] =
                (Symbol){symbol.st_value, symbol.st_size, library->file + names->sh_offset + symbol.st_name};
    }
    qsort(symbols, kept, sizeof *symbols, compare_symbols);
    library->symbols = symbols;
    library->symbol_count = kept;
}

/* The full table, or where that was stripped the one the loader needs. */
static void
find_symbols(Library *library)
{
    ElfW(Ehdr) head;
    if (library->file_size < sizeof head)
        return;
    memcpy(&head, library->file, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_shentsize != sizeof(ElfW(Shdr)) ||
        !is_inside(library, head.e_shoff, (uint64_t)head.e_shnum * sizeof(ElfW(Shdr))))
        return;
    for (int wanted = 0; wanted < 2 && library->symbols == NULL; wanted++) {
        for (int i = 0; i < head.e_shnum && library->symbols == NULL; i++) {
            ElfW(Shdr) table, names;
            memcpy(&table, library->file + head.e_shoff + (size_t)i * sizeof table, sizeof table);
            if (table.sh_type != (wanted == 0 ? SHT_SYMTAB : SHT_DYNSYM) || table.sh_link >= head.e_shnum)
                continue;
            memcpy(&names, library->file + head.e_shoff + (size_t)table.sh_link * sizeof names, sizeof names);
            take_symbols(library, &table, &names);
        }
    }
}

static void
library_read(Library *library)
{
    library->is_read = 1;
    int file = open(library->path, O_RDONLY | O_CLOEXEC);
    struct stat facts;
    if (file < 0)
        return;
    if (fstat(file, &facts) == 0 && facts.st_size > 0) {
        void *mapped = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (mapped != MAP_FAILED) {
            library->file = mapped;
            library->file_size = (size_t)facts.st_size;
            find_symbols(library);
        }
    }
    close(file);
}

/* What is loaded. */

static int
note_library(struct dl_phdr_info *info, size_t size, void *data)
{
    Libraries *all = data;
    all->adds = info->dlpi_adds;
    all->subs = info->dlpi_subs;
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
            continue;
        uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
        low = begin < low ? begin : low;
        high = begin + segment->p_memsz > high ? begin + segment->p_memsz : high;
    }
    const char *path = info->dlpi_name == NULL || *info->dlpi_name == '\0' ? "/proc/self/exe" : info->dlpi_name;
    for (size_t i = 0; i < all->count; i++)
        if (all->libraries[i].low == low && all->libraries[i].high == high &&
            strcmp(all->libraries[i].path, path) == 0)
            return 0;
    if (all->count == all->capacity) {
        size_t capacity = all->capacity ? all->capacity * 2 : 64;
        Library *grown = realloc(all->libraries, capacity * sizeof *grown);
        if (grown == NULL)
            return 0;
        all->libraries = grown;
        all->capacity = capacity;
    }
    char *copied = strdup(path);
    if (copied != NULL && high > 0)
        all->libraries[all->count++] = (Library){.path = copied, .base = info->dlpi_addr, .low = low, .high = high};
    else
        free(copied);
    return 0;
}

/* The library whose code an address is in; the newest, where one was unloaded and another took its place. */
static Library *
libraries_find(Libraries *all, uintptr_t address)
{
    for (int again = 0; again < 2; again++) {
        for (size_t i = all->count; i-- > 0;)
            if (address >= all->libraries[i].low && address < all->libraries[i].high)
                return &all->libraries[i];
        dl_iterate_phdr(note_library, all);
    }
    return NULL;
}

/* The function an address is in, by its place among the library's; NO_SYMBOL if none is known. */
static uint32_t
library_symbol(Library *library, uintptr_t address)
{
    if (!library->is_read)
        library_read(library);
    uint64_t wanted = address - library->base;
    size_t low = 0, high = library->symbol_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (library->symbols[middle].address <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NO_SYMBOL;
    const Symbol *found = &library->symbols[low - 1];
    /* Written by hand in assembly, a function may not tell its size. */
    if (found->size != 0 && wanted >= found->address + found->size)
        return NO_SYMBOL;
    return (uint32_t)(low - 1);
}

static void
libraries_clear(Libraries *all)
{
    for (size_t i = 0; i < all->count; i++) {
        free(all->libraries[i].path);
        free(all->libraries[i].symbols);
        if (all->libraries[i].file != NULL)
            munmap((void *)all->libraries[i].file, all->libraries[i].file_size);
    }
    free(all->libraries);
    memset(all, 0, sizeof *all);
}

#endif
#endif
