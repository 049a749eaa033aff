/* Calls of modules: a tree by qualified name, with root calls as phases of their own. */
#ifndef PYROMETER_MODULE_CALLS_H
#define PYROMETER_MODULE_CALLS_H

#include "backward.h"

#define MEASURED_CALLS 4

typedef struct ModuleEntry {
    PyObject *module; /* compared, never followed: weak tells whether it still lives */
    PyObject *weak;
    Scope *scope;
    int is_loss;
    int measured; /* calls whose sizes were taken */
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
            return LIKELY(PyWeakref_GET_OBJECT(entry->weak) == module) ? entry : NULL;
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
        if (watch->entries[i] != NULL && PyWeakref_GET_OBJECT(watch->entries[i]->weak) != Py_None)
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
        if (PyWeakref_GET_OBJECT(entry->weak) == Py_None) {
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

/* Asks for the module's name. NULL without an error if there is none: it is then not recorded. */
static __attribute__((noinline)) ModuleEntry *
describe_module(ModuleCall *call, WatchThread *thread, PyObject *module)
{
    Watch *watch = call->watch;
    PyObject *parent = Py_None;
    if (thread->module_depth > 0 && thread->module_depth <= MAX_MODULE_DEPTH)
        parent = thread->modules[thread->module_depth - 1].module;
    uint64_t began_ns = recorder_now_ns(watch->recorder);
    SavedError error = save_error();
    PyObject *told[] = {module, parent};
    PyObject *description = PyObject_Vectorcall(call->describe, told, 2, NULL);
    ModuleEntry *entry = NULL;
    PyObject *name;
    int is_loss;
    if (description != NULL && PyArg_ParseTuple(description, "Up", &name, &is_loss))
        entry = watch_add_entry(watch, module, name, is_loss);
    Py_XDECREF(description);
    if (entry == NULL)
        PyErr_Clear();
    restore_error(error);
    watch->hook_ns += recorder_now_ns(watch->recorder) - began_ns;
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
static void
tell_of_call(Watch *watch, PyObject *callback, PyObject *module, PyObject *name,
             PyObject *const *arguments, Py_ssize_t count, PyObject *keywords, PyObject *last)
{
    SavedError error = save_error();
    PyObject *tuple = arguments_as_tuple(arguments, count);
    PyObject *dict = keywords_as_dict(arguments, count, keywords);
    if (tuple != NULL && dict != NULL) {
        PyObject *with_name[] = {module, name, tuple, dict, last};
        PyObject *without[] = {module, tuple, dict, last};
        if (name != NULL)
            watch_call_back(watch, callback, with_name, 5);
        else
            watch_call_back(watch, callback, without, 4);
    }
    else {
        PyErr_Clear();
    }
    Py_XDECREF(tuple);
    Py_XDECREF(dict);
    restore_error(error);
}

static int
asks_true(PyObject *question)
{
    SavedError error = save_error();
    PyObject *answer = PyObject_CallNoArgs(question);
    int yes = answer == Py_True;
    if (answer == NULL)
        PyErr_Clear();
    Py_XDECREF(answer);
    restore_error(error);
    return yes;
}

/* The call itself, as a node of the tree. */
static inline PyObject *
call_recorded(ModuleCall *call, WatchThread *thread, ModuleEntry *entry, PyObject *const *arguments,
              size_t count, PyObject *keywords)
{
    Recorder *recorder = call->watch->recorder;
    Scope *scope = entry->scope;
    int recorded = recorder->enabled;
    Py_INCREF(scope); /* a reset while the module runs clears the table */
    if (LIKELY(thread->module_depth < MAX_MODULE_DEPTH)) {
        thread->modules[thread->module_depth].module = entry->module;
        thread->modules[thread->module_depth].scope = scope;
    }
    thread->module_depth++;
    if (LIKELY(recorded))
        recorder_enter(recorder, scope, NULL);
    PyObject *result = call_function(call->base.function, arguments, count, keywords);
    if (LIKELY(recorded && recorder->enabled))
        recorder_exit(recorder, scope, 0);
    thread->module_depth--;
    Py_DECREF(scope);
    return result;
}

/* As above, in a step that was chosen: backward marks are set, and a few calls measured. */
static __attribute__((noinline)) PyObject *
call_detailed(ModuleCall *call, WatchThread *thread, ModuleEntry *entry, PyObject *const *arguments,
              size_t count, PyObject *keywords)
{
    Watch *watch = call->watch;
    Py_ssize_t depth = thread->module_depth;
    int marks = watch->detail == SIZES_AND_MARKS && depth < MAX_MODULE_DEPTH && thread->phase != BACKWARD_PHASE &&
                asks_true(call->tracks_gradients);
    if (marks) {
        uint64_t began_ns = recorder_now_ns(watch->recorder);
        thread->modules[depth].first_sequence = ask_sequence_number(call->sequence_number);
        mark_inputs(watch, thread, depth, arguments + 1,
                    PyVectorcall_NARGS(count) - 1 + (keywords == NULL ? 0 : PyTuple_GET_SIZE(keywords)));
        watch->hook_ns += recorder_now_ns(watch->recorder) - began_ns;
    }
    PyObject *result = call_recorded(call, thread, entry, arguments, count, keywords);
    if (result == NULL)
        return NULL;
    /* What the module did may have cleared the table: ask again. */
    entry = watch_lookup(watch, arguments[0]);
    if (entry == NULL)
        return result;
    if (marks) {
        uint64_t began_ns = recorder_now_ns(watch->recorder);
        thread->modules[depth].scope = entry->scope;
        mark_output(watch, thread, depth, result);
        watch->hook_ns += recorder_now_ns(watch->recorder) - began_ns;
    }
    if (entry->measured < MEASURED_CALLS) {
        entry->measured++;
        tell_of_call(watch, call->measure, arguments[0], entry->scope->name, arguments,
                     PyVectorcall_NARGS(count), keywords, result);
    }
    return result;
}

static inline PyObject *
call_module(ModuleCall *call, WatchThread *thread, ModuleEntry *entry, PyObject *const *arguments,
            size_t count, PyObject *keywords)
{
    if (UNLIKELY(call->watch->detail != NO_DETAIL))
        return call_detailed(call, thread, entry, arguments, count, keywords);
    return call_recorded(call, thread, entry, arguments, count, keywords);
}

static PyObject *
call_inside(ModuleCall *call, WatchThread *thread, ModuleEntry *entry, Scope *around,
            PyObject *const *arguments, size_t count, PyObject *keywords)
{
    Recorder *recorder = call->watch->recorder;
    int recorded = recorder->enabled;
    if (recorded)
        recorder_enter(recorder, around, NULL);
    PyObject *result = call_module(call, thread, entry, arguments, count, keywords);
    if (recorded && recorder->enabled)
        recorder_exit(recorder, around, 0);
    return result;
}

static __attribute__((noinline)) PyObject *
call_root(ModuleCall *call, WatchThread *thread, ModuleEntry *entry, PyObject *const *arguments,
          size_t count, PyObject *keywords)
{
    Watch *watch = call->watch;
    if ((call->keeps >> thread->phase) & 1) {
        if (thread->phase == BACKWARD_PHASE)
            return call_inside(call, thread, entry, watch->recomputed, arguments, count, keywords);
        return call_module(call, thread, entry, arguments, count, keywords);
    }
    PyObject *module = arguments[0];
    int is_loss = entry->is_loss, tracks = asks_true(call->tracks_gradients);
    if (!is_loss) {
        tell_of_call(watch, call->root_begun, module, NULL, arguments, PyVectorcall_NARGS(count), keywords,
                     tracks ? Py_True : Py_False);
        entry = watch_lookup(watch, module);
        if (entry == NULL)
            return call_function(call->base.function, arguments, count, keywords);
    }
    int outer = thread->phase, phase = is_loss ? LOSS_PHASE : FORWARD_PHASE;
    Scope *around = is_loss || tracks ? watch->scopes[phase] : watch->untracked_forward;
    uint64_t began_ns = thread_switch(thread, thread->held ? outer : phase);
    PyObject *result = call_inside(call, thread, entry, around, arguments, count, keywords);
    uint64_t ended_ns = thread_switch(thread, outer);
    if (!is_loss) {
        SavedError error = save_error();
        PyObject *duration = PyLong_FromUnsignedLongLong(ended_ns - began_ns);
        PyObject *told[] = {module, result == NULL ? Py_None : result, duration,
                            result == NULL ? Py_True : Py_False};
        if (duration != NULL)
            watch_call_back(watch, call->root_ended, told, 4);
        else
            PyErr_Clear();
        Py_XDECREF(duration);
        restore_error(error);
    }
    return result;
}

static PyObject *
module_call(PyObject *self, PyObject *const *arguments, size_t count, PyObject *keywords)
{
    ModuleCall *call = (ModuleCall *)self;
    Watch *watch = call->watch;
    if (LIKELY(watch->active && PyVectorcall_NARGS(count) > 0)) {
        WatchThread *thread = watch_thread(watch);
        ModuleEntry *entry = thread == NULL ? NULL : watch_lookup(watch, arguments[0]);
        if (UNLIKELY(entry == NULL && thread != NULL))
            entry = describe_module(call, thread, arguments[0]);
        if (LIKELY(entry != NULL)) {
            if (thread->module_depth == 0)
                return call_root(call, thread, entry, arguments, count, keywords);
            return call_module(call, thread, entry, arguments, count, keywords);
        }
    }
    return call_function(call->base.function, arguments, count, keywords);
}

static int
module_call_traverse(ModuleCall *self, visitproc visit, void *arg)
{
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
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_traverse = (traverseproc)module_call_traverse,
    .tp_clear = (inquiry)module_call_clear,
    .tp_richcompare = wrapper_compare,
    .tp_hash = wrapper_hash,
    .tp_descr_get = profiled_get,
};

#endif
