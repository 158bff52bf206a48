// A library for LD_PRELOAD that sets a program's clock ahead by SECONDS_AHEAD, which may be negative.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long ahead(void) {
	const char *seconds = getenv("SECONDS_AHEAD");
	return seconds ? atol(seconds) : 0;
}

int gettimeofday(struct timeval *tv, void *zone) {
	struct timespec now;
	static int (*real)(clockid_t, struct timespec *);
	if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
	if (real(CLOCK_REALTIME, &now)) return -1;
	tv->tv_sec = now.tv_sec + ahead();
	tv->tv_usec = now.tv_nsec / 1000;
	return 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
	static int (*real)(clockid_t, struct timespec *);
	if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
	int failed = real(clock, now);
	if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += ahead();
	return failed;
}

time_t time(time_t *at) {
	struct timeval now;
	gettimeofday(&now, NULL);
	if (at) *at = now.tv_sec;
	return now.tv_sec;
}
