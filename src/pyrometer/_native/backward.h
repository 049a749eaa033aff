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

typedef struct {
    PyObject_VAR_HEAD
    Watch *watch;
    vectorcallfunc vectorcall;
    Scope *path[]; /* from the root module to the one whose backward part begins here */
} BackwardMark;

static PyObject *name_grad_fn, *name_sequence_number, *name_register_prehook;
static PyObject *tensor_type; /* torch.Tensor, once torch is there */

/* Open exactly these scopes under the backward phase. */
static void
thread_follow(WatchThread *thread, Scope *const *path, int length)
{
    Recorder *recorder = thread->watch->recorder;
    int common = 0;
    while (common < length && common < thread->backward_depth && path[common] == thread->backward_path[common])
        common++;
    while (thread->backward_depth > common) {
        Scope *scope = thread->backward_path[--thread->backward_depth];
        if (recorder->enabled)
            recorder_exit(recorder, scope, 0);
        Py_DECREF(scope);
    }
    while (thread->backward_depth < length) {
        Scope *scope = path[thread->backward_depth];
        Py_INCREF(scope);
        thread->backward_path[thread->backward_depth++] = scope;
        if (recorder->enabled)
            recorder_enter(recorder, scope, NULL);
    }
}

static void
backward_ended(WatchThread *thread, uint64_t duration_ns)
{
    thread_follow(thread, NULL, 0);
    thread->marks_met = 0;
    thread->watch->timed_backward_passes++;
    thread->watch->timed_backward_ns += duration_ns;
}

static PyObject *
mark_met(PyObject *self, PyObject *const *arguments, size_t count, PyObject *keywords)
{
    BackwardMark *mark = (BackwardMark *)self;
    WatchThread *thread = current_watch_thread;
    /* On a GPU's own thread, or in a pass that began unwatched, nobody would close what it opens. */
    if (mark->watch->active && thread != NULL && thread->watch == mark->watch && thread->in_backward) {
        thread->marks_met++;
        thread_follow(thread, mark->path, (int)Py_SIZE(mark));
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

static uint64_t
ask_sequence_number(PyObject *question)
{
    SavedError error = save_error();
    PyObject *answer = PyObject_CallNoArgs(question);
    uint64_t number = answer == NULL ? 0 : PyLong_AsUnsignedLongLong(answer);
    Py_XDECREF(answer);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        number = 0;
    }
    restore_error(error);
    return number;
}

/* Whether the number is new among those marked in this step; it is noted then. */
static int
note_marked(Watch *watch, uint64_t number)
{
    uint64_t key = number + 1; /* 0 is a free place */
    if ((watch->marked_count + 1) * 2 > watch->marked_capacity) {
        size_t capacity = watch->marked_capacity ? watch->marked_capacity * 2 : 256;
        uint64_t *marked = calloc(capacity, sizeof *marked);
        if (marked == NULL)
            return 0;
        for (size_t i = 0; i < watch->marked_capacity; i++) {
            if (watch->marked[i] == 0)
                continue;
            size_t k = watch->marked[i] & (capacity - 1);
            while (marked[k] != 0)
                k = (k + 1) & (capacity - 1);
            marked[k] = watch->marked[i];
        }
        free(watch->marked);
        watch->marked = marked;
        watch->marked_capacity = capacity;
    }
    size_t mask = watch->marked_capacity - 1, i = key & mask;
    while (watch->marked[i] != 0) {
        if (watch->marked[i] == key)
            return 0;
        i = (i + 1) & mask;
    }
    watch->marked[i] = key;
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

/* Marks the node the tensor came from as belonging to the innermost of the `depth` open modules in
 * which it was made. */
static void
mark_tensor(Watch *watch, WatchThread *thread, Py_ssize_t depth, PyObject *tensor)
{
    PyObject *node = PyObject_GetAttr(tensor, name_grad_fn);
    if (node == NULL || node == Py_None) {
        Py_XDECREF(node);
        return;
    }
    PyObject *answer = PyObject_CallMethodNoArgs(node, name_sequence_number);
    uint64_t number = answer == NULL ? 0 : PyLong_AsUnsignedLongLong(answer);
    Py_XDECREF(answer);
    if (!PyErr_Occurred() && note_marked(watch, number)) {
        while (depth > 0 && number < thread->modules[depth - 1].first_sequence)
            depth--;
        BackwardMark *mark = PyObject_NewVar(BackwardMark, &BackwardMark_Type, depth);
        if (mark != NULL) {
            mark->watch = (Watch *)Py_NewRef(watch);
            mark->vectorcall = mark_met;
            for (Py_ssize_t i = 0; i < depth; i++)
                mark->path[i] = (Scope *)Py_NewRef(thread->modules[i].scope);
            PyObject *handle = PyObject_CallMethodOneArg(node, name_register_prehook, (PyObject *)mark);
            Py_XDECREF(handle);
            Py_DECREF(mark);
        }
    }
    Py_DECREF(node);
}

static void
mark_value(Watch *watch, WatchThread *thread, Py_ssize_t depth, PyObject *value, int levels)
{
    if (tensor_type != NULL && PyObject_TypeCheck(value, (PyTypeObject *)tensor_type)) {
        mark_tensor(watch, thread, depth, value);
        return;
    }
    if (levels == 0)
        return;
    if (PyTuple_Check(value)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++)
            mark_value(watch, thread, depth, PyTuple_GET_ITEM(value, i), levels - 1);
    }
    else if (PyList_Check(value)) {
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); i++)
            mark_value(watch, thread, depth, PyList_GET_ITEM(value, i), levels - 1);
    }
    else if (PyDict_Check(value)) {
        PyObject *key, *item;
        Py_ssize_t position = 0;
        while (PyDict_Next(value, &position, &key, &item))
            mark_value(watch, thread, depth, item, levels - 1);
    }
}

static void
mark_inputs(Watch *watch, WatchThread *thread, Py_ssize_t depth, PyObject *const *values, Py_ssize_t count)
{
    SavedError error = save_error();
    for (Py_ssize_t i = 0; i < count; i++)
        mark_value(watch, thread, depth, values[i], 2);
    PyErr_Clear();
    restore_error(error);
}

static void
mark_output(Watch *watch, WatchThread *thread, Py_ssize_t depth, PyObject *value)
{
    SavedError error = save_error();
    mark_value(watch, thread, depth + 1, value, 2);
    PyErr_Clear();
    restore_error(error);
}

#endif
