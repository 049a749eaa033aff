/* Where a thread stands in the trees of the recorders: in which scope, in which of torch's calls.
 *
 * Read like all the sampler reads, beside threads that go on, and in as few calls of the kernel as can be.
 */
#ifndef PYROMETER_SAMPLED_PLACES_H
#define PYROMETER_SAMPLED_PLACES_H

#include "code_table.h"
#include "stack_tree.h"
#include "strands.h"

#if STACKS_CAN_BE_READ

#define RECORDERS 2       /* of scopes, and of torch's calls */
#define MAX_SEARCHED 256  /* strands of a recorder that are looked through */
#define SEARCH_EVERY 17   /* looks at a thread that stands nowhere */
#define KNOWN_NODES 1024
#define MAX_PATH_DEPTH 1000

/* A node by its serial number, as a place: its path is read once. */
typedef struct {
    uint64_t serial;
    uint32_t place;
} KnownNode;

typedef struct {
    const Strand *strand; /* the thread's, as far as is known */
    int stood;            /* there, at the last look */
    unsigned unsearched;  /* looks until the thread's strand is looked for again */
} Standing;

/* The path of a node that was not met before, as a place; NOWHERE at the ground. */
static uint32_t
read_path(const Reader *reader, StackTree *tree, const Node *node, int depth)
{
    Node copied;
    if (depth == MAX_PATH_DEPTH || !reader_read(reader, node, &copied, sizeof copied) || copied.parent == NULL)
        return NOWHERE;
    uint32_t parent = read_path(reader, tree, copied.parent, depth + 1);
    char *name = read_text(reader, copied.name);
    return name == NULL ? parent : stack_tree_place(tree, parent, name);
}

static uint32_t
place_of_node(const Reader *reader, StackTree *tree, KnownNode *known, const Node *node, uint64_t serial)
{
    KnownNode *here = &known[serial % KNOWN_NODES];
    if (here->serial != serial)
        *here = (KnownNode){serial, read_path(reader, tree, node, 0)};
    return here->place;
}

static const Strand *
search_strand(const Reader *reader, const Recorder *recorder, unsigned long thread_id)
{
    const Strand *strands[MAX_SEARCHED], *found = NULL;
    Strand **all = __atomic_load_n(&recorder->strands, __ATOMIC_RELAXED);
    Py_ssize_t count = __atomic_load_n(&recorder->strand_count, __ATOMIC_RELAXED);
    if (count > MAX_SEARCHED)
        count = MAX_SEARCHED;
    if (all == NULL || count <= 0 || !reader_read(reader, all, strands, (size_t)count * sizeof *strands))
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        Strand copied;
        if (reader_read(reader, strands[i], &copied, sizeof copied) && copied.thread_id == thread_id &&
            !copied.ended && (found == NULL || copied.outer == found))
            found = strands[i];
    }
    return found;
}

/* The strand to look at; NULL if there is none. */
static const Strand *
expected_strand(const Reader *reader, const Recorder *recorder, Standing *standing, unsigned long thread_id)
{
    if (recorder == NULL || !__atomic_load_n(&recorder->enabled, __ATOMIC_RELAXED))
        return NULL;
    if (!standing->stood && standing->unsearched-- == 0) {
        standing->unsearched = SEARCH_EVERY - 1;
        standing->strand = search_strand(reader, recorder, thread_id);
    }
    return standing->strand;
}

/* Where the thread stands in each recorder's tree: NOWHERE if it has nothing open there. */
static void
find_places(const Reader *reader, StackTree *tree, KnownNode *known, Recorder *const *recorders,
            Standing *standings, unsigned long thread_id, uint32_t *places)
{
    Strand strands[RECORDERS];
    Frame tops[RECORDERS];
    uint64_t serials[RECORDERS];
    ReadPart parts[RECORDERS];
    for (int i = 0; i < RECORDERS; i++) {
        const Strand *strand = expected_strand(reader, recorders[i], &standings[i], thread_id);
        parts[i] = (ReadPart){strand, &strands[i], sizeof strands[i]};
    }
    reader_read_what_is_there(reader, parts, RECORDERS);
    for (int i = 0; i < RECORDERS; i++) {
        const Strand *strand = &strands[i];
        int is_open = strand->recorder != NULL && strand->recorder == recorders[i] &&
                      strand->thread_id == thread_id && !strand->ended && strand->depth > 0;
        parts[i] = (ReadPart){is_open ? strand->frames + strand->depth : NULL, &tops[i], sizeof tops[i]};
    }
    reader_read_what_is_there(reader, parts, RECORDERS);
    for (int i = 0; i < RECORDERS; i++) {
        const Node *node = tops[i].node;
        parts[i] = (ReadPart){node == NULL ? NULL : &node->serial, &serials[i], sizeof serials[i]};
    }
    reader_read_what_is_there(reader, parts, RECORDERS);
    for (int i = 0; i < RECORDERS; i++) {
        standings[i].stood = serials[i] != 0;
        places[i] = serials[i] == 0 ? NOWHERE : place_of_node(reader, tree, known, tops[i].node, serials[i]);
    }
}

#endif
#endif
