/* Files of ours stand away from the small numbers, which the program expects to get for its own. */
#ifndef PYROMETER_HIGH_FILES_H
#define PYROMETER_HIGH_FILES_H

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The same file under a high number; the old one is free again, unless there is no such number. */
static int
move_file_high(int file)
{
    struct rlimit limit;
    int lowest = 1000;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 1024)
        lowest = (int)limit.rlim_cur / 2;
    int moved = fcntl(file, F_DUPFD_CLOEXEC, lowest);
    if (moved < 0)
        return file;
    close(file);
    return moved;
}

/* A file that stays open. A program may close what is not its own, and then have another file by that
 * number: ours is known by the rest. */
typedef struct {
    int number; /* 0: none */
    dev_t device;
    ino_t inode;
} KeptFile;

/* Takes the file over, under a high number. */
static KeptFile
kept_file(int file)
{
    struct stat seen;
    if (fstat(file, &seen) == 0)
        return (KeptFile){move_file_high(file), seen.st_dev, seen.st_ino};
    close(file);
    return (KeptFile){0};
}

static void
kept_file_close(KeptFile *file)
{
    struct stat seen;
    if (file->number != 0 && fstat(file->number, &seen) == 0 && seen.st_dev == file->device &&
        seen.st_ino == file->inode)
        close(file->number);
    file->number = 0;
}

#endif
