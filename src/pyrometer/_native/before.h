/* A function with another called first, adding no frame to the program's tracebacks. */
#ifndef PYROMETER_BEFORE_H
#define PYROMETER_BEFORE_H

#include "tree.h"

#include <structmember.h>

typedef struct {
    PyObject_HEAD
    PyObject *hook;
    PyObject *function;
    unsigned long long failures;
    int sparing; /* the hook is left out while spare_hooks is set */
    vectorcallfunc vectorcall;
} Before;

static int spare_hooks;

static PyObject *
before_call(PyObject *self, PyObject *const *arguments, size_t count, PyObject *keywords)
{
    Before *before = (Before *)self;
    if (before->sparing && spare_hooks)
        return PyObject_Vectorcall(before->function, arguments, count, keywords);
    PyObject *answer =
        PyObject_Vectorcall(before->hook, arguments, (size_t)PyVectorcall_NARGS(count), NULL);
    if (answer == NULL) {
        before->failures++;
        swallow_error();
    }
    Py_XDECREF(answer);
    return PyObject_Vectorcall(before->function, arguments, count, keywords);
}

static PyObject *
before_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyObject *hook, *function;
    int sparing = 0;
    if (!PyArg_ParseTuple(arguments, "OO|p", &hook, &function, &sparing))
        return NULL;
    Before *self = (Before *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->hook = Py_NewRef(hook);
    self->function = Py_NewRef(function);
    self->sparing = sparing;
    self->vectorcall = before_call;
    return (PyObject *)self;
}

static int
before_traverse(Before *self, visitproc visit, void *arg)
{
    Py_VISIT(self->hook);
    Py_VISIT(self->function);
    return 0;
}

static int
before_clear(Before *self)
{
    Py_CLEAR(self->hook);
    Py_CLEAR(self->function);
    return 0;
}

static void
before_dealloc(Before *self)
{
    PyObject_GC_UnTrack(self);
    before_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *
before_get(PyObject *self, PyObject *instance, PyObject *type)
{
    return instance == NULL || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

static PyMemberDef before_members[] = {
    {"hook", T_OBJECT, offsetof(Before, hook), READONLY, "Called first, with the positional arguments."},
    {"__wrapped__", T_OBJECT, offsetof(Before, function), READONLY, "The function itself."},
    {"failures", T_ULONGLONG, offsetof(Before, failures), READONLY, "How often the hook raised."},
    {NULL},
};

static PyTypeObject Before_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyrometer._native.core.Before",
    .tp_doc = "Before(hook, function, sparing=False): calls the hook, whose errors are only counted, then the function. A sparing one calls it only in steps that a watch looks at closely.",
    .tp_basicsize = sizeof(Before),
    .tp_dealloc = (destructor)before_dealloc,
    .tp_vectorcall_offset = offsetof(Before, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_traverse = (traverseproc)before_traverse,
    .tp_clear = (inquiry)before_clear,
    .tp_members = before_members,
    .tp_descr_get = before_get,
    .tp_new = before_new,
};

#endif
