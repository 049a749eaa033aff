/* Kernels whose work is known exactly, for the limits of the machine. kernels.pyi says what each does.
 *
 * Each call tells when it began and ended, on the monotonic clock, and runs without the GIL: so threads of
 * Python's can run them side by side. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>
#include <time.h>

#include "instruction_sets.h"

#define LINE_BYTES 64
#define BLOCK_BYTES (FLOATS_A_BLOCK * sizeof(float))
/* Apart by no multiple of a page: a load would seem to depend on the store at the same place of another. */
#define GAP_BYTES (17 * LINE_BYTES)

static InstructionSet sets[3];
static int set_count;

typedef struct {
    uint64_t began_ns;
    uint64_t ended_ns;
} Stretch;

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static const Kernels *kernels_named(const char *name) {
    for (int i = 0; i < set_count; i++)
        if (name == NULL || strcmp(sets[i].name, name) == 0)
            return sets[i].kernels;
    PyErr_Format(PyExc_ValueError, "this processor has no instruction set '%s'", name);
    return NULL;
}

/* Arithmetic in registers. */

static PyObject *fma_(PyObject *module, PyObject *arguments) {
    const char *precision, *set = NULL;
    Py_ssize_t rounds;
    if (!PyArg_ParseTuple(arguments, "sn|s", &precision, &rounds, &set))
        return NULL;
    if (rounds < 0)
        return PyErr_Format(PyExc_ValueError, "%zd rounds", rounds);
    const Kernels *kernels = kernels_named(set);
    if (kernels == NULL)
        return NULL;
    double (*kernel)(uint64_t) = NULL;
    unsigned long long flops_a_round = 0;
    if (strcmp(precision, "f32") == 0) {
        kernel = kernels->fma_f32;
        flops_a_round = 2ull * kernels->accumulators * kernels->f32_lanes;
    } else if (strcmp(precision, "f64") == 0) {
        kernel = kernels->fma_f64;
        flops_a_round = 2ull * kernels->accumulators * kernels->f64_lanes;
#ifdef HAS_BF16_KERNEL
    } else if (strcmp(precision, "bf16") == 0 && has_bf16()) {
        kernel = avx512_fma_bf16;
        flops_a_round = 2ull * 24 * BF16_LANES;
#endif
    }
    if (kernel == NULL)
        return PyErr_Format(PyExc_ValueError, "there is no kernel for '%s' on this processor", precision);
    Stretch stretch;
    double sum;
    Py_BEGIN_ALLOW_THREADS
    stretch.began_ns = now_ns();
    sum = kernel((uint64_t)rounds);
    stretch.ended_ns = now_ns();
    Py_END_ALLOW_THREADS
    return Py_BuildValue("KKKd", stretch.began_ns, stretch.ended_ns, flops_a_round * (unsigned long long)rounds, sum);
}

/* Products of matrices. */

typedef struct {
    PyObject_HEAD
    char *memory;
    int is_f64;
} Product;

#define PRODUCT_NUMBERS ((size_t)PRODUCT_SIZE * PRODUCT_SIZE)
/* Three matrices, then the panels of a block of a and of a slice of b. */
#define PRODUCT_MEMORY (3 * PRODUCT_NUMBERS + PRODUCT_DEPTH * (PRODUCT_BLOCK + PRODUCT_SIZE))

static double *as_f64(char *memory) { return (double *)(void *)memory; }
static float *as_f32(char *memory) { return (float *)(void *)memory; }

static size_t number_bytes(const Product *self) { return self->is_f64 ? sizeof(double) : sizeof(float); }

static char *product_part(const Product *self, size_t numbers) {
    return self->memory + numbers * number_bytes(self);
}

static void product_set(Product *self, size_t index, int value) {
    if (self->is_f64)
        as_f64(self->memory)[index] = value;
    else
        as_f32(self->memory)[index] = (float)value;
}

static PyObject *product_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    const char *precision;
    if (!PyArg_ParseTuple(arguments, "s", &precision))
        return NULL;
    int is_f64 = strcmp(precision, "f64") == 0;
    if (!is_f64 && strcmp(precision, "f32") != 0)
        return PyErr_Format(PyExc_ValueError, "there is no product of '%s'", precision);
    Product *self = (Product *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->is_f64 = is_f64;
    void *memory = NULL;
    if (posix_memalign(&memory, LINE_BYTES, PRODUCT_MEMORY * number_bytes(self))) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    self->memory = memory;
    Py_BEGIN_ALLOW_THREADS
    memset(memory, 0, PRODUCT_MEMORY * number_bytes(self));
    for (size_t i = 0; i < PRODUCT_NUMBERS; i++) {
        size_t row = i / PRODUCT_SIZE, column = i % PRODUCT_SIZE;
        product_set(self, i, (int)((row * 3 + column * 7) % 5));
        product_set(self, PRODUCT_NUMBERS + i, (int)((row * 5 + column) % 3));
    }
    Py_END_ALLOW_THREADS
    return (PyObject *)self;
}

static void product_dealloc(Product *self) {
    PyTypeObject *type = Py_TYPE(self);
    free(self->memory);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *product_multiply(Product *self, PyObject *arguments) {
    const char *set = NULL;
    if (!PyArg_ParseTuple(arguments, "|s", &set))
        return NULL;
    const Kernels *kernels = kernels_named(set);
    if (kernels == NULL)
        return NULL;
    Multiply *multiply = self->is_f64 ? kernels->multiply_f64 : kernels->multiply_f32;
    char *a_panels = product_part(self, 3 * PRODUCT_NUMBERS);
    char *b_panels = product_part(self, 3 * PRODUCT_NUMBERS + PRODUCT_DEPTH * PRODUCT_BLOCK);
    Stretch stretch;
    Py_BEGIN_ALLOW_THREADS
    stretch.began_ns = now_ns();
    multiply(self->memory, product_part(self, PRODUCT_NUMBERS), product_part(self, 2 * PRODUCT_NUMBERS), a_panels,
             b_panels);
    stretch.ended_ns = now_ns();
    Py_END_ALLOW_THREADS
    return Py_BuildValue("KKK", stretch.began_ns, stretch.ended_ns,
                         2ull * PRODUCT_SIZE * PRODUCT_SIZE * PRODUCT_SIZE);
}

static PyObject *product_result(Product *self, PyObject *arguments) {
    Py_ssize_t row, column;
    if (!PyArg_ParseTuple(arguments, "nn", &row, &column))
        return NULL;
    if (row < 0 || row >= PRODUCT_SIZE || column < 0 || column >= PRODUCT_SIZE)
        return PyErr_Format(PyExc_ValueError, "no element (%zd, %zd)", row, column);
    size_t index = 2 * PRODUCT_NUMBERS + (size_t)(row * PRODUCT_SIZE + column);
    double value = self->is_f64 ? as_f64(self->memory)[index] : (double)as_f32(self->memory)[index];
    return PyFloat_FromDouble(value);
}

static PyMethodDef product_methods[] = {
    {"multiply", (PyCFunction)product_multiply, METH_VARARGS, NULL},
    {"result", (PyCFunction)product_result, METH_VARARGS, NULL},
    {NULL},
};

static PyType_Slot product_slots[] = {
    {Py_tp_new, product_new},
    {Py_tp_dealloc, product_dealloc},
    {Py_tp_methods, product_methods},
    {0, NULL},
};

static PyType_Spec product_spec = {
    .name = "pyrometer._native.kernels.Product",
    .basicsize = sizeof(Product),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = product_slots,
};

/* Three arrays of the same size, a, b and c. */

typedef struct {
    PyObject_HEAD
    char *memory;
    size_t bytes;
    float *a, *b, *c;
} Arrays;

static PyObject *arrays_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(arguments, "n", &bytes))
        return NULL;
    if (bytes <= 0 || bytes % (Py_ssize_t)BLOCK_BYTES || bytes > PY_SSIZE_T_MAX / 4)
        return PyErr_Format(PyExc_ValueError, "%zd bytes are no multiple of %zd", bytes, BLOCK_BYTES);
    Arrays *self = (Arrays *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    size_t apart = (size_t)bytes + GAP_BYTES;
    void *memory = NULL;
    if (posix_memalign(&memory, LINE_BYTES, 2 * apart + (size_t)bytes)) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    self->memory = memory;
    self->bytes = (size_t)bytes;
    self->a = (float *)self->memory;
    self->b = (float *)(self->memory + apart);
    self->c = (float *)(self->memory + 2 * apart);
    return (PyObject *)self;
}

static void arrays_dealloc(Arrays *self) {
    PyTypeObject *type = Py_TYPE(self);
    free(self->memory);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *arrays_fill(Arrays *self, PyObject *unused) {
    Py_BEGIN_ALLOW_THREADS
    for (size_t i = 0; i < self->bytes / sizeof(float); i++) {
        self->a[i] = 0.0f;
        self->b[i] = 1.0f;
        self->c[i] = 2.0f;
    }
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* How many elements ``bytes`` of an array have, from ``offset`` bytes on; 0 with an error set where there is
 * no such part. */
static size_t part_of(Arrays *self, Py_ssize_t offset, Py_ssize_t bytes) {
    const Py_ssize_t block = (Py_ssize_t)BLOCK_BYTES, all = (Py_ssize_t)self->bytes;
    if (offset >= 0 && bytes > 0 && offset % block == 0 && bytes % block == 0 && offset <= all &&
        bytes <= all - offset)
        return (size_t)bytes / sizeof(float);
    PyErr_Format(PyExc_ValueError, "%zd bytes from %zd on are no part of arrays of %zd, in blocks of %zd",
                 bytes, offset, all, block);
    return 0;
}

static PyObject *arrays_triad(Arrays *self, PyObject *arguments) {
    Py_ssize_t offset, bytes;
    int streaming;
    const char *set = NULL;
    if (!PyArg_ParseTuple(arguments, "nnp|s", &offset, &bytes, &streaming, &set))
        return NULL;
    const Kernels *kernels = kernels_named(set);
    size_t count = kernels == NULL ? 0 : part_of(self, offset, bytes);
    if (count == 0)
        return NULL;
    void (*kernel)(float *, const float *, const float *, size_t) =
        streaming ? kernels->streaming_triad : kernels->triad;
    if (kernel == NULL)
        return PyErr_Format(PyExc_ValueError, "there is no kernel with streaming stores for this processor");
    Stretch stretch;
    size_t first = (size_t)offset / sizeof(float);
    Py_BEGIN_ALLOW_THREADS
    stretch.began_ns = now_ns();
    kernel(self->a + first, self->b + first, self->c + first, count);
    stretch.ended_ns = now_ns();
    Py_END_ALLOW_THREADS
    return Py_BuildValue("KK", stretch.began_ns, stretch.ended_ns);
}

static PyObject *arrays_read(Arrays *self, PyObject *arguments) {
    Py_ssize_t offset, bytes;
    const char *set = NULL;
    if (!PyArg_ParseTuple(arguments, "nn|s", &offset, &bytes, &set))
        return NULL;
    const Kernels *kernels = kernels_named(set);
    size_t count = kernels == NULL ? 0 : part_of(self, offset, bytes);
    if (count == 0)
        return NULL;
    Stretch stretch;
    double sum;
    Py_BEGIN_ALLOW_THREADS
    stretch.began_ns = now_ns();
    sum = kernels->read(self->a + (size_t)offset / sizeof(float), count);
    stretch.ended_ns = now_ns();
    Py_END_ALLOW_THREADS
    return Py_BuildValue("KKd", stretch.began_ns, stretch.ended_ns, sum);
}

/* One load an element whatever the stride: the compiler is kept from making vectors of stride 1. */
static double sum_strided(const float *from, size_t count, size_t stride) {
    float x0 = 0.0f, x1 = 0.0f, x2 = 0.0f, x3 = 0.0f, x4 = 0.0f, x5 = 0.0f, x6 = 0.0f, x7 = 0.0f;
    size_t left = count / stride;
    for (; left >= 8; left -= 8) {
        __asm__ volatile("" : "+r"(from), "+r"(stride));
        x0 += from[0];
        x1 += from[stride];
        x2 += from[2 * stride];
        x3 += from[3 * stride];
        x4 += from[4 * stride];
        x5 += from[5 * stride];
        x6 += from[6 * stride];
        x7 += from[7 * stride];
        from += 8 * stride;
    }
    for (; left; left--, from += stride)
        x0 += from[0];
    return (double)x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7;
}

static PyObject *arrays_read_strided(Arrays *self, PyObject *arguments) {
    Py_ssize_t offset, bytes, stride;
    if (!PyArg_ParseTuple(arguments, "nnn", &offset, &bytes, &stride))
        return NULL;
    size_t count = part_of(self, offset, bytes);
    if (count == 0)
        return NULL;
    if (stride < 1 || (size_t)stride > count)
        return PyErr_Format(PyExc_ValueError, "a stride of %zd in %zd elements", stride, (Py_ssize_t)count);
    Stretch stretch;
    double sum;
    Py_BEGIN_ALLOW_THREADS
    stretch.began_ns = now_ns();
    sum = sum_strided(self->b + (size_t)offset / sizeof(float), count, (size_t)stride);
    stretch.ended_ns = now_ns();
    Py_END_ALLOW_THREADS
    return Py_BuildValue("KKnd", stretch.began_ns, stretch.ended_ns, (Py_ssize_t)count / stride, sum);
}

static PyObject *arrays_copy_of(Arrays *self, PyObject *arguments) {
    int which;
    if (!PyArg_ParseTuple(arguments, "C", &which))
        return NULL;
    float *array = which == 'a' ? self->a : which == 'b' ? self->b : which == 'c' ? self->c : NULL;
    if (array == NULL)
        return PyErr_Format(PyExc_ValueError, "the arrays are a, b and c");
    return PyBytes_FromStringAndSize((const char *)array, (Py_ssize_t)self->bytes);
}

static PyObject *arrays_number(Arrays *self, PyObject *unused) {
    for (size_t i = 0; i < self->bytes / sizeof(float); i++)
        self->b[i] = (float)i;
    Py_RETURN_NONE;
}

static PyMethodDef arrays_methods[] = {
    {"fill", (PyCFunction)arrays_fill, METH_NOARGS, NULL},
    {"number", (PyCFunction)arrays_number, METH_NOARGS, NULL},
    {"triad", (PyCFunction)arrays_triad, METH_VARARGS, NULL},
    {"read", (PyCFunction)arrays_read, METH_VARARGS, NULL},
    {"read_strided", (PyCFunction)arrays_read_strided, METH_VARARGS, NULL},
    {"copy_of", (PyCFunction)arrays_copy_of, METH_VARARGS, NULL},
    {NULL},
};

static PyType_Slot arrays_slots[] = {
    {Py_tp_new, arrays_new},
    {Py_tp_dealloc, arrays_dealloc},
    {Py_tp_methods, arrays_methods},
    {0, NULL},
};

static PyType_Spec arrays_spec = {
    .name = "pyrometer._native.kernels.Arrays",
    .basicsize = sizeof(Arrays),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = arrays_slots,
};

/* Lines of memory that each hold the address of the next, in one ring through all of them at random. */

typedef struct Line {
    struct Line *next;
    char rest[LINE_BYTES - sizeof(struct Line *)];
} Line;

typedef struct {
    PyObject_HEAD
    Line *lines;
    Line *here;
    size_t count;
} Ring;

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Sattolo's shuffle: of all permutations it makes only those that are a single ring. Done on numbers, which
 * lie closer together than lines, it takes a fraction of the time. */
static int link_at_random(Line *lines, size_t count) {
    uint64_t state = 0x9E3779B97F4A7C15u;
    uint32_t *next = malloc(count * sizeof(uint32_t));
    if (next == NULL)
        return -1;
    for (size_t i = 0; i < count; i++)
        next[i] = (uint32_t)i;
    for (size_t i = count - 1; i > 0; i--) {
        size_t other = (size_t)(next_random(&state) % i);
        uint32_t swapped = next[i];
        next[i] = next[other];
        next[other] = swapped;
    }
    for (size_t i = 0; i < count; i++)
        lines[i].next = &lines[next[i]];
    free(next);
    return 0;
}

static PyObject *ring_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(arguments, "n", &bytes))
        return NULL;
    if (bytes < 2 * LINE_BYTES || bytes / LINE_BYTES > UINT32_MAX)
        return PyErr_Format(PyExc_ValueError, "%zd bytes are less than two lines, or too many", bytes);
    Ring *self = (Ring *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    void *memory = NULL;
    self->count = (size_t)bytes / LINE_BYTES;
    if (posix_memalign(&memory, LINE_BYTES, self->count * LINE_BYTES)) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    self->lines = self->here = memory;
    int failed;
    Py_BEGIN_ALLOW_THREADS
    failed = link_at_random(self->lines, self->count);
    Py_END_ALLOW_THREADS
    if (failed) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void ring_dealloc(Ring *self) {
    PyTypeObject *type = Py_TYPE(self);
    free(self->lines);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *ring_walk(Ring *self, PyObject *arguments) {
    Py_ssize_t loads;
    if (!PyArg_ParseTuple(arguments, "n", &loads))
        return NULL;
    Stretch stretch;
    Line *here = self->here;
    Py_BEGIN_ALLOW_THREADS
    stretch.began_ns = now_ns();
    for (Py_ssize_t left = loads; left > 0; left--)
        here = here->next;
    /* Whoever reads the clock must wait for the last load. */
    __asm__ volatile("" : "+r"(here) : : "memory");
    stretch.ended_ns = now_ns();
    Py_END_ALLOW_THREADS
    self->here = here;
    return Py_BuildValue("KKn", stretch.began_ns, stretch.ended_ns, (Py_ssize_t)(here - self->lines));
}

static PyMethodDef ring_methods[] = {
    {"walk", (PyCFunction)ring_walk, METH_VARARGS, NULL},
    {NULL},
};

static PyType_Slot ring_slots[] = {
    {Py_tp_new, ring_new},
    {Py_tp_dealloc, ring_dealloc},
    {Py_tp_methods, ring_methods},
    {0, NULL},
};

static PyType_Spec ring_spec = {
    .name = "pyrometer._native.kernels.Ring",
    .basicsize = sizeof(Ring),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = ring_slots,
};

/* The module. */

static PyMethodDef functions[] = {
    {"fma", fma_, METH_VARARGS, NULL},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "pyrometer._native.kernels",
    .m_size = -1,
    .m_methods = functions,
};

static int add_type(PyObject *module, PyType_Spec *spec, const char *name) {
    PyObject *type = PyType_FromSpec(spec);
    int failed = type == NULL || PyModule_AddObjectRef(module, name, type) < 0;
    Py_XDECREF(type);
    return failed ? -1 : 0;
}

static PyObject *names_of_sets(void) {
    PyObject *names = PyTuple_New(set_count);
    for (int i = 0; names != NULL && i < set_count; i++) {
        PyObject *name = PyUnicode_FromString(sets[i].name);
        if (name == NULL)
            Py_CLEAR(names);
        else
            PyTuple_SET_ITEM(names, i, name);
    }
    return names;
}

PyMODINIT_FUNC PyInit_kernels(void) {
    set_count = usable_instruction_sets(sets);
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL)
        return NULL;
    PyObject *names = names_of_sets();
    if (add_type(module, &arrays_spec, "Arrays") || add_type(module, &ring_spec, "Ring") ||
        add_type(module, &product_spec, "Product") || names == NULL ||
        PyModule_AddObjectRef(module, "INSTRUCTION_SETS", names) < 0 ||
        PyModule_AddObjectRef(module, "STREAMS", sets[0].kernels->streaming_triad ? Py_True : Py_False) < 0 ||
        PyModule_AddObjectRef(module, "BF16", has_bf16() ? Py_True : Py_False) < 0 ||
        PyModule_AddIntConstant(module, "PRODUCT_SIZE", PRODUCT_SIZE) < 0)
        Py_CLEAR(module);
    Py_XDECREF(names);
    return module;
}
