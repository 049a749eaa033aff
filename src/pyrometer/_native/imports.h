/* The function of the import system that executes modules, telling of those waited for.
 *
 * It adds no frame to tracebacks and stacks, and looks like the function itself. An audit hook would
 * be seen even less, but can never be taken off again, and with any hook at all Python prepares its
 * events: id() takes twice the time from then on, copy.deepcopy() 1.17 times. */
#ifndef PYROMETER_IMPORTS_H
#define PYROMETER_IMPORTS_H

#include "watch.h"

typedef struct {
    Profiled base;
    PyObject *waiting;  /* a dict by module name: the caller's own, looked into only */
    PyObject *executed; /* called with the name */
} Executing;

static PyObject *name_dunder_name;

/* What is called is (exec, code, the module's names), among other things. */
static PyObject *
name_waited_for(Executing *executing, PyObject *const *arguments, size_t count)
{
    if (PyVectorcall_NARGS(count) != 3 || !PyDict_CheckExact(arguments[2]) ||
        PyDict_GET_SIZE(executing->waiting) == 0)
        return NULL;
    PyObject *name = PyDict_GetItemWithError(arguments[2], name_dunder_name);
    if (name == NULL || !PyUnicode_CheckExact(name) || PyDict_Contains(executing->waiting, name) != 1)
        return NULL;
    return Py_NewRef(name);
}

static PyObject *
executing_call(PyObject *self, PyObject *const *arguments, size_t count, PyObject *keywords)
{
    Executing *executing = (Executing *)self;
    PyObject *result = call_function(executing->base.function, arguments, count, keywords);
    PyObject *name = result == NULL ? NULL : name_waited_for(executing, arguments, count);
    if (LIKELY(name == NULL))
        return result;
    PyObject *answer = PyObject_CallOneArg(executing->executed, name);
    Py_DECREF(name);
    if (answer == NULL) {
        if (PyErr_ExceptionMatches(PyExc_Exception))
            PyErr_Clear();
        else
            Py_CLEAR(result); /* out of a signal handler of the program's */
    }
    Py_XDECREF(answer);
    return result;
}

static int
executing_traverse(Executing *self, visitproc visit, void *arg)
{
    Py_VISIT(self->waiting);
    Py_VISIT(self->executed);
    return profiled_traverse(&self->base, visit, arg);
}

static int
executing_clear(Executing *self)
{
    Py_CLEAR(self->executed);
    return profiled_clear(&self->base);
}

static void
executing_dealloc(Executing *self)
{
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->executed);
    Py_CLEAR(self->waiting);
    profiled_dealloc(&self->base);
}

static PyTypeObject Executing_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyrometer._native.core.Executing",
    .tp_doc = "What executes modules, telling of those waited for.",
    .tp_base = &Profiled_Type,
    .tp_basicsize = sizeof(Executing),
    .tp_dealloc = (destructor)executing_dealloc,
    .tp_vectorcall_offset = offsetof(Profiled, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_repr = wrapper_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_traverse = (traverseproc)executing_traverse,
    .tp_clear = (inquiry)executing_clear,
    .tp_methods = wrapper_methods,
    .tp_richcompare = wrapper_compare,
    .tp_hash = wrapper_hash,
    .tp_descr_get = profiled_get,
};

#define executing_doc                                                                                         \
    "executing(function, waiting, executed): the import system's function that calls exec() for a module, "  \
    "telling afterwards of each name in waiting."

static PyObject *
executing(PyObject *module, PyObject *arguments)
{
    static const int never = 0;
    PyObject *function, *waiting, *executed;
    if (!PyArg_ParseTuple(arguments, "OO!O", &function, &PyDict_Type, &waiting, &executed))
        return NULL;
    Executing *self = (Executing *)Executing_Type.tp_alloc(&Executing_Type, 0);
    if (self == NULL)
        return NULL;
    self->base.function = Py_NewRef(function);
    self->base.enabled = &never;
    self->base.vectorcall = executing_call;
    self->waiting = Py_NewRef(waiting);
    self->executed = Py_NewRef(executed);
    PyObject *functools = PyImport_ImportModule("functools");
    PyObject *dressed =
        functools == NULL ? NULL : PyObject_CallMethod(functools, "update_wrapper", "OO", self, function);
    Py_XDECREF(functools);
    Py_DECREF(self);
    return dressed;
}

#endif
