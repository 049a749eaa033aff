/* The variables of a running function, without a trace: asked for `f_locals`, an interpreter before
 * 3.13 makes a dict that stays with the frame and keeps alive what the program has let go of. */
#ifndef PYROMETER_FRAME_LOCALS_H
#define PYROMETER_FRAME_LOCALS_H

#include "owner.h"

static const char frame_locals_doc[] = "The local variables of a frame, as a dict of their own.";

#if PY_VERSION_HEX < 0x030D0000
static PyObject *
frame_locals(PyObject *module, PyObject *object)
{
    if (!PyFrame_Check(object))
        return PyErr_Format(PyExc_TypeError, "%R is not a frame", object);
    _PyInterpreterFrame *frame = ((PyFrameObject *)object)->f_frame;
    PyCodeObject *code = frame->f_code;
    PyObject *variables = PyDict_New();
    if (!(code->co_flags & CO_OPTIMIZED)) {
        /* At the top of a module or class they are a dict already. */
        if (variables != NULL && frame->f_locals != NULL && PyDict_Check(frame->f_locals) &&
            PyDict_Update(variables, frame->f_locals) < 0)
            Py_CLEAR(variables);
        return variables;
    }
    for (int i = 0; i < code->co_nlocalsplus && variables != NULL; i++) {
        PyObject *value = frame->localsplus[i];
        /* What an inner function shares. A program that keeps cells of its own is not missed here. */
        if (value != NULL && PyCell_Check(value))
            value = PyCell_GET(value);
        if (value != NULL &&
            PyDict_SetItem(variables, PyTuple_GET_ITEM(code->co_localsplusnames, i), value) < 0)
            Py_CLEAR(variables);
    }
    return variables;
}
#else
static PyObject *
frame_locals(PyObject *module, PyObject *object)
{
    if (!PyFrame_Check(object))
        return PyErr_Format(PyExc_TypeError, "%R is not a frame", object);
    PyObject *locals = PyFrame_GetLocals((PyFrameObject *)object);
    PyObject *variables = locals == NULL ? NULL : PyDict_New();
    if (variables != NULL && PyDict_Update(variables, locals) < 0)
        Py_CLEAR(variables);
    Py_XDECREF(locals);
    return variables;
}
#endif

#endif
