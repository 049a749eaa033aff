/* What a sampler has seen, put together: stacks as a tree, the places in scopes, and how often each. */
#ifndef PYROMETER_STACK_TREE_H
#define PYROMETER_STACK_TREE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STACK_NODES 100000
#define MAX_PLACES 20000
#define MAX_OBSERVATIONS 50000
#define NOWHERE UINT32_MAX

/* Indexes of the rows of a growing table, found by a hash: each table says when two rows are the same. */
typedef struct {
    uint32_t *places; /* row + 1 */
    size_t capacity;
} Index;

typedef struct {
    uint32_t parent, code;
    int32_t line;
} StackNode;

/* A scope, or a call of torch's, inside another. */
typedef struct {
    uint32_t parent;
    char *name;
} Place;

typedef struct {
    uint32_t stack, thread, scope, call, leaf;
} ObservationKey;

typedef struct {
    ObservationKey key;
    uint64_t samples, waiting, native, wall_ns, running_ns;
} Observation;

typedef struct {
    StackNode *nodes;
    size_t node_count, node_capacity;
    Index node_index;
    Place *places;
    size_t place_count, place_capacity;
    Index place_index;
    Observation *observations;
    size_t observation_count, observation_capacity;
    Index observation_index;
    uint64_t cut; /* samples whose stack or place found no room: counted where there was some */
} StackTree;

static inline uint64_t
mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

/* Room for one more row, and for its place in the index. */
static int
table_grow(void **rows, size_t count, size_t *capacity, size_t row_size)
{
    if (count < *capacity)
        return 1;
    size_t wanted = *capacity ? *capacity * 2 : 256;
    void *grown = realloc(*rows, wanted * row_size);
    if (grown == NULL)
        return 0;
    *rows = grown;
    *capacity = wanted;
    return 1;
}

typedef uint64_t (*RowHash)(const StackTree *tree, size_t row);

static int
index_grow(Index *index, const StackTree *tree, size_t count, RowHash hash_of)
{
    if ((count + 1) * 2 <= index->capacity)
        return 1;
    size_t capacity = index->capacity ? index->capacity * 2 : 1024;
    uint32_t *places = calloc(capacity, sizeof *places);
    if (places == NULL)
        return 0;
    for (size_t row = 0; row < count; row++) {
        size_t at = hash_of(tree, row) & (capacity - 1);
        while (places[at])
            at = (at + 1) & (capacity - 1);
        places[at] = (uint32_t)row + 1;
    }
    free(index->places);
    index->places = places;
    index->capacity = capacity;
    return 1;
}

static inline void
index_put(Index *index, uint64_t hash, size_t row)
{
    size_t at = hash & (index->capacity - 1);
    while (index->places[at])
        at = (at + 1) & (index->capacity - 1);
    index->places[at] = (uint32_t)row + 1;
}

#define INDEX_EACH(index, hash, row)                                                                       \
    if ((index)->capacity > 0)                                                                             \
        for (size_t at_ = (hash) & ((index)->capacity - 1), row;                                           \
             (index)->places[at_] && (row = (index)->places[at_] - 1, 1);                                  \
             at_ = (at_ + 1) & ((index)->capacity - 1))

/* Stacks. */

static inline uint64_t
node_hash(uint32_t parent, uint32_t code, int32_t line)
{
    return mix(mix(mix(1, parent), code), (uint32_t)line);
}

static uint64_t
node_hash_of(const StackTree *tree, size_t row)
{
    const StackNode *node = &tree->nodes[row];
    return node_hash(node->parent, node->code, node->line);
}

/* The node of a frame under another, which may be new; the other one where there is no more room. */
static uint32_t
stack_tree_node(StackTree *tree, uint32_t parent, uint32_t code, int32_t line)
{
    uint64_t hash = node_hash(parent, code, line);
    INDEX_EACH(&tree->node_index, hash, row) {
        const StackNode *node = &tree->nodes[row];
        if (node->parent == parent && node->code == code && node->line == line)
            return (uint32_t)row;
    }
    if (tree->node_count == MAX_STACK_NODES ||
        !table_grow((void **)&tree->nodes, tree->node_count, &tree->node_capacity, sizeof(StackNode)) ||
        !index_grow(&tree->node_index, tree, tree->node_count, node_hash_of)) {
        tree->cut++;
        return parent;
    }
    tree->nodes[tree->node_count] = (StackNode){parent, code, line};
    index_put(&tree->node_index, hash, tree->node_count);
    return (uint32_t)tree->node_count++;
}

/* Places. */

static inline uint64_t
place_hash(uint32_t parent, const char *name)
{
    uint64_t hash = mix(2, parent);
    for (; *name; name++)
        hash = mix(hash, (unsigned char)*name);
    return hash;
}

static uint64_t
place_hash_of(const StackTree *tree, size_t row)
{
    return place_hash(tree->places[row].parent, tree->places[row].name);
}

/* The place of that name inside another; takes the name over. The other one where there is no room. */
static uint32_t
stack_tree_place(StackTree *tree, uint32_t parent, char *name)
{
    uint64_t hash = place_hash(parent, name);
    INDEX_EACH(&tree->place_index, hash, row) {
        if (tree->places[row].parent == parent && strcmp(tree->places[row].name, name) == 0) {
            free(name);
            return (uint32_t)row;
        }
    }
    if (tree->place_count == MAX_PLACES ||
        !table_grow((void **)&tree->places, tree->place_count, &tree->place_capacity, sizeof(Place)) ||
        !index_grow(&tree->place_index, tree, tree->place_count, place_hash_of)) {
        free(name);
        tree->cut++;
        return parent;
    }
    tree->places[tree->place_count] = (Place){parent, name};
    index_put(&tree->place_index, hash, tree->place_count);
    return (uint32_t)tree->place_count++;
}

/* Observations. */

static inline uint64_t
observation_hash(const ObservationKey *key)
{
    return mix(mix(mix(mix(mix(3, key->stack), key->thread), key->scope), key->call), key->leaf);
}

static uint64_t
observation_hash_of(const StackTree *tree, size_t row)
{
    return observation_hash(&tree->observations[row].key);
}

/* NULL without memory. Where there is no more room, that of the thread's stacks in no place, and of
 * the first of all if even that is new. */
static Observation *
stack_tree_observation(StackTree *tree, ObservationKey key)
{
    uint64_t hash = observation_hash(&key);
    INDEX_EACH(&tree->observation_index, hash, row) {
        const ObservationKey *known = &tree->observations[row].key;
        if (known->stack == key.stack && known->thread == key.thread && known->scope == key.scope &&
            known->call == key.call && known->leaf == key.leaf)
            return &tree->observations[row];
    }
    if (tree->observation_count == MAX_OBSERVATIONS) {
        tree->cut++;
        int is_plain = key.scope == NOWHERE && key.call == NOWHERE && key.leaf == NOWHERE;
        ObservationKey plain = {key.stack, key.thread, NOWHERE, NOWHERE, NOWHERE};
        return is_plain ? &tree->observations[0] : stack_tree_observation(tree, plain);
    }
    if (!table_grow((void **)&tree->observations, tree->observation_count, &tree->observation_capacity,
                    sizeof(Observation)) ||
        !index_grow(&tree->observation_index, tree, tree->observation_count, observation_hash_of))
        return NULL;
    tree->observations[tree->observation_count] = (Observation){.key = key};
    index_put(&tree->observation_index, hash, tree->observation_count);
    return &tree->observations[tree->observation_count++];
}

static void
stack_tree_clear(StackTree *tree)
{
    for (size_t i = 0; i < tree->place_count; i++)
        free(tree->places[i].name);
    free(tree->nodes);
    free(tree->places);
    free(tree->observations);
    free(tree->node_index.places);
    free(tree->place_index.places);
    free(tree->observation_index.places);
    memset(tree, 0, sizeof *tree);
}

#endif
