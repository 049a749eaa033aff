/* Functions that were met on stacks: names and lines copied once, without the interpreter's help. */
#ifndef PYROMETER_CODE_TABLE_H
#define PYROMETER_CODE_TABLE_H

#include <stdlib.h>

#include "safe_read.h"
#include "stack_layout.h"

#if STACKS_CAN_BE_READ

#define MAX_CODES 50000
#define MAX_TEXT 1000          /* characters of a name or a file that are kept */
#define MAX_LINE_TABLE 1000000 /* bytes */

/* Another function may come to live at the same address, and its name and lines where those of the
 * one before were: then one of these differs. */
typedef struct {
    const void *address, *name, *lines;
    int first_line;
    Py_ssize_t name_length;
    Py_hash_t name_hash; /* -1 until somebody has asked for it */
} CodeKey;

typedef struct {
    CodeKey key;
    char *name, *file;
    int32_t *lines; /* by instruction, -1 where there is none; NULL if the table could not be read */
    Py_ssize_t instructions;
} CodeEntry;

typedef struct {
    CodeEntry *entries;
    size_t count, capacity;
    uint32_t *places; /* by address: entry + 1, an open hash table */
    size_t place_capacity;
    uint64_t refused; /* functions for which there was no more room */
} CodeTable;

#define NO_CODE UINT32_MAX

static inline size_t
hash_pointer(const void *pointer)
{
    return (size_t)(((uintptr_t)pointer >> 4) * 0x9E3779B97F4A7C15u >> 16);
}

/* Texts. */

/* A string of the interpreter's as UTF-8, malloced; NULL if it cannot be read. */
static char *
read_text(const Reader *reader, const void *address)
{
    union {
        PyASCIIObject ascii;
        PyCompactUnicodeObject compact;
    } head;
    if (!reader_read(reader, address, &head.ascii, sizeof head.ascii) ||
        head.ascii.ob_base.ob_type != &PyUnicode_Type || !head.ascii.state.compact || head.ascii.length < 0)
        return NULL;
    size_t length = head.ascii.length > MAX_TEXT ? MAX_TEXT : (size_t)head.ascii.length;
    unsigned kind = head.ascii.state.kind;
    if (kind != 1 && kind != 2 && kind != 4)
        return NULL;
    size_t offset = head.ascii.state.ascii ? sizeof(PyASCIIObject) : sizeof(PyCompactUnicodeObject);
    unsigned char raw[MAX_TEXT * 4];
    char *text = malloc(length * 4 + 1);
    if (text == NULL || !reader_read(reader, (const char *)address + offset, raw, length * kind)) {
        free(text);
        return NULL;
    }
    char *end = text;
    for (size_t i = 0; i < length; i++) {
        uint32_t point = kind == 1 ? raw[i] : kind == 2 ? ((uint16_t *)raw)[i] : ((uint32_t *)raw)[i];
        if (point > 0x10FFFF || (point >= 0xD800 && point < 0xE000) || point == 0)
            point = '?';
        if (point < 0x80)
            *end++ = (char)point;
        else if (point < 0x800) {
            *end++ = (char)(0xC0 | point >> 6);
            *end++ = (char)(0x80 | (point & 0x3F));
        }
        else if (point < 0x10000) {
            *end++ = (char)(0xE0 | point >> 12);
            *end++ = (char)(0x80 | (point >> 6 & 0x3F));
            *end++ = (char)(0x80 | (point & 0x3F));
        }
        else {
            *end++ = (char)(0xF0 | point >> 18);
            *end++ = (char)(0x80 | (point >> 12 & 0x3F));
            *end++ = (char)(0x80 | (point >> 6 & 0x3F));
            *end++ = (char)(0x80 | (point & 0x3F));
        }
    }
    *end = '\0';
    return text;
}

/* Lines. */

/* The location table: an entry begins with a byte whose high bit is set; its kind tells what follows. */
enum { LONG_FORM = 14, NO_COLUMNS = 13, NO_LOCATION = 15, ONE_LINE_0 = 10, ONE_LINE_2 = 12 };

static Py_ssize_t
read_number(const unsigned char *table, Py_ssize_t at, Py_ssize_t size, uint32_t *number)
{
    int shift = 0;
    *number = 0;
    while (at < size) {
        unsigned char byte = table[at++];
        *number |= (uint32_t)(byte & 63) << shift;
        shift += 6;
        if (!(byte & 64) || shift > 24)
            break;
    }
    return at;
}

static void
spread_lines(const unsigned char *table, Py_ssize_t size, int line, int32_t *lines, Py_ssize_t instructions)
{
    Py_ssize_t instruction = 0;
    for (Py_ssize_t at = 0; at < size && instruction < instructions;) {
        unsigned char head = table[at++];
        unsigned kind = head >> 3 & 15;
        if (kind == NO_COLUMNS || kind == LONG_FORM) {
            uint32_t delta;
            at = read_number(table, at, size, &delta);
            line += delta & 1 ? -(int)(delta >> 1) : (int)(delta >> 1);
        }
        else if (kind >= ONE_LINE_0 && kind <= ONE_LINE_2)
            line += (int)(kind - ONE_LINE_0);
        for (unsigned i = 0; i <= (head & 7u) && instruction < instructions; i++)
            lines[instruction++] = kind == NO_LOCATION ? -1 : line;
        while (at < size && !(table[at] & 0x80))
            at++; /* columns */
    }
    while (instruction < instructions)
        lines[instruction++] = -1;
}

static int32_t *
read_lines(const Reader *reader, const PyCodeObject *code, Py_ssize_t instructions)
{
    PyVarObject head;
    if (!reader_read(reader, code->co_linetable, &head, sizeof head) ||
        head.ob_base.ob_type != &PyBytes_Type || head.ob_size < 0 || head.ob_size > MAX_LINE_TABLE)
        return NULL;
    unsigned char *table = malloc((size_t)head.ob_size + 1);
    int32_t *lines = malloc(((size_t)instructions + 1) * sizeof *lines);
    const char *from = (const char *)code->co_linetable + offsetof(PyBytesObject, ob_sval);
    if (table == NULL || lines == NULL || !reader_read(reader, from, table, (size_t)head.ob_size)) {
        free(lines);
        lines = NULL;
    }
    else
        spread_lines(table, head.ob_size, code->co_firstlineno, lines, instructions);
    free(table);
    return lines;
}

/* Codes. */

#define CODE_SIZE offsetof(PyCodeObject, co_code_adaptive)

static inline CodeKey
code_key(const void *address, const PyCodeObject *copied, const PyASCIIObject *name)
{
    return (CodeKey){address,      copied->co_qualname, copied->co_linetable, copied->co_firstlineno,
                     name->length, name->hash};
}

static inline int
same_key(const CodeKey *one, const CodeKey *other)
{
    return one->address == other->address && one->name == other->name && one->lines == other->lines &&
           one->first_line == other->first_line && one->name_length == other->name_length &&
           (one->name_hash == other->name_hash || one->name_hash == -1 || other->name_hash == -1);
}

static int
code_table_grow(CodeTable *table)
{
    if (table->count == table->capacity) {
        size_t capacity = table->capacity ? table->capacity * 2 : 256;
        CodeEntry *entries = realloc(table->entries, capacity * sizeof *entries);
        if (entries == NULL)
            return 0;
        table->entries = entries;
        table->capacity = capacity;
    }
    if ((table->count + 1) * 2 <= table->place_capacity)
        return 1;
    size_t capacity = table->place_capacity ? table->place_capacity * 2 : 1024;
    uint32_t *places = calloc(capacity, sizeof *places);
    if (places == NULL)
        return 0;
    for (size_t i = 0; i < table->count; i++) {
        size_t at = hash_pointer(table->entries[i].key.address) & (capacity - 1);
        while (places[at])
            at = (at + 1) & (capacity - 1);
        places[at] = (uint32_t)i + 1;
    }
    free(table->places);
    table->places = places;
    table->place_capacity = capacity;
    return 1;
}

static uint32_t
code_table_add(CodeTable *table, const Reader *reader, CodeKey key, const PyCodeObject *copied)
{
    if (table->count == MAX_CODES || !code_table_grow(table)) {
        table->refused++;
        return NO_CODE;
    }
    CodeEntry entry = {.key = key, .instructions = Py_SIZE(copied)};
    entry.name = read_text(reader, copied->co_qualname);
    entry.file = read_text(reader, copied->co_filename);
    if (entry.name == NULL || entry.file == NULL || entry.instructions < 0 || entry.instructions > 10000000) {
        free(entry.name);
        free(entry.file);
        return NO_CODE;
    }
    entry.lines = read_lines(reader, copied, entry.instructions);
    size_t at = hash_pointer(key.address) & (table->place_capacity - 1);
    while (table->places[at])
        at = (at + 1) & (table->place_capacity - 1);
    table->entries[table->count] = entry;
    table->places[at] = (uint32_t)++table->count;
    return (uint32_t)table->count - 1;
}

static inline int
is_code(const PyCodeObject *copied)
{
    return copied->ob_base.ob_base.ob_type == &PyCode_Type;
}

/* The last entry for a function at this address, with this key unless it is NULL; NO_CODE if there is none. */
static uint32_t
code_table_last(const CodeTable *table, const void *address, const CodeKey *key)
{
    uint32_t last = NO_CODE;
    if (table->place_capacity == 0)
        return last;
    size_t at = hash_pointer(address) & (table->place_capacity - 1);
    for (; table->places[at]; at = (at + 1) & (table->place_capacity - 1)) {
        const CodeKey *met = &table->entries[table->places[at] - 1].key;
        if (key != NULL ? same_key(met, key) : met->address == address)
            last = table->places[at] - 1;
    }
    return last;
}

/* The entry of a code object, of which a copy was just read and one of its name; NO_CODE if there is
 * no room for it. */
static uint32_t
code_table_find(CodeTable *table, const Reader *reader, const void *address, const PyCodeObject *copied,
                const PyASCIIObject *name)
{
    CodeKey key = code_key(address, copied, name);
    uint32_t known = code_table_last(table, address, &key);
    return known != NO_CODE ? known : code_table_add(table, reader, key, copied);
}

/* Where the name of the function at this address was when it was met last; NULL if there was none. */
static const void *
code_table_expected_name(const CodeTable *table, const void *address)
{
    uint32_t last = code_table_last(table, address, NULL);
    return last == NO_CODE ? NULL : table->entries[last].key.name;
}

/* The line of an instruction, or -1. */
static inline int32_t
code_line(const CodeEntry *entry, const _Py_CODEUNIT *instruction)
{
    const char *start = (const char *)entry->key.address + CODE_SIZE;
    ptrdiff_t at = ((const char *)instruction - start) / (ptrdiff_t)sizeof(_Py_CODEUNIT);
    if (entry->lines == NULL || at < 0 || at >= entry->instructions)
        return -1;
    return entry->lines[at];
}

static void
code_table_clear(CodeTable *table)
{
    for (size_t i = 0; i < table->count; i++) {
        free(table->entries[i].name);
        free(table->entries[i].file);
        free(table->entries[i].lines);
    }
    free(table->entries);
    free(table->places);
    memset(table, 0, sizeof *table);
}

#endif
#endif
