/* What a program under valgrind can ask of it, and what is asked when a scope is to be counted.
 *
 * A request is a sequence of instructions that does nothing on a real processor, and that valgrind
 * knows (include/valgrind.h of its sources, which may be copied). Written out here, because its
 * headers are not to be had wherever this is built.
 */
#ifndef PYROMETER_VALGRIND_REQUESTS_H
#define PYROMETER_VALGRIND_REQUESTS_H

#include <stdint.h>

#include "compiler.h"
#include "profiled.h"

#define VALGRIND_IS_RUNNING 0x1001
#define CALLGRIND_REQUESTS ((uint64_t)'C' << 24 | (uint64_t)'T' << 16)

enum {
    CALLGRIND_DUMP = 0,
    CALLGRIND_TOGGLE_COLLECTION = 2,
    CALLGRIND_START_INSTRUMENTATION = 4,
    CALLGRIND_STOP_INSTRUMENTATION = 5,
};

static uint64_t
ask_valgrind(uint64_t request)
{
    volatile uint64_t question[6] = {request};
    uint64_t answer = 0;
#if defined(__x86_64__)
    __asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\t"
                     "rolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
                     "xchgq %%rbx, %%rbx"
                     : "=d"(answer)
                     : "a"(&question[0]), "0"(answer)
                     : "cc", "memory");
#elif defined(__aarch64__)
    __asm__ volatile("mov x3, %1\n\tmov x4, %2\n\t"
                     "ror x12, x12, #3\n\tror x12, x12, #13\n\t"
                     "ror x12, x12, #51\n\tror x12, x12, #61\n\t"
                     "orr x10, x10, x10\n\t"
                     "mov %0, x3"
                     : "=r"(answer)
                     : "r"(answer), "r"(&question[0])
                     : "cc", "memory", "x3", "x4");
#endif
    return answer;
}

static void
ask_callgrind(uint64_t request)
{
    ask_valgrind(CALLGRIND_REQUESTS + request);
}

static const char on_valgrind_doc[] = "Whether this process runs on valgrind.";

static PyObject *
on_valgrind(PyObject *module, PyObject *nothing)
{
    return PyBool_FromLong(ask_valgrind(VALGRIND_IS_RUNNING) != 0);
}

static const char start_callgrind_doc[] = "Have callgrind look at every instruction from now on.";

static PyObject *
start_callgrind(PyObject *module, PyObject *nothing)
{
    ask_callgrind(CALLGRIND_START_INSTRUMENTATION);
    Py_RETURN_NONE;
}

static const char stop_callgrind_doc[] = "Have callgrind look at nothing, and the program run faster.";

static PyObject *
stop_callgrind(PyObject *module, PyObject *nothing)
{
    ask_callgrind(CALLGRIND_STOP_INSTRUMENTATION);
    Py_RETURN_NONE;
}

static const char dump_callgrind_doc[] = "Have callgrind write down what it has counted, and begin anew.";

static PyObject *
dump_callgrind(PyObject *module, PyObject *nothing)
{
    ask_callgrind(CALLGRIND_DUMP);
    Py_RETURN_NONE;
}

/* Callgrind keeps for each thread whether it is counted. Here: how often the scope is open. */
THREAD_LOCAL int counted_depth;

static const char leave_thread_out_doc[] = "Have callgrind not count the calling thread, if it counts all.";

static PyObject *
leave_thread_out(PyObject *module, PyObject *nothing)
{
    if (counted_depth++ == 0)
        ask_callgrind(CALLGRIND_TOGGLE_COLLECTION);
    Py_RETURN_NONE;
}

/* The scopes of one name. Entering and leaving have ways of their own, put in place of the usual
 * ones only when a scope is to be counted: nobody else pays for it. */
static PyObject *counted_name;
static int counting_began;

static int
is_counted(const Scope *scope)
{
    return counted_name != NULL && PyUnicode_Compare(scope->name, counted_name) == 0;
}

static void
begin_counted(void)
{
    if (!counting_began) {
        counting_began = 1;
        /* And never off again: each start costs a translation of all code, and empties the caches. */
        ask_callgrind(CALLGRIND_START_INSTRUMENTATION);
    }
    if (counted_depth++ == 0)
        ask_callgrind(CALLGRIND_TOGGLE_COLLECTION);
}

static void
end_counted(void)
{
    if (counted_depth > 0 && --counted_depth == 0)
        ask_callgrind(CALLGRIND_TOGGLE_COLLECTION);
}

static PyObject *
counted_scope_enter(Scope *self, PyObject *nothing)
{
    PyObject *entered = scope_enter(self, nothing);
    if (is_counted(self))
        begin_counted();
    return entered;
}

static PyObject *
counted_scope_exit(Scope *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (is_counted(self))
        end_counted();
    return scope_exit(self, arguments, count);
}

static PyMethodDef counted_scope_methods[] = {
    {"__enter__", (PyCFunction)counted_scope_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))counted_scope_exit, METH_FASTCALL, NULL},
    {NULL},
};

static PyObject *
counted_call(PyObject *self, PyObject *const *arguments, size_t count, PyObject *keywords)
{
    if (!is_counted(((Profiled *)self)->scope))
        return profiled_call(self, arguments, count, keywords);
    begin_counted();
    PyObject *result = profiled_call(self, arguments, count, keywords);
    end_counted();
    return result;
}

static vectorcallfunc
profiled_vectorcall(void)
{
    return LIKELY(counted_name == NULL) ? profiled_call : counted_call;
}

static const char count_scope_doc[] =
    "Have callgrind count the threads that are in scopes of that name, while they are; None: no longer.";

static PyObject *
count_scope(PyObject *module, PyObject *name)
{
    if (name != Py_None && !PyUnicode_Check(name))
        return PyErr_Format(PyExc_TypeError, "a scope's name must be a str, not %R", name);
    PyMethodDef *method = name == Py_None ? scope_methods : counted_scope_methods;
    for (; method->ml_name != NULL; method++) {
        PyObject *descriptor = PyDescr_NewMethod(&Scope_Type, method);
        if (descriptor == NULL || PyDict_SetItemString(Scope_Type.tp_dict, method->ml_name, descriptor) < 0) {
            Py_XDECREF(descriptor);
            return NULL;
        }
        Py_DECREF(descriptor);
    }
    PyType_Modified(&Scope_Type);
    Py_XSETREF(counted_name, name == Py_None ? NULL : Py_NewRef(name));
    Py_RETURN_NONE;
}

#endif
