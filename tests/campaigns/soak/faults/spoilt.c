/* Preloaded into servers: two numbers in a file, which may change at any time, say by how many
   milliseconds each flush is late, and by how many nanoseconds the wall clock is wrong. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t unspoilt[2];
static const volatile int64_t *spoilt = unspoilt;

__attribute__((constructor)) static void map_the_file(void) {
    const char *path = getenv("NNHA_SPOILT");
    int descriptor = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped;
    if (descriptor < 0)
        return;
    mapped = mmap(NULL, sizeof unspoilt, PROT_READ, MAP_SHARED, descriptor, 0);
    if (mapped != MAP_FAILED)
        spoilt = mapped;
    close(descriptor);
}

static void flush_late(void) {
    int64_t milliseconds = spoilt[0];
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    if (milliseconds > 0)
        nanosleep(&left, NULL);
}

int fsync(int descriptor) {
    static int (*real)(int);
    if (real == NULL)
        real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    flush_late();
    return real(descriptor);
}

int fdatasync(int descriptor) {
    static int (*real)(int);
    if (real == NULL)
        real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    flush_late();
    return real(descriptor);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    int64_t nanoseconds;
    int outcome;
    if (real == NULL)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    outcome = real(clock, now);
    if (outcome != 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return outcome;
    nanoseconds = now->tv_nsec + spoilt[1] % 1000000000;
    now->tv_sec += spoilt[1] / 1000000000;
    if (nanoseconds >= 1000000000) {
        nanoseconds -= 1000000000;
        now->tv_sec++;
    } else if (nanoseconds < 0) {
        nanoseconds += 1000000000;
        now->tv_sec--;
    }
    now->tv_nsec = nanoseconds;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now != NULL)
        *now = exact.tv_sec;
    return exact.tv_sec;
}
