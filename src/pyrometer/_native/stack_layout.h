/* Where an interpreter keeps its threads' stacks, in copies read from outside; by version. */
#ifndef PYROMETER_STACK_LAYOUT_H
#define PYROMETER_STACK_LAYOUT_H

#include "owner.h"

#if PY_VERSION_HEX < 0x030E0000 && defined(__linux__)

/* As much of a thread's state as is looked at. */
#define THREAD_STATE_SIZE (offsetof(PyThreadState, datastack_limit) + sizeof(void *))
/* As much of a frame: its locals follow. */
#define FRAME_SIZE offsetof(_PyInterpreterFrame, localsplus)

/* Where the pointer to the innermost frame stands: in the state itself, or where that points. */
static inline const void *
innermost_frame_place(const PyThreadState *copied, const PyThreadState *original)
{
#if PY_VERSION_HEX >= 0x030D0000
    return (const char *)original + offsetof(PyThreadState, current_frame);
#else
    return (const char *)copied->cframe + offsetof(_PyCFrame, current_frame);
#endif
}

static inline const void *
copied_frame_code(const _PyInterpreterFrame *copied)
{
#if PY_VERSION_HEX >= 0x030D0000
    return copied->f_executable;
#else
    return copied->f_code;
#endif
}

static inline const _Py_CODEUNIT *
copied_frame_instruction(const _PyInterpreterFrame *copied)
{
#if PY_VERSION_HEX >= 0x030D0000
    return copied->instr_ptr;
#else
    return copied->prev_instr;
#endif
}

/* A frame between two runs of the interpreter, which belongs to no function. */
static inline int
is_between_runs(const _PyInterpreterFrame *copied)
{
#if PY_VERSION_HEX >= 0x030C0000
    return copied->owner == FRAME_OWNED_BY_CSTACK;
#else
    return 0;
#endif
}

#define STACKS_CAN_BE_READ 1
#else
#define STACKS_CAN_BE_READ 0
#endif

#endif
