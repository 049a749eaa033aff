/* Calls of modules: a tree by qualified name, with root calls as phases of their own. */
#ifndef PYROMETER_MODULE_CALLS_H
#define PYROMETER_MODULE_CALLS_H

#include "backward.h"
#include "loop.h"

#define MEASURED_CALLS 16

typedef struct ModuleEntry {
    PyObject *module; /* compared, never followed: weak tells whether it still lives */
    PyObject *weak;
    Scope *scope;
    int is_loss;
    int measured; /* calls whose sizes were taken */
    int learned;  /* Python has seen it return */
} ModuleEntry;

typedef struct {
    Profiled base;
    Watch *watch;
    uint32_t keeps;
    PyObject *describe;   /* (module, parent) -> (name, is_loss) */
    PyObject *root_begun; /* (module, arguments, keywords, tracks_gradients) */
    PyObject *root_ended; /* (module, result, duration_ns, raised) */
    PyObject *measure;    /* (module, name, arguments, keywords, result) */
    PyObject *tracks_gradients, *sequence_number;
} ModuleCall;

static void
module_entry_free(ModuleEntry *entry)
{
    Py_DECREF(entry->weak);
    Py_DECREF(entry->scope);
    free(entry);
}

/* Py_None once it has died. Compared, never followed, and cheaper than any function for it. */
static inline PyObject *
weak_target(PyObject *weak)
{
    return ((PyWeakReference *)weak)->wr_object;
}

static inline size_t
address_hash(const void *address)
{
    return (size_t)(((uintptr_t)address >> 4) * 0x9E3779B97F4A7C15u >> 20);
}

static inline ModuleEntry *
watch_lookup(Watch *watch, PyObject *module)
{
    if (UNLIKELY(watch->entry_capacity == 0))
        return NULL;
    size_t mask = watch->entry_capacity - 1;
    for (size_t i = address_hash(module) & mask;; i = (i + 1) & mask) {
        ModuleEntry *entry = watch->entries[i];
        if (entry == NULL)
            return NULL;
        if (LIKELY(entry->module == module))
            /* Another module may have lived at this address. */
            return LIKELY(weak_target(entry->weak) == module) ? entry : NULL;
    }
}

/* Room for one more; modules that have died make place. */
static int
watch_grow_entries(Watch *watch)
{
    if ((watch->entry_count + 1) * 2 <= watch->entry_capacity)
        return 0;
    size_t living = 0;
    for (size_t i = 0; i < watch->entry_capacity; i++)
        if (watch->entries[i] != NULL && weak_target(watch->entries[i]->weak) != Py_None)
            living++;
    size_t capacity = 64;
    while (capacity < (living + 1) * 4)
        capacity *= 2;
    ModuleEntry **entries = calloc(capacity, sizeof *entries);
    if (entries == NULL)
        return -1;
    ModuleEntry **old = watch->entries;
    size_t old_capacity = watch->entry_capacity;
    watch->entries = entries;
    watch->entry_capacity = capacity;
    watch->entry_count = living;
    for (size_t i = 0; i < old_capacity; i++) {
        ModuleEntry *entry = old[i];
        if (entry == NULL)
            continue;
        if (weak_target(entry->weak) == Py_None) {
            module_entry_free(entry);
            continue;
        }
        size_t k = address_hash(entry->module) & (capacity - 1);
        while (entries[k] != NULL)
            k = (k + 1) & (capacity - 1);
        entries[k] = entry;
    }
    free(old);
    return 0;
}

static void
watch_clear_entries(Watch *watch)
{
    for (size_t i = 0; i < watch->entry_capacity; i++)
        if (watch->entries[i] != NULL)
            module_entry_free(watch->entries[i]);
    free(watch->entries);
    watch->entries = NULL;
    watch->entry_capacity = watch->entry_count = 0;
}

static ModuleEntry *
watch_add_entry(Watch *watch, PyObject *module, PyObject *name, int is_loss)
{
    if (watch_grow_entries(watch) < 0)
        return NULL;
    PyObject *weak = PyWeakref_NewRef(module, NULL);
    PyObject *exact = weak == NULL ? NULL : scope_name(name);
    Scope *scope = exact == NULL ? NULL : scope_new(watch->recorder, exact);
    ModuleEntry *entry = scope == NULL ? NULL : calloc(1, sizeof *entry);
    Py_XDECREF(exact);
    if (entry == NULL) {
        Py_XDECREF(weak);
        Py_XDECREF(scope);
        return NULL;
    }
    entry->module = module;
    entry->weak = weak;
    entry->scope = scope;
    entry->is_loss = is_loss;
    size_t mask = watch->entry_capacity - 1, i = address_hash(module) & mask;
    while (watch->entries[i] != NULL && watch->entries[i]->module != module)
        i = (i + 1) & mask;
    if (watch->entries[i] != NULL)
        module_entry_free(watch->entries[i]); /* of one that lived here before */
    else
        watch->entry_count++;
    watch->entries[i] = entry;
    return entry;
}

/* Asks for the module's name. NULL if there is none, and it is then not recorded; with an exception
 * only if that is the program's own. */
static __attribute__((noinline)) ModuleEntry *
describe_module(ModuleCall *call, WatchThread *thread, PyObject *module)
{
    Watch *watch = call->watch;
    PyObject *parent = Py_None;
    if (thread->module_depth > 0) {
        int is_kept = thread->module_depth <= MAX_MODULE_DEPTH;
        parent = thread->modules[is_kept ? thread->module_depth - 1 : MAX_MODULE_DEPTH - 1].module;
    }
    Py_INCREF(parent);
    uint64_t began_ns = recorder_now_ns(watch->recorder);
    PyObject *told[] = {module, parent};
    PyObject *description = PyObject_Vectorcall(call->describe, told, 2, NULL);
    ModuleEntry *entry = NULL;
    PyObject *name;
    int is_loss;
    if (description != NULL && PyArg_ParseTuple(description, "Up", &name, &is_loss))
        entry = watch_add_entry(watch, module, name, is_loss);
    if (entry == NULL && PyErr_Occurred())
        watch_note_failure(watch);
    Py_XDECREF(description);
    Py_DECREF(parent);
    watch->hook_ns += elapsed_ns(began_ns, recorder_now_ns(watch->recorder));
    return entry;
}

static PyObject *
keywords_as_dict(PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
    if (keywords == NULL || PyTuple_GET_SIZE(keywords) == 0)
        return Py_NewRef(Py_None);
    PyObject *dict = PyDict_New();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keywords) && dict != NULL; i++)
        if (PyDict_SetItem(dict, PyTuple_GET_ITEM(keywords, i), arguments[count + i]) < 0)
            Py_CLEAR(dict);
    return dict;
}

static PyObject *
arguments_as_tuple(PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *tuple = PyTuple_New(count - 1);
    for (Py_ssize_t i = 1; i < count && tuple != NULL; i++)
        PyTuple_SET_ITEM(tuple, i - 1, Py_NewRef(arguments[i]));
    return tuple;
}

/* Calls back with what the module was called with, between two values of the caller's. */
static int
tell_of_call(Watch *watch, PyObject *callback, PyObject *name, PyObject *const *arguments, size_t count,
             PyObject *keywords, PyObject *last)
{
    Py_ssize_t positional = PyVectorcall_NARGS(count);
    PyObject *tuple = arguments_as_tuple(arguments, positional);
    PyObject *dict = keywords_as_dict(arguments, positional, keywords);
    int outcome;
    if (tuple == NULL || dict == NULL) {
        outcome = watch_note_failure(watch);
    }
    else if (name != NULL) {
        PyObject *told[] = {arguments[0], name, tuple, dict, last};
        outcome = watch_call_back(watch, callback, told, 5);
    }
    else {
        PyObject *told[] = {arguments[0], tuple, dict, last};
        outcome = watch_call_back(watch, callback, told, 4);
    }
    Py_XDECREF(tuple);
    Py_XDECREF(dict);
    return outcome;
}

/* Whether the answer is True; -1 with an exception of the program's own. */
static int
asks_true(Watch *watch, PyObject *question)
{
    PyObject *answer = PyObject_CallNoArgs(question);
    if (answer == NULL)
        return watch_note_failure(watch);
    int yes = answer == Py_True;
    Py_DECREF(answer);
    return yes;
}

/* 0 if it cannot be told; with an exception only if that is the program's own. */
static uint64_t
ask_number(Watch *watch, PyObject *question)
{
    PyObject *answer = PyObject_CallNoArgs(question);
    uint64_t number = answer == NULL ? 0 : PyLong_AsUnsignedLongLong(answer);
    Py_XDECREF(answer);
    if (PyErr_Occurred()) {
        watch_note_failure(watch);
        return 0;
    }
    return number;
}

/* The call itself, as a node of the tree. The scope is the caller's, who keeps it alive: a reset
 * while the module runs clears the table. */
static inline PyObject *
call_recorded(ModuleCall *call, WatchThread *thread, Scope *scope, uint64_t first_sequence,
              PyObject *const *arguments, size_t count, PyObject *keywords)
{
    Watch *watch = call->watch;
    uint64_t starts = watch->starts;
    Py_ssize_t depth = thread->module_depth++;
    if (LIKELY(depth < MAX_MODULE_DEPTH)) {
        OpenModule *opened = &thread->modules[depth];
        opened->module = arguments[0];
        opened->scope = scope;
        opened->first_sequence = first_sequence;
    }
    uint64_t run = open_call(watch->recorder, scope);
    PyObject *result = call_function(call->base.function, arguments, count, keywords);
    close_call(watch->recorder, scope, run);
    if (LIKELY(watch->starts == starts))
        thread->module_depth = depth;
    return result;
}

/* After a detailed call: its output is marked, and it is measured. -1 with an exception of the
 * program's own. */
static int
look_at_result(ModuleCall *call, WatchThread *thread, Scope *scope, int marks, PyObject *const *arguments,
               size_t count, PyObject *keywords, PyObject *result)
{
    Watch *watch = call->watch;
    if (marks) {
        /* As if still open: what is called meanwhile goes below. */
        Marking marking = {watch, thread, ++thread->module_depth, watch->starts};
        int outcome = mark_values(&marking, &result, 1);
        if (watch->starts != marking.starts)
            return outcome;
        thread->module_depth--;
        if (outcome < 0)
            return -1;
    }
    ModuleEntry *entry = watch_lookup(watch, arguments[0]);
    if (entry == NULL || entry->measured >= MEASURED_CALLS)
        return 0;
    entry->measured++;
    return tell_of_call(watch, call->measure, scope->name, arguments, count, keywords, result);
}

/* In a step that was chosen: backward marks are set, and a few calls measured. */
static __attribute__((noinline)) PyObject *
call_detailed(ModuleCall *call, WatchThread *thread, Scope *scope, PyObject *const *arguments, size_t count,
              PyObject *keywords)
{
    Watch *watch = call->watch;
    uint64_t starts = watch->starts, first_sequence = 0;
    int marks = watch->detail == SIZES_AND_MARKS && thread->module_depth < MAX_MODULE_DEPTH &&
                thread->found != BACKWARD_PHASE;
    if (marks && (marks = asks_true(watch, call->tracks_gradients)) < 0)
        return NULL;
    if (marks) {
        first_sequence = ask_number(watch, call->sequence_number);
        Marking marking = {watch, thread, thread->module_depth, starts};
        Py_ssize_t inputs = PyVectorcall_NARGS(count) - 1 + (keywords == NULL ? 0 : PyTuple_GET_SIZE(keywords));
        if (PyErr_Occurred() || mark_values(&marking, arguments + 1, inputs) < 0)
            return NULL;
    }
    PyObject *result = call_recorded(call, thread, scope, first_sequence, arguments, count, keywords);
    if (result == NULL || !watch->active || watch->starts != starts)
        return result;
    if (look_at_result(call, thread, scope, marks, arguments, count, keywords, result) < 0)
        Py_CLEAR(result);
    return result;
}

static inline PyObject *
call_nested(ModuleCall *call, WatchThread *thread, Scope *scope, PyObject *const *arguments, size_t count,
            PyObject *keywords)
{
    if (UNLIKELY(call->watch->detail != NO_DETAIL))
        return call_detailed(call, thread, scope, arguments, count, keywords);
    return call_recorded(call, thread, scope, 0, arguments, count, keywords);
}

static PyObject *
call_inside(ModuleCall *call, WatchThread *thread, Scope *scope, Scope *around, PyObject *const *arguments,
            size_t count, PyObject *keywords)
{
    Recorder *recorder = call->watch->recorder;
    uint64_t run = open_call(recorder, around);
    PyObject *result = call_nested(call, thread, scope, arguments, count, keywords);
    close_call(recorder, around, run);
    return result;
}

/* Tells that a root call has ended, unless the loop has taken note of it and the module is known. */
static PyObject *
root_ended(ModuleCall *call, WatchThread *thread, PyObject *module, int noted, uint64_t began_ns,
           PyObject *result)
{
    Watch *watch = call->watch;
    ModuleEntry *entry = watch_lookup(watch, module);
    if (noted && entry != NULL && entry->learned)
        return result;
    if (entry != NULL)
        entry->learned = result != NULL;
    uint64_t duration_ns = elapsed_ns(began_ns, recorder_now_ns(watch->recorder));
    if (loop_hand_over(watch, thread) < 0)
        Py_CLEAR(result);
    return watch_tell_end(watch, call->root_ended, module, result, duration_ns);
}

/* A call that is in no other module's: a phase of its own, unless it is part of one. */
static __attribute__((noinline)) PyObject *
call_root(ModuleCall *call, WatchThread *thread, Scope *scope, int is_loss, PyObject *const *arguments,
          size_t count, PyObject *keywords)
{
    Watch *watch = call->watch;
    if ((call->keeps >> thread->found) & 1) {
        if (thread->found == BACKWARD_PHASE)
            return call_inside(call, thread, scope, watch->recomputed, arguments, count, keywords);
        return call_nested(call, thread, scope, arguments, count, keywords);
    }
    uint64_t began_ns = thread_charge(thread); /* as in phased_call_watched */
    int tracks = asks_true(watch, call->tracks_gradients);
    if (tracks < 0)
        return NULL;
    int noted = is_loss || loop_root_begun(watch, thread, scope, tracks);
    if (!noted) {
        if (loop_hand_over(watch, thread) < 0)
            return NULL;
        PyObject *told = tracks ? Py_True : Py_False;
        if (tell_of_call(watch, call->root_begun, NULL, arguments, count, keywords, told) < 0)
            return NULL;
        if (!watch->active)
            return call_function(call->base.function, arguments, count, keywords);
        began_ns = recorder_now_ns(watch->recorder);
    }
    uint64_t starts = watch->starts;
    int outer = thread->phase, found = thread->found, phase = is_loss ? LOSS_PHASE : FORWARD_PHASE;
    int stands = thread->held && outer == phase; /* named by the program itself */
    Scope *around = is_loss || tracks ? watch->scopes[phase] : watch->untracked_forward;
    thread->phase = thread->held ? outer : phase;
    thread->found = phase;
    PyObject *result = stands ? call_nested(call, thread, scope, arguments, count, keywords)
                              : call_inside(call, thread, scope, around, arguments, count, keywords);
    if (UNLIKELY(watch->starts != starts))
        return result;
    if (!is_loss && watch->active)
        result = root_ended(call, thread, arguments[0], noted, began_ns, result);
    if (LIKELY(watch->starts == starts)) {
        thread_switch(thread, outer);
        thread->found = found;
    }
    return result;
}

static PyObject *
module_call(PyObject *self, PyObject *const *arguments, size_t count, PyObject *keywords)
{
    ModuleCall *call = (ModuleCall *)self;
    Watch *watch = call->watch;
    WatchThread *thread =
        LIKELY(watch->active && PyVectorcall_NARGS(count) > 0) ? watch_thread(watch) : NULL;
    if (UNLIKELY(thread == NULL))
        return call_function(call->base.function, arguments, count, keywords);
    ModuleEntry *entry = watch_lookup(watch, arguments[0]);
    if (UNLIKELY(entry == NULL)) {
        entry = describe_module(call, thread, arguments[0]);
        if (entry == NULL && PyErr_Occurred())
            return NULL;
        if (entry == NULL || !watch->active)
            return call_function(call->base.function, arguments, count, keywords);
    }
    Scope *scope = (Scope *)Py_NewRef(entry->scope);
    PyObject *result = LIKELY(thread->module_depth > 0)
                           ? call_nested(call, thread, scope, arguments, count, keywords)
                           : call_root(call, thread, scope, entry->is_loss, arguments, count, keywords);
    Py_DECREF(scope);
    return result;
}

static int
module_call_traverse(ModuleCall *self, visitproc visit, void *arg)
{
    Py_VISIT(self->watch);
    Py_VISIT(self->describe);
    Py_VISIT(self->root_begun);
    Py_VISIT(self->root_ended);
    Py_VISIT(self->measure);
    Py_VISIT(self->tracks_gradients);
    Py_VISIT(self->sequence_number);
    return profiled_traverse(&self->base, visit, arg);
}

static int
module_call_clear(ModuleCall *self)
{
    Py_CLEAR(self->describe);
    Py_CLEAR(self->root_begun);
    Py_CLEAR(self->root_ended);
    Py_CLEAR(self->measure);
    Py_CLEAR(self->tracks_gradients);
    Py_CLEAR(self->sequence_number);
    return profiled_clear(&self->base);
}

static void
module_call_dealloc(ModuleCall *self)
{
    PyObject_GC_UnTrack(self);
    module_call_clear(self);
    Py_CLEAR(self->watch);
    profiled_dealloc(&self->base);
}

static PyTypeObject ModuleCall_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyrometer._native.core.ModuleCall",
    .tp_doc = "What calls a module, each call recorded.",
    .tp_base = &Profiled_Type,
    .tp_basicsize = sizeof(ModuleCall),
    .tp_dealloc = (destructor)module_call_dealloc,
    .tp_vectorcall_offset = offsetof(Profiled, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_repr = wrapper_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_traverse = (traverseproc)module_call_traverse,
    .tp_clear = (inquiry)module_call_clear,
    .tp_methods = wrapper_methods,
    .tp_richcompare = wrapper_compare,
    .tp_hash = wrapper_hash,
    .tp_descr_get = profiled_get,
};

#endif
