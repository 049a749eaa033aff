/* Profiled functions: called inside a scope, with no Python frame of their own. */
#ifndef PYROMETER_PROFILED_H
#define PYROMETER_PROFILED_H

#include "scope.h"

typedef struct {
    PyObject_HEAD
    PyObject *function;
    const int *enabled; /* the recorder's switch */
    Scope *scope;
    PyObject *dict;
    PyObject *weak_references;
    vectorcallfunc vectorcall;
} Profiled;

static PyTypeObject Profiled_Type;

/* Calls the function; a plain Python function without the checks that any callable needs. */
static inline PyObject *
call_function(PyObject *function, PyObject *const *arguments, size_t count, PyObject *keywords)
{
    if (LIKELY(PyFunction_Check(function)))
        return ((PyFunctionObject *)function)->vectorcall(function, arguments, count, keywords);
    return PyObject_Vectorcall(function, arguments, count, keywords);
}

/* Apart, so that a call while recording is off needs no stack frame here and ends in a jump. */
static __attribute__((noinline)) PyObject *
recorded_call(Profiled *profiled, PyObject *const *arguments, size_t count, PyObject *keywords)
{
    Recorder *recorder = profiled->scope->recorder;
    /* A plain function cannot be suspended: its scope needs no owner. */
    recorder_enter(recorder, profiled->scope, NULL);
    PyObject *result = call_function(profiled->function, arguments, count, keywords);
    if (LIKELY(recorder->enabled))
        recorder_exit(recorder, profiled->scope, 0);
    return result;
}

static PyObject *
profiled_call(PyObject *self, PyObject *const *arguments, size_t count, PyObject *keywords)
{
    Profiled *profiled = (Profiled *)self;
    if (*profiled->enabled)
        return recorded_call(profiled, arguments, count, keywords);
    return call_function(profiled->function, arguments, count, keywords);
}

static PyObject *
profiled_get(PyObject *self, PyObject *instance, PyObject *type)
{
    return instance == NULL || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

static int
profiled_traverse(Profiled *self, visitproc visit, void *arg)
{
    Py_VISIT(self->function);
    Py_VISIT(self->dict);
    return 0;
}

static int
profiled_clear(Profiled *self)
{
    Py_CLEAR(self->function);
    Py_CLEAR(self->dict);
    return 0;
}

static void
profiled_dealloc(Profiled *self)
{
    PyObject_GC_UnTrack(self);
    if (self->weak_references != NULL)
        PyObject_ClearWeakRefs((PyObject *)self);
    profiled_clear(self);
    Py_XDECREF(self->scope);
    PyObject_GC_Del(self);
}

static PyObject *
profiled_repr(Profiled *self)
{
    return PyUnicode_FromFormat("<profiled %R>", self->function);
}

/* Pickled as functions are: by the name under which it can be imported. */
static PyObject *
profiled_reduce(PyObject *self, PyObject *nothing)
{
    return PyObject_GetAttrString(self, "__qualname__");
}

/* What it does not have itself is the function's: __code__, __globals__, __defaults__ and so on. */
static PyObject *
profiled_getattro(PyObject *self, PyObject *name)
{
    PyObject *value = PyObject_GenericGetAttr(self, name);
    if (value != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return value;
    PyErr_Clear();
    return PyObject_GetAttr(((Profiled *)self)->function, name);
}

/* Tools that look at functions (inspect, torch.compile, torch.jit) ask for this class: what they
 * then read is the function's own. */
static PyObject *
profiled_class(Profiled *self, void *closure)
{
    return Py_NewRef(Py_TYPE(self->function));
}

static PyMethodDef profiled_methods[] = {
    {"__reduce__", profiled_reduce, METH_NOARGS, NULL},
    {NULL},
};

static PyGetSetDef profiled_attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict},
    {"__class__", (getter)profiled_class, NULL},
    {NULL},
};

static PyTypeObject Profiled_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyrometer._native.core.Profiled",
    .tp_doc = "A function each call of which is a scope.",
    .tp_basicsize = sizeof(Profiled),
    .tp_dealloc = (destructor)profiled_dealloc,
    .tp_vectorcall_offset = offsetof(Profiled, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_repr = (reprfunc)profiled_repr,
    .tp_getattro = profiled_getattro,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_traverse = (traverseproc)profiled_traverse,
    .tp_clear = (inquiry)profiled_clear,
    .tp_methods = profiled_methods,
    .tp_getset = profiled_attributes,
    .tp_descr_get = profiled_get,
    .tp_dictoffset = offsetof(Profiled, dict),
    .tp_weaklistoffset = offsetof(Profiled, weak_references),
};

#endif
