/*
 * Records what a process does to the files below NNHA_SHIM_ROOT, in order, in NNHA_SHIM_LOG.
 *
 * LD_PRELOADed.  One line per operation, written after it succeeded and under one lock, so that
 * the order of the lines is the order of the operations.  Files are inode numbers, names are full
 * paths; contents are hexadecimal.  tests/journal/storage/power_replay.py reads it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define NEXT(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int log_fd = -1;
static const char *root;
static size_t root_length;

static ssize_t raw_write(int fd, const void *data, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    return real(fd, data, size);
}

__attribute__((constructor)) static void begin(void) {
    static int (*real)(const char *, int, ...);
    const char *path = getenv("NNHA_SHIM_LOG");
    root = getenv("NNHA_SHIM_ROOT");
    if (!path || !root) return;
    root_length = strlen(root);
    real = dlsym(RTLD_NEXT, "open");
    log_fd = real(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int inside(const char *path) {
    return log_fd >= 0 && strncmp(path, root, root_length) == 0 &&
           (path[root_length] == '/' || path[root_length] == 0);
}

/* The full path of (folder descriptor, path); 0 if it is outside. */
static int resolve(int folder, const char *path, char *full) {
    char link[64];
    ssize_t length;
    if (log_fd < 0) return 0;
    if (path[0] == '/') {
        snprintf(full, PATH_MAX, "%s", path);
        return inside(full);
    }
    if (folder == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    length = readlink(link, full, PATH_MAX - 1);
    if (length < 0) return 0;
    snprintf(full + length, PATH_MAX - length, "/%s", path);
    return inside(full);
}

/* The inode of an open file below the root; 0 if it is elsewhere. */
static ino_t mine(int fd) {
    char link[64], full[PATH_MAX];
    struct stat st;
    ssize_t length;
    if (log_fd < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, full, sizeof full - 1);
    if (length < 0) return 0;
    full[length] = 0;
    if (!inside(full) || fstat(fd, &st) != 0) return 0;
    return st.st_ino;
}

static void tell(const char *format, ...) {
    char line[2 * PATH_MAX + 128];
    va_list arguments;
    int length;
    va_start(arguments, format);
    length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (raw_write(log_fd, line, length) != length) abort();
}

static void tell_data(const char *verb, ino_t inode, off_t at, const unsigned char *data, size_t size) {
    static const char digits[] = "0123456789abcdef";
    char *line = malloc(2 * size + 96);
    int head = sprintf(line, "%s\t%lu\t%ld\t", verb, (unsigned long)inode, (long)at);
    for (size_t i = 0; i < size; i++) {
        line[head + 2 * i] = digits[data[i] >> 4];
        line[head + 2 * i + 1] = digits[data[i] & 15];
    }
    line[head + 2 * size] = '\n';
    if (raw_write(log_fd, line, head + 2 * size + 1) != (ssize_t)(head + 2 * size + 1)) abort();
    free(line);
}

/* ---- opening ---- */

static int opened(int folder, const char *path, int flags, mode_t mode,
                  int (*real)(int, const char *, int, ...)) {
    char full[PATH_MAX];
    struct stat st;
    int fd, fresh, saved;
    if (!(flags & (O_CREAT | O_TRUNC)) || !resolve(folder, path, full))
        return real(folder, path, flags, mode);
    pthread_mutex_lock(&lock);
    fresh = lstat(full, &st) != 0;
    fd = real(folder, path, flags, mode);
    saved = errno;
    if (fd >= 0 && fstat(fd, &st) == 0) {
        if (fresh) tell("create\t%lu\t%s\n", (unsigned long)st.st_ino, full);
        else if (flags & O_TRUNC) tell("truncate\t%lu\t0\n", (unsigned long)st.st_ino);
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
    return fd;
}

#define MODE(flags, mode) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list more; \
        va_start(more, flags); \
        mode = va_arg(more, mode_t); \
        va_end(more); \
    }

int openat(int folder, const char *path, int flags, ...) {
    NEXT(openat);
    MODE(flags, mode)
    return opened(folder, path, flags, mode, real);
}

int openat64(int folder, const char *path, int flags, ...) {
    NEXT(openat64);
    MODE(flags, mode)
    return opened(folder, path, flags, mode, real);
}

int open(const char *path, int flags, ...) {
    NEXT(openat);
    MODE(flags, mode)
    return opened(AT_FDCWD, path, flags, mode, real);
}

int open64(const char *path, int flags, ...) {
    NEXT(openat64);
    MODE(flags, mode)
    return opened(AT_FDCWD, path, flags, mode, real);
}

/* ---- contents ---- */

ssize_t write(int fd, const void *data, size_t size) {
    ino_t inode = mine(fd);
    ssize_t done;
    int saved;
    if (!inode) return raw_write(fd, data, size);
    pthread_mutex_lock(&lock);
    done = raw_write(fd, data, size);
    saved = errno;
    if (done > 0) tell_data("write", inode, lseek(fd, 0, SEEK_CUR) - done, data, done);
    pthread_mutex_unlock(&lock);
    errno = saved;
    return done;
}

static ssize_t written_at(int fd, const void *data, size_t size, off_t at) {
    NEXT(pwrite);
    ino_t inode = mine(fd);
    ssize_t done;
    int saved;
    pthread_mutex_lock(&lock);
    done = real(fd, data, size, at);
    saved = errno;
    if (inode && done > 0) tell_data("pwrite", inode, at, data, done);
    pthread_mutex_unlock(&lock);
    errno = saved;
    return done;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    return written_at(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    return written_at(fd, data, size, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    NEXT(writev);
    ssize_t whole = 0, done;
    if (!mine(fd)) return real(fd, parts, count);
    for (int i = 0; i < count; i++) {
        done = write(fd, parts[i].iov_base, parts[i].iov_len);
        if (done < 0) return whole ? whole : done;
        whole += done;
    }
    return whole;
}

static int truncated(int fd, off_t size) {
    NEXT(ftruncate);
    ino_t inode = mine(fd);
    int done;
    pthread_mutex_lock(&lock);
    done = real(fd, size);
    if (inode && done == 0) tell("truncate\t%lu\t%ld\n", (unsigned long)inode, (long)size);
    pthread_mutex_unlock(&lock);
    return done;
}

int ftruncate(int fd, off_t size) { return truncated(fd, size); }
int ftruncate64(int fd, off64_t size) { return truncated(fd, size); }

static int extended(int fd, off_t at, off_t size) {
    NEXT(posix_fallocate);
    ino_t inode = mine(fd);
    int failure;
    pthread_mutex_lock(&lock);
    failure = real(fd, at, size);
    if (inode && !failure) tell("extend\t%lu\t%ld\n", (unsigned long)inode, (long)(at + size));
    pthread_mutex_unlock(&lock);
    return failure;
}

int posix_fallocate(int fd, off_t at, off_t size) { return extended(fd, at, size); }
int posix_fallocate64(int fd, off64_t at, off64_t size) { return extended(fd, at, size); }

/* ---- durability ---- */

static int synced(int fd, int (*real)(int)) {
    ino_t inode = mine(fd);
    int done;
    if (!inode) return real(fd);
    pthread_mutex_lock(&lock);
    done = real(fd);
    if (done == 0) {
        char link[64], full[PATH_MAX];
        struct stat st;
        fstat(fd, &st);
        if (S_ISDIR(st.st_mode)) {
            snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
            full[readlink(link, full, sizeof full - 1)] = 0;
            tell("syncdir\t%s\n", full);
        } else {
            tell("sync\t%lu\n", (unsigned long)inode);
        }
    }
    pthread_mutex_unlock(&lock);
    return done;
}

int fsync(int fd) {
    NEXT(fsync);
    return synced(fd, real);
}

int fdatasync(int fd) {
    NEXT(fdatasync);
    return synced(fd, real);
}

/* ---- names ---- */

static int renamed(int from, const char *old, int to, const char *new,
                   int (*real)(int, const char *, int, const char *)) {
    char one[PATH_MAX], two[PATH_MAX];
    int done, tells = resolve(from, old, one) && resolve(to, new, two);
    pthread_mutex_lock(&lock);
    done = real(from, old, to, new);
    if (tells && done == 0) tell("rename\t%s\t%s\n", one, two);
    pthread_mutex_unlock(&lock);
    return done;
}

int rename(const char *old, const char *new) {
    NEXT(renameat);
    return renamed(AT_FDCWD, old, AT_FDCWD, new, real);
}

int renameat(int from, const char *old, int to, const char *new) {
    NEXT(renameat);
    return renamed(from, old, to, new, real);
}

int linkat(int from, const char *old, int to, const char *new, int flags) {
    NEXT(linkat);
    char one[PATH_MAX], two[PATH_MAX];
    int done, tells = resolve(from, old, one) && resolve(to, new, two);
    pthread_mutex_lock(&lock);
    done = real(from, old, to, new, flags);
    if (tells && done == 0) tell("link\t%s\t%s\n", one, two);
    pthread_mutex_unlock(&lock);
    return done;
}

int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }

int unlinkat(int folder, const char *path, int flags) {
    NEXT(unlinkat);
    char full[PATH_MAX];
    int done, tells = resolve(folder, path, full);
    pthread_mutex_lock(&lock);
    done = real(folder, path, flags);
    if (tells && done == 0) tell("remove\t%s\n", full);
    pthread_mutex_unlock(&lock);
    return done;
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdirat(int folder, const char *path, mode_t mode) {
    NEXT(mkdirat);
    char full[PATH_MAX];
    int done, saved, tells = resolve(folder, path, full);
    pthread_mutex_lock(&lock);
    done = real(folder, path, mode);
    saved = errno;
    if (tells && done == 0) tell("mkdir\t%s\n", full);
    pthread_mutex_unlock(&lock);
    errno = saved;
    return done;
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
