// slowsync makes each fsync and fdatasync of a program slower by SLOWSYNC_US
// microseconds: a disk like those of the cloud, on a machine that has a better
// one. It works for programs that call the C library, such as PostgreSQL:
//
//	cc -shared -fPIC -O2 -o slowsync.so slowsync.c -ldl
//	SLOWSYNC_US=2000 LD_PRELOAD=$PWD/slowsync.so pg_ctl -D DATA -l LOG start
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void slow(void) {
	static long us = -1;
	if (us < 0) {
		const char *text = getenv("SLOWSYNC_US");
		us = text ? atol(text) : 0;
	}
	if (us > 0) {
		struct timespec t = {us / 1000000, (us % 1000000) * 1000};
		nanosleep(&t, 0);
	}
}

int fsync(int fd) {
	static int (*next)(int);
	if (!next)
		next = dlsym(RTLD_NEXT, "fsync");
	int r = next(fd);
	slow();
	return r;
}

int fdatasync(int fd) {
	static int (*next)(int);
	if (!next)
		next = dlsym(RTLD_NEXT, "fdatasync");
	int r = next(fd);
	slow();
	return r;
}
