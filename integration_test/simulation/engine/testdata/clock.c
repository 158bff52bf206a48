// A library for LD_PRELOAD. A program's clock stands at the Unix ns that the first 8 bytes of the file CLOCK_FILE hold.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static long now_ns(void) {
	static volatile long *at;
	if (!at) at = mmap(NULL, 8, PROT_READ, MAP_SHARED, open(getenv("CLOCK_FILE"), O_RDONLY), 0);
	return *at;
}

int gettimeofday(struct timeval *tv, void *zone) {
	long ns = now_ns();
	tv->tv_sec = ns / 1000000000;
	tv->tv_usec = ns % 1000000000 / 1000;
	return 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
	static int (*real)(clockid_t, struct timespec *);
	if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
	if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return real(clock, now);
	long ns = now_ns();
	now->tv_sec = ns / 1000000000;
	now->tv_nsec = ns % 1000000000;
	return 0;
}

time_t time(time_t *at) {
	time_t s = now_ns() / 1000000000;
	if (at) *at = s;
	return s;
}
