/* pairs KIND SEED: the loads of tests/vm/pairs. Their work is arithmetic, not time, so that no policy changes it.
 * pairs prepare 0: prepares the emulator's CPUs. pairs short 0: gives them short turns, for a load of another program. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long seed;

static void must(int ok)
{
	if (!ok) { perror("pairs"); exit(1); }
}

/* A number from 0 to LIMIT - 1. */
static unsigned pick(unsigned long *state, unsigned limit)
{
	*state = *state * 6364136223846793005UL + 1442695040888963407UL;
	return (*state >> 33) % limit;
}

/* About so many microseconds of a CPU of the virtual machine, which executes 200 million instructions a second. */
static void burn(unsigned us)
{
	unsigned x = us + 1;
	for (unsigned long i = 0; i < us * 17UL; i++) {
		x ^= x << 13; x ^= x >> 17; x ^= x << 5;
		__asm__ volatile("" ::"r"(x));
	}
}

static void name(const char *what, long i)
{
	char text[16];
	snprintf(text, sizeof text, "%s-%ld", what, i);
	prctl(PR_SET_NAME, text);
}

static void start(pthread_t *t, const pthread_attr_t *attr, void *(*task)(void *), long i)
{
	must(!pthread_create(t, attr, task, (void *)i));
}

/* Waves of twelve children that live shortly, a few of them longer. */
static void forks(void)
{
	for (int wave = 0; wave < 55; wave++) {
		for (int i = 0; i < 12; i++) {
			unsigned us = 300 + pick(&seed, 1500) + (pick(&seed, 4) == 0) * pick(&seed, 9000);
			pid_t pid = fork();
			must(pid >= 0);
			if (!pid) { name("child", i); burn(us); _exit(0); }
		}
		while (wait(NULL) > 0) ;
	}
}

/* A server of ten threads, to which requests come in bursts: the next one a while after all have been answered. */
static int asked[2], answered[2];
static void *worker(void *arg)
{
	unsigned us;
	name("worker", (long)arg);
	while (read(asked[0], &us, sizeof us) == sizeof us) { burn(us); must(write(answered[1], &us, sizeof us) == sizeof us); }
	return NULL;
}
static void server(void)
{
	pthread_t t;
	unsigned us;
	must(!pipe(asked) && !pipe(answered));
	for (long i = 0; i < 10; i++) start(&t, NULL, worker, i);
	for (int burst = 0; burst < 80; burst++) {
		int n = 3 + pick(&seed, 8);
		for (int i = 0; i < n; i++) { us = 500 + pick(&seed, 6000); must(write(asked[1], &us, sizeof us) == sizeof us); }
		for (int i = 0; i < n; i++) must(read(answered[0], &us, sizeof us) == sizeof us);
		usleep(500 + pick(&seed, 4000));
	}
}

/* Seven stages; the pipes between them have eight items each. */
enum { STAGES = 7, ITEMS = 265 };
static int between[STAGES][2];
static void *stage(void *arg)
{
	long at = (long)arg;
	unsigned long own = seed + at;
	char item[512] = "";
	name("stage", at);
	for (int i = 0; i < ITEMS; i++) {
		if (at) must(read(between[at][0], item, sizeof item) == sizeof item);
		burn(500 + pick(&own, 2500));
		if (at + 1 < STAGES) must(write(between[at + 1][1], item, sizeof item) == sizeof item);
	}
	return NULL;
}
static void pipeline(void)
{
	pthread_t t[STAGES];
	for (int i = 1; i < STAGES; i++) must(!pipe(between[i]) && fcntl(between[i][1], F_SETPIPE_SZ, 4096) > 0);
	for (long i = 0; i < STAGES; i++) start(&t[i], NULL, stage, i);
	for (int i = 0; i < STAGES; i++) pthread_join(t[i], NULL);
}

/* Threads that meet at a barrier after unequal work. */
static pthread_barrier_t barrier;
static int rounds, least, spread;
static void *solver(void *arg)
{
	unsigned long own = seed + (long)arg;
	name("solver", (long)arg);
	for (int i = 0; i < rounds; i++) { burn(least + pick(&own, spread)); pthread_barrier_wait(&barrier); }
	return NULL;
}
static void solvers(int n)
{
	pthread_t t[16];
	must(!pthread_barrier_init(&barrier, NULL, n));
	for (long i = 0; i < n; i++) start(&t[i], NULL, solver, i);
	for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
}

/* Tasks that compute and nap; the first BOUND of them are bound to CPU 0 or 1. */
static int bursts, longest, nap;
static void *napper(void *arg)
{
	unsigned long own = seed + (long)arg;
	name("napper", (long)arg);
	for (int i = 0; i < bursts; i++) { burn(500 + pick(&own, longest)); usleep(200 + pick(&own, nap)); }
	return NULL;
}
static void nappers(int n, int bound)
{
	pthread_t t[32];
	for (long i = 0; i < n; i++) {
		pthread_attr_t attr;
		cpu_set_t set;
		pthread_attr_init(&attr);
		CPU_ZERO(&set); CPU_SET(i & 1, &set);
		if (i < bound) pthread_attr_setaffinity_np(&attr, sizeof set, &set);
		start(&t[i], &attr, napper, i);
	}
	for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
}

static volatile unsigned *device(long where)
{
	int fd = open("/dev/mem", O_RDWR | O_SYNC);
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, where);
	must(at != MAP_FAILED);
	return at;
}

/* A turn of an emulated CPU ends at the next expiry of any timer. So the PIT, which the kernel does not use any more, expires every US
 * microseconds. */
static void turns(unsigned us)
{
	unsigned ticks = us * 1193182UL / 1000000;
	must(!iopl(3));
	outb(0x34, 0x43); outb(ticks & 255, 0x40); outb(ticks >> 8, 0x40);
}

/* Turns are short while a load runs; before and behind it they are long, which takes the emulator less time. */
enum { SHORT = 40, LONG = 400 };

/* Masks the PIT's interrupt in the I/O APIC. The emulator spends every second turn on the expiry: with an even number of CPUs the same
 * CPUs would lose theirs. So the one with the number 4, which the kernel does not know, starts the loop that is at 0xf0000. */
static void prepare(void)
{
	volatile unsigned *io = device(0xfec00000), *local = device(0xfee00000);
	unsigned entry;
	io[0] = 0x14; entry = io[4];
	io[0] = 0x14; io[4] = entry | 0x10000;
	local[0x310 / 4] = 4 << 24; local[0x300 / 4] = 0x4500; usleep(20000);
	local[0x310 / 4] = 4 << 24; local[0x300 / 4] = 0x46f0; usleep(1000);
	turns(LONG);
}

int main(int argc, char **argv)
{
	if (argc != 3) { fprintf(stderr, "usage: pairs KIND SEED\n"); return 2; }
	const char *kind = argv[1];
	unsigned long number = strtoul(argv[2], NULL, 10);
	seed = 977 * number + 1;
	if (!strcmp(kind, "prepare")) { prepare(); return 0; }
	turns(SHORT);
	if (!strcmp(kind, "short")) return 0;
	if (!strcmp(kind, "forks")) forks();
	else if (!strcmp(kind, "server")) server();
	else if (!strcmp(kind, "pipeline")) pipeline();
	else if (!strcmp(kind, "barriers")) { rounds = 90; least = 2000; spread = 5000; solvers(7); }
	else if (!strcmp(kind, "one-each")) { rounds = 145; least = 3000; spread = 4000; solvers(4); }
	else if (!strcmp(kind, "bound")) { bursts = 130; longest = 5000; nap = 4000; nappers(6, 4); }
	else if (!strcmp(kind, "overload")) { bursts = 55; longest = 9000; nap = 1500; nappers(14, 0); }
	else return 2;
	turns(LONG);
	return 0;
}
