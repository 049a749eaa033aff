/* Whether a thread runs, as the kernel says in a file for each. */
#ifndef PYROMETER_THREAD_STATUS_H
#define PYROMETER_THREAD_STATUS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "high_files.h"

/* To open the file takes longer than all else that a look does: for a few threads it is kept open. */
#define MAX_STATUS_FILES 8

enum { ENDED, WAITS, RUNS, NOT_A_STATUS };

/* Of the fields after the name, the first is the state, and this one the processor it was last on. */
#define PROCESSOR_FIELD 37

static int
processor_in_status(const char *fields)
{
    for (int i = 1; i < PROCESSOR_FIELD && fields != NULL; i++) {
        fields = strchr(fields, ' ');
        fields += fields != NULL;
    }
    return fields == NULL ? -1 : atoi(fields);
}

/* What the file says of the thread, which it names first: "123 (name) R ...". */
static int
status_in_file(int file, unsigned long native_id, int *processor)
{
    char text[1024];
    ssize_t size = pread(file, text, sizeof text - 1, 0);
    if (size < 0 && errno == ESRCH)
        return ENDED;
    text[size < 0 ? 0 : size] = '\0';
    char *number_end;
    const char *name_end = strrchr(text, ')');
    if (strtoul(text, &number_end, 10) != native_id || number_end == text || name_end == NULL ||
        name_end[1] != ' ')
        return NOT_A_STATUS;
    *processor = processor_in_status(name_end + 2);
    return name_end[2] == 'R' ? RUNS : WAITS;
}

/* Whether a thread runs or could, rather than waits for something, and on which processor it was last;
 * -1: unknown. Its clock does not tell: from another processor that is seen to move only now and then. */
static int
thread_is_running(KeptFile *kept, unsigned long native_id, int may_keep, int *processor)
{
    *processor = -1;
    int status = kept->number == 0 ? NOT_A_STATUS : status_in_file(kept->number, native_id, processor);
    if (status == NOT_A_STATUS) {
        char path[64];
        kept->number = 0;
        snprintf(path, sizeof path, "/proc/self/task/%lu/stat", native_id);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0)
            return 0; /* it has ended */
        status = status_in_file(file, native_id, processor);
        if (may_keep)
            *kept = kept_file(file);
        else
            close(file);
    }
    return status == RUNS;
}

#endif
