/* The backward pass by module, in steps that were chosen for it.
 *
 * Autograd numbers its nodes as the forward pass makes them, and a backward pass on one thread runs
 * them from the highest number down. So the nodes of a module's call run one after another, and
 * a mark on the node a module's output came from, and on the ones its inputs came from, tells where
 * its part begins and ends. A mark is a hook before the node: no node is added to the graph.
 */
#ifndef PYROMETER_BACKWARD_H
#define PYROMETER_BACKWARD_H

#include "watch.h"

/* Of a tuple, list or dictionary, so many are searched for tensors. */
#define MAX_ITEMS 256

typedef struct {
    PyObject_VAR_HEAD
    Watch *watch;
    vectorcallfunc vectorcall;
    Scope *path[]; /* from the root module to the one whose backward part begins here */
} BackwardMark;

static PyObject *name_grad_fn, *name_sequence_number, *name_register_prehook, *name_enter, *name_exit;

/* Open exactly these scopes under the backward phase. */
static void
thread_follow(WatchThread *thread, Scope *const *path, size_t length)
{
    Recorder *recorder = thread->watch->recorder;
    if (thread->backward_run != recorder->run) {
        thread_drop_path(thread);
        thread->backward_run = recorder->run;
    }
    size_t common = 0;
    while (common < length && common < thread->backward_depth && path[common] == thread->backward_path[common])
        common++;
    while (thread->backward_depth > common) {
        Scope *scope = thread->backward_path[--thread->backward_depth];
        close_call(recorder, scope, thread->backward_run);
        Py_DECREF(scope);
    }
    while (thread->backward_depth < length) {
        Scope *scope = path[thread->backward_depth];
        thread->backward_path[thread->backward_depth++] = (Scope *)Py_NewRef(scope);
        open_call(recorder, scope);
    }
}

static void
backward_ended(WatchThread *thread, uint64_t began_ns, int raised)
{
    Watch *watch = thread->watch;
    thread->in_backward = 0;
    if (thread->marks_met == 0)
        return;
    thread->marks_met = 0;
    thread_follow(thread, NULL, 0);
    if (watch->active && !raised) {
        watch->timed_backward_passes++;
        watch->timed_backward_ns += elapsed_ns(began_ns, recorder_now_ns(watch->recorder));
    }
}

static PyObject *
mark_met(PyObject *self, PyObject *const *arguments, size_t count, PyObject *keywords)
{
    BackwardMark *mark = (BackwardMark *)self;
    WatchThread *thread = current_watch_thread;
    if (thread != NULL && thread->watch != mark->watch)
        thread = watch_thread(mark->watch);
    /* On a GPU's own thread, or in a pass that began unwatched, nobody would close what it opens. */
    if (mark->watch->active && thread != NULL && thread->in_backward) {
        thread->marks_met++;
        thread_follow(thread, mark->path, (size_t)Py_SIZE(mark));
    }
    Py_RETURN_NONE;
}

static void
mark_dealloc(BackwardMark *self)
{
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++)
        Py_DECREF(self->path[i]);
    Py_DECREF(self->watch);
    PyObject_Free(self);
}

static PyTypeObject BackwardMark_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyrometer._native.core.BackwardMark",
    .tp_doc = "Tells that the backward pass has come to a module.",
    .tp_basicsize = sizeof(BackwardMark),
    .tp_itemsize = sizeof(Scope *),
    .tp_dealloc = (destructor)mark_dealloc,
    .tp_vectorcall_offset = offsetof(BackwardMark, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

/* The nodes marked, by number; numbers are given out by each thread for itself. */

static uint64_t
marked_key(const WatchThread *thread, uint64_t number)
{
    uint64_t key = number ^ ((uint64_t)(uintptr_t)thread << 20);
    return key == 0 ? 1 : key;
}

static void
put_marked(uint64_t *marked, size_t capacity, uint64_t key)
{
    size_t i = key & (capacity - 1);
    while (marked[i] != 0)
        i = (i + 1) & (capacity - 1);
    marked[i] = key;
}

/* Whether the key is new among those marked in this step; it is noted then. */
static int
note_marked(Watch *watch, uint64_t key)
{
    if ((watch->marked_count + 1) * 2 > watch->marked_capacity) {
        size_t capacity = watch->marked_capacity ? watch->marked_capacity * 2 : 256;
        uint64_t *marked = calloc(capacity, sizeof *marked);
        if (marked == NULL)
            return 0;
        for (size_t i = 0; i < watch->marked_capacity; i++)
            if (watch->marked[i] != 0)
                put_marked(marked, capacity, watch->marked[i]);
        free(watch->marked);
        watch->marked = marked;
        watch->marked_capacity = capacity;
    }
    size_t mask = watch->marked_capacity - 1;
    for (size_t i = key & mask; watch->marked[i] != 0; i = (i + 1) & mask)
        if (watch->marked[i] == key)
            return 0;
    put_marked(watch->marked, watch->marked_capacity, key);
    watch->marked_count++;
    return 1;
}

static void
forget_marked(Watch *watch)
{
    if (watch->marked_count > 0)
        memset(watch->marked, 0, watch->marked_capacity * sizeof *watch->marked);
    watch->marked_count = 0;
}

/* Marking. All return 0, or -1 with an exception of the program's own. */

typedef struct {
    Watch *watch;
    WatchThread *thread;
    Py_ssize_t depth;
    uint64_t starts;
} Marking;

/* Marks the node as belonging to the innermost of the `depth` open modules in which it was made. */
static int
mark_node(const Marking *marking, PyObject *node)
{
    Watch *watch = marking->watch;
    PyObject *answer = PyObject_CallMethodNoArgs(node, name_sequence_number);
    if (answer == NULL)
        return watch_note_failure(watch);
    uint64_t number = PyLong_AsUnsignedLongLong(answer);
    Py_DECREF(answer);
    if (PyErr_Occurred())
        return watch_note_failure(watch);
    if (watch->starts != marking->starts || !note_marked(watch, marked_key(marking->thread, number)))
        return 0;
    const OpenModule *modules = marking->thread->modules;
    Py_ssize_t depth = marking->depth;
    while (depth > 0 && number < modules[depth - 1].first_sequence)
        depth--;
    BackwardMark *mark = PyObject_NewVar(BackwardMark, &BackwardMark_Type, depth);
    if (mark == NULL)
        return watch_note_failure(watch);
    mark->watch = (Watch *)Py_NewRef(watch);
    mark->vectorcall = mark_met;
    for (Py_ssize_t i = 0; i < depth; i++)
        mark->path[i] = (Scope *)Py_NewRef(modules[i].scope);
    PyObject *handle = PyObject_CallMethodOneArg(node, name_register_prehook, (PyObject *)mark);
    Py_DECREF(mark);
    if (handle == NULL)
        return watch_note_failure(watch);
    Py_DECREF(handle);
    return 0;
}

static int
mark_tensor(const Marking *marking, PyObject *tensor)
{
    PyObject *node = PyObject_GetAttr(tensor, name_grad_fn);
    if (node == NULL)
        return watch_note_failure(marking->watch);
    int outcome = node == Py_None ? 0 : mark_node(marking, node);
    Py_DECREF(node);
    return outcome;
}

/* Marks the tensors in a value, as far as they lie in containers of so many levels. */
static int
mark_value(const Marking *marking, PyObject *value, int levels)
{
    PyObject *tensor_type = marking->watch->tensor_type;
    if (tensor_type != NULL && PyObject_TypeCheck(value, (PyTypeObject *)tensor_type))
        return mark_tensor(marking, value);
    if (levels == 0)
        return 0;
    PyObject *items; /* of lists and dictionaries a copy: what is asked of a tensor may change them */
    if (PyTuple_Check(value))
        items = Py_NewRef(value);
    else if (PyList_Check(value))
        items = PyList_GetSlice(value, 0, MAX_ITEMS);
    else if (PyDict_Check(value))
        items = PyDict_Values(value);
    else
        return 0;
    if (items == NULL)
        return watch_note_failure(marking->watch);
    int outcome = 0, is_tuple = PyTuple_Check(items);
    Py_ssize_t size = Py_SIZE(items);
    for (Py_ssize_t i = 0; i < size && i < MAX_ITEMS && outcome == 0; i++) {
        PyObject *item = is_tuple ? PyTuple_GET_ITEM(items, i) : PyList_GET_ITEM(items, i);
        outcome = mark_value(marking, item, levels - 1);
    }
    Py_DECREF(items);
    return outcome;
}

/* From here on only torch hears what is asked of tensors. NULL: see watch_note_failure. */
static PyObject *
begin_unheard(Watch *watch)
{
    if (watch->unheard == NULL)
        return Py_NewRef(Py_None);
    PyObject *context = PyObject_CallNoArgs(watch->unheard);
    PyObject *entered = context == NULL ? NULL : PyObject_CallMethodNoArgs(context, name_enter);
    if (entered == NULL)
        Py_CLEAR(context);
    Py_XDECREF(entered);
    return context;
}

static int
end_unheard(Watch *watch, PyObject *context)
{
    SavedError error = save_error();
    PyObject *left = Py_NewRef(Py_None);
    if (context != Py_None)
        Py_SETREF(left, PyObject_CallMethodObjArgs(context, name_exit, Py_None, Py_None, Py_None, NULL));
    Py_DECREF(context);
    int outcome = left == NULL ? watch_note_failure(watch) : 0;
    Py_XDECREF(left);
    return settle_error(error, outcome);
}

static int
mark_values(const Marking *marking, PyObject *const *values, Py_ssize_t count)
{
    Watch *watch = marking->watch;
    if (count == 0)
        return 0;
    uint64_t began_ns = recorder_now_ns(watch->recorder);
    PyObject *context = begin_unheard(watch);
    if (context == NULL)
        return watch_note_failure(watch);
    int outcome = 0;
    for (Py_ssize_t i = 0; i < count && outcome == 0; i++)
        outcome = mark_value(marking, values[i], 2);
    outcome |= end_unheard(watch, context);
    watch->hook_ns += elapsed_ns(began_ns, recorder_now_ns(watch->recorder));
    return outcome;
}

#endif
