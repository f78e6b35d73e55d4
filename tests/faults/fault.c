/* Preloaded: lets one call of a kind fail. FAULT_CALL names the kind, FAULT_AT which of its calls, FAULT_ERRNO
   with what; only calls about files below FAULT_BELOW count. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static int left = -1;

static int is_below(const char *path) {
    const char *below = getenv("FAULT_BELOW");
    return path && below && strncmp(path, below, strlen(below)) == 0;
}

static int is_fd_below(int fd) {
    char name[64], path[PATH_MAX];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(name, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return is_below(path);
}

static int fails(const char *call) {
    const char *wanted = getenv("FAULT_CALL");
    if (!wanted || strcmp(wanted, call)) return 0;
    if (left < 0) left = atoi(getenv("FAULT_AT"));
    if (left == 0 || --left > 0) return 0;
    errno = atoi(getenv("FAULT_ERRNO"));
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t size) {
    if (is_fd_below(fd) && fails("write")) {
        if (errno) return -1;
        return REAL(write)(fd, data, size > 1 ? size / 2 : size); /* errno 0: a short write */
    }
    return REAL(write)(fd, data, size);
}
ssize_t pread64(int fd, void *data, size_t size, off64_t at) {
    return is_fd_below(fd) && fails("pread") ? -1 : REAL(pread64)(fd, data, size, at);
}
ssize_t pread(int fd, void *data, size_t size, off_t at) {
    return is_fd_below(fd) && fails("pread") ? -1 : REAL(pread)(fd, data, size, at);
}
int fsync(int fd) { return is_fd_below(fd) && fails("fsync") ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return is_fd_below(fd) && fails("fdatasync") ? -1 : REAL(fdatasync)(fd); }
int ftruncate64(int fd, off64_t size) {
    return is_fd_below(fd) && fails("ftruncate") ? -1 : REAL(ftruncate64)(fd, size);
}
int ftruncate(int fd, off_t size) { return is_fd_below(fd) && fails("ftruncate") ? -1 : REAL(ftruncate)(fd, size); }
int flock(int fd, int how) { return is_fd_below(fd) && fails("flock") ? -1 : REAL(flock)(fd, how); }
int rename(const char *from, const char *to) {
    return is_below(to) && fails("rename") ? -1 : REAL(rename)(from, to);
}
int mkdir(const char *path, mode_t mode) { return is_below(path) && fails("mkdir") ? -1 : REAL(mkdir)(path, mode); }
int unlink(const char *path) { return is_below(path) && fails("unlink") ? -1 : REAL(unlink)(path); }
int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return is_below(path) && fails("open") ? -1 : REAL(open64)(path, flags, mode);
}
int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return is_below(path) && fails("open") ? -1 : REAL(open)(path, flags, mode);
}
