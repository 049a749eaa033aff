/* Scopes: entering and leaving, and the object a program holds. */
#ifndef PYROMETER_SCOPE_H
#define PYROMETER_SCOPE_H

#include <structmember.h>

#include "watching.h"

/* A scope entered by a generator or coroutine. */
static void
prepare_owner(Recorder *recorder, PyObject *owner)
{
    SavedError error = save_error();
    if (watch_owner(owner) < 0) {
        if (PyErr_Occurred())
            swallow_error();
        recorder->unseen_suspensions++;
    }
    restore_error(error);
}

/* Entering and leaving. */

static inline void
recorder_enter(Recorder *recorder, Scope *scope, PyObject *owner)
{
    Strand *strand = recorder_strand(recorder);
    if (UNLIKELY(strand == NULL))
        return;
    strand->entries++;
    if (UNLIKELY(strand->owned > 0 || owner != NULL)) {
        recorder_settle(recorder, strand, owner, 0);
        if (owner != NULL)
            prepare_owner(recorder, owner);
    }
    if (UNLIKELY(!recorder->enabled))
        return; /* stopped by another thread while Python code ran in here */
    Frame *top = &strand->frames[strand->depth];
    Node *node;
    if (UNLIKELY(top->ghost)) {
        top->absorbed++;
        return;
    }
    if (LIKELY(scope->cached_parent == top->node && scope->cached_generation == recorder->generation)) {
        node = scope->cached_node;
    }
    else {
        node = recorder_place(recorder, strand, top->node, scope->name, scope->hash);
        if (UNLIKELY(node == NULL)) {
            top->absorbed++;
            return;
        }
        /* Overflow is counted each time, so it is not remembered. */
        if (LIKELY(!node->is_other)) {
            scope->cached_parent = top->node;
            scope->cached_node = node;
            scope->cached_generation = recorder->generation;
        }
    }
    /* A clock in Python may do anything, so it is read before the push; the machine's comes last,
     * so that what a scope costs is not in it. */
    uint64_t now_ns = 0;
    if (UNLIKELY(recorder->clock != NULL)) {
        uint64_t epoch = recorder->epoch;
        now_ns = python_clock_ns(recorder);
        if (epoch != recorder->epoch || !recorder->enabled)
            return;
    }
    Frame *frame = strand_push(strand, node, owner);
    if (LIKELY(frame != NULL))
        frame_begin_slice(frame, LIKELY(recorder->clock == NULL) ? clock_now_ns() : now_ns);
}

static Py_ssize_t
strand_find_open(const Strand *strand, PyObject *name, Py_hash_t hash)
{
    for (Py_ssize_t i = strand->depth; i > 0; i--) {
        const Node *node = strand->frames[i].node;
        if (node->is_other ? PyUnicode_Compare(node->name, name) == 0 : node_is_named(node, name, hash))
            return i;
    }
    return 0;
}

static void
recorder_exit_slowly(Recorder *recorder, Strand *strand, Scope *scope, PyObject *owner, uint64_t now_ns)
{
    recorder_settle(recorder, strand, owner, 1);
    Frame *top = &strand->frames[strand->depth];
    if (top->absorbed > 0) {
        top->absorbed--;
        return;
    }
    if (top->node->is_other) {
        /* Whatever its name was, it was counted here. */
        strand_close_top(strand, now_ns, 1);
        return;
    }
    Py_ssize_t index = strand_find_open(strand, scope->name, scope->hash);
    if (index == 0) {
        recorder->unmatched_exits++;
        return;
    }
    for (; strand->depth > index; recorder->out_of_order++)
        strand_close_top(strand, now_ns, 1);
    strand_close_top(strand, now_ns, 1);
}

static inline void
recorder_exit(Recorder *recorder, Scope *scope, int from_scope)
{
    uint64_t now_ns = recorder_now_ns(recorder);
    Strand *strand = recorder_find_strand(recorder);
    if (UNLIKELY(strand == NULL)) {
        recorder->unmatched_exits++;
        return;
    }
    Frame *top = &strand->frames[strand->depth];
    if (LIKELY(strand->owned == 0 && top->absorbed == 0 && strand->depth > 0 &&
               recorder->segment_count == 0 &&
               (top->node->name == scope->name ||
                (top->node == scope->cached_node &&
                 scope->cached_generation == recorder->generation))))
        strand_close_top(strand, now_ns, 1);
    else
        recorder_exit_slowly(recorder, strand, scope, from_scope ? owner_of_caller() : NULL, now_ns);
}


static PyTypeObject Scope_Type;

/* Scopes written inline come and go: a few are kept for reuse. */
#define FREE_SCOPES 32
static Scope *free_scopes[FREE_SCOPES];
static int free_scope_count;

static Scope *
scope_new(Recorder *recorder, PyObject *name)
{
    Scope *scope;
    if (LIKELY(free_scope_count > 0)) {
        scope = free_scopes[--free_scope_count];
        Py_SET_REFCNT((PyObject *)scope, 1);
    }
    else {
        scope = PyObject_New(Scope, &Scope_Type);
        if (scope == NULL)
            return NULL;
    }
    scope->recorder = (Recorder *)Py_NewRef(recorder);
    scope->name = Py_NewRef(name);
    Py_hash_t hash = ((PyASCIIObject *)name)->hash;
    scope->hash = LIKELY(hash != -1) ? hash : PyObject_Hash(name);
    scope->cached_parent = scope->cached_node = NULL;
    return scope;
}

static void
scope_dealloc(Scope *self)
{
    Py_DECREF(self->recorder);
    Py_DECREF(self->name);
    if (LIKELY(free_scope_count < FREE_SCOPES))
        free_scopes[free_scope_count++] = self;
    else
        PyObject_Free(self);
}

static PyObject *
scope_enter(Scope *self, PyObject *nothing)
{
    if (self->recorder->enabled)
        recorder_enter(self->recorder, self, owner_of_caller());
    return Py_NewRef(self);
}

static PyObject *
scope_exit(Scope *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (self->recorder->enabled)
        recorder_exit(self->recorder, self, 1);
    Py_RETURN_NONE;
}

static PyObject *
scope_repr(Scope *self)
{
    return PyUnicode_FromFormat("scope(%R)", self->name);
}

static PyMethodDef scope_methods[] = {
    {"__enter__", (PyCFunction)scope_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))scope_exit, METH_FASTCALL, NULL},
    {NULL},
};

static PyMemberDef scope_members[] = {
    {"name", T_OBJECT, offsetof(Scope, name), READONLY, "What the scope is called in reports."},
    {NULL},
};

static PyTypeObject Scope_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyrometer._native.core.Scope",
    .tp_doc = "A named stretch of code; `with` it as often and as deeply nested as you like.",
    .tp_basicsize = sizeof(Scope),
    .tp_dealloc = (destructor)scope_dealloc,
    .tp_repr = (reprfunc)scope_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_methods = scope_methods,
    .tp_members = scope_members,
};

/* The name as an exact str, or NULL with a TypeError. */
static PyObject *
scope_name(PyObject *name)
{
    if (LIKELY(PyUnicode_CheckExact(name) && PyUnicode_GET_LENGTH(name) <= MAX_NAME_LENGTH))
        return Py_NewRef(name);
    if (PyUnicode_Check(name) && PyUnicode_GET_LENGTH(name) <= MAX_NAME_LENGTH)
        return PyUnicode_FromObject(name);
    if (PyUnicode_Check(name)) {
        PyObject *start = PyUnicode_Substring(name, 0, MAX_NAME_LENGTH - 1);
        PyObject *cut = start == NULL ? NULL : PyUnicode_Concat(start, ellipsis);
        Py_XDECREF(start);
        return cut;
    }
    PyErr_Format(PyExc_TypeError, "a scope's name must be a str, not %s: %R", Py_TYPE(name)->tp_name, name);
    return NULL;
}

#endif
