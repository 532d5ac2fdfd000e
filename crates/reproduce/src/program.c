/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* What a task does: use the CPU for so many ns of its own CPU time, wake a task, wait until it is woken once more, sleep for so many ns or until
 * so many ns since the beginning, start a task, change its priority (policy * 256 + priority + 128). */
enum kind { COMPUTE, WAKE, WAIT, SLEEP, UNTIL, START, PRIORITY };

struct action {
	unsigned char kind;
	long long value;
};

enum start { BEGINNING, STARTED, AT };

struct task {
	const char *name;
	const struct action *actions;
	unsigned count;
	enum start start;
	long long at;     /* ns since the beginning, for AT */
	int policy;       /* a number of sched_setscheduler */
	int priority;     /* the nice value, or the real-time priority */
	const char *cpus; /* a list such as 0-3,8; NULL: any */
	uint32_t posts;   /* wakeups that no wait has used yet */
	unsigned long long spared; /* waits whose wakeup came first */
	int ends[2];      /* the pipe of the wakeups, with --pipes */
	int now_policy, now_priority;
	long long owed;   /* the CPU time that all bursts so far come to */
	unsigned long long done[PRIORITY + 1];
};

/*@tables*/

#define TASKS (sizeof(tasks) / sizeof(tasks[0]))

static int use_pipes, use_affinity, use_count;
static uint32_t gate, finished;
static long long beginning;
static unsigned long long cpu_ns;
static uint32_t warned;

static long long now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static long futex(uint32_t *word, int op, uint32_t value)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void fail(const char *what, int error)
{
	fprintf(stderr, "%s: %s\n", what, strerror(error));
	exit(1);
}

static void warn_once(uint32_t bit, const char *what, int error)
{
	if (!(__atomic_fetch_or(&warned, bit, __ATOMIC_RELAXED) & bit))
		fprintf(stderr, "warning: %s: %s\n", what, strerror(error));
}

static void sleep_until(long long at)
{
	struct timespec time = { .tv_sec = at / 1000000000, .tv_nsec = at % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
		;
}

/* A burst ends when the thread's CPU time has grown by it, so that preemption does not shorten the work. The time that calls and switches took since
 * the last burst, and that by which it was too long, counts as a part of this one: all bursts together are as long as they were. */
static void compute(struct task *self, long long ns)
{
	long long used = now(CLOCK_THREAD_CPUTIME_ID);

	self->owed += ns;
	while (used < self->owed) {
		long long until = now(CLOCK_MONOTONIC) + (self->owed - used);

		while (now(CLOCK_MONOTONIC) < until)
			;
		used = now(CLOCK_THREAD_CPUTIME_ID);
	}
}

/* The wakeups of a task are counted: one that comes early spares it the next wait. */
static void post(struct task *to)
{
	uint32_t before = __atomic_fetch_add(&to->posts, 1, __ATOMIC_SEQ_CST);

	if (use_pipes) {
		while (write(to->ends[1], "w", 1) != 1)
			if (errno != EINTR)
				fail("write", errno);
	} else if (before == 0) {
		futex(&to->posts, FUTEX_WAKE, 1);
	}
}

static void await(struct task *self)
{
	char byte;

	self->spared += __atomic_load_n(&self->posts, __ATOMIC_SEQ_CST) != 0;
	if (use_pipes) {
		while (read(self->ends[0], &byte, 1) != 1)
			if (errno != EINTR)
				fail("read", errno);
	} else {
		while (__atomic_load_n(&self->posts, __ATOMIC_SEQ_CST) == 0)
			futex(&self->posts, FUTEX_WAIT, 0);
	}
	__atomic_fetch_sub(&self->posts, 1, __ATOMIC_SEQ_CST);
}

/* Each thread begins with the policy of the one that started it. */
static void set_priority(struct task *self, int policy, int priority)
{
	int is_fair = policy == SCHED_OTHER || policy == SCHED_BATCH;
	struct sched_param param = { .sched_priority = is_fair || policy == SCHED_IDLE ? 0 : priority };

	if (policy != self->now_policy || (!is_fair && priority != self->now_priority)) {
		if (sched_setscheduler(0, policy, &param) != 0)
			warn_once(1, "a policy is refused, and is as it is by default", errno);
	}
	if (is_fair && priority != self->now_priority) {
		if (setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), priority) != 0)
			warn_once(2, "a nice value is refused, and is as it is by default", errno);
	}
	self->now_policy = policy;
	self->now_priority = priority;
}

static void set_affinity(const char *list)
{
	cpu_set_t set;
	char *end;

	CPU_ZERO(&set);
	while (*list) {
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < CPU_SETSIZE; first++)
			CPU_SET(first, &set);
		list = *end ? end + 1 : end;
	}
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		warn_once(4, "an affinity is refused", errno);
}

static void *run(void *of);

static void start(struct task *child, int policy, int priority)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int error;

	child->now_policy = policy;
	child->now_priority = priority;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN + 65536);
	error = pthread_create(&thread, &attributes, run, child);
	pthread_attr_destroy(&attributes);
	if (error)
		fail("pthread_create", error);
}

static void act(struct task *self, const struct action *action)
{
	long long value = action->value;

	switch (action->kind) {
	case COMPUTE:
		compute(self, value);
		break;
	case WAKE:
		post(&tasks[value]);
		break;
	case WAIT:
		await(self);
		break;
	case SLEEP:
		sleep_until(now(CLOCK_MONOTONIC) + value);
		break;
	case UNTIL:
		sleep_until(beginning + value);
		break;
	case START:
		start(&tasks[value], self->now_policy, self->now_priority);
		break;
	case PRIORITY:
		set_priority(self, (int)(value / 256), (int)(value % 256) - 128);
		break;
	}
	self->done[action->kind == UNTIL ? SLEEP : action->kind]++;
}

static void *run(void *of)
{
	struct task *self = of;
	unsigned at;

	prctl(PR_SET_NAME, self->name);
	prctl(PR_SET_TIMERSLACK, 1);
	if (use_affinity && self->cpus)
		set_affinity(self->cpus);
	set_priority(self, self->policy, self->priority);
	if (self->start != STARTED) {
		while (!__atomic_load_n(&gate, __ATOMIC_SEQ_CST))
			futex(&gate, FUTEX_WAIT, 0);
		if (self->start == AT)
			sleep_until(beginning + self->at);
		else if (self->count && self->actions[0].kind != WAIT && self->actions[0].kind != UNTIL)
			sleep_until(beginning);
		self->owed = now(CLOCK_THREAD_CPUTIME_ID);
	}
	for (at = 0; at < self->count; at++)
		act(self, &self->actions[at]);
	__atomic_fetch_add(&cpu_ns, (unsigned long long)now(CLOCK_THREAD_CPUTIME_ID), __ATOMIC_RELAXED);
	if (__atomic_add_fetch(&finished, 1, __ATOMIC_SEQ_CST) == TASKS)
		futex(&finished, FUTEX_WAKE, 1);
	return NULL;
}

static unsigned long long spared(void)
{
	unsigned long long sum = 0;
	size_t task;

	for (task = 0; task < TASKS; task++)
		sum += tasks[task].spared;
	return sum;
}

static void count(void)
{
	static const char *const names[] = { "bursts", "wakeups", "waits", "sleeps", NULL, "starts", "priorities" };
	unsigned kind;
	size_t task;

	for (kind = 0; kind <= PRIORITY; kind++) {
		unsigned long long sum = 0;

		if (!names[kind])
			continue;
		for (task = 0; task < TASKS; task++)
			sum += tasks[task].done[kind];
		printf("%s %llu\n", names[kind], sum);
	}
	printf("spared %llu\n", spared());
}

static void make_pipes(void)
{
	struct rlimit files;
	size_t task;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	for (task = 0; task < TASKS; task++)
		if (pipe(tasks[task].ends) != 0)
			fail("pipe", errno);
}

static void usage(const char *program)
{
	printf("usage: %s [--pipes] [--affinity] [--count]\n"
	       "  --pipes     wake by pipes, as programs do that talk; without it by futexes, as locks do\n"
	       "  --affinity  bind tasks to the CPUs that they might use in the trace\n"
	       "  --count     print what was done\n",
	       program);
}

int main(int argc, char **argv)
{
	uint32_t done;
	long long end;
	size_t task;
	int at;

	for (at = 1; at < argc; at++) {
		if (strcmp(argv[at], "--pipes") == 0) {
			use_pipes = 1;
		} else if (strcmp(argv[at], "--affinity") == 0) {
			use_affinity = 1;
		} else if (strcmp(argv[at], "--count") == 0) {
			use_count = 1;
		} else {
			usage(argv[0]);
			return strcmp(argv[at], "--help") != 0;
		}
	}
	if (use_pipes)
		make_pipes();
	for (task = 0; task < TASKS; task++)
		if (tasks[task].start != STARTED)
			start(&tasks[task], SCHED_OTHER, getpriority(PRIO_PROCESS, 0));
	beginning = now(CLOCK_MONOTONIC) + 20000000;
	__atomic_store_n(&gate, 1, __ATOMIC_SEQ_CST);
	futex(&gate, FUTEX_WAKE, INT_MAX);
	while ((done = __atomic_load_n(&finished, __ATOMIC_SEQ_CST)) != TASKS)
		futex(&finished, FUTEX_WAIT, done);
	end = now(CLOCK_MONOTONIC);
	printf("elapsed %.6f s (in the trace %.6f s)\n", (double)(end - beginning) / 1e9, (double)TRACE_NS / 1e9);
	printf("CPU time %.6f s (in the trace %.6f s)\n", (double)cpu_ns / 1e9, (double)TRACE_CPU_NS / 1e9);
	if (TRACE_WAITS)
		printf("sleeps that an early wakeup spared: %.1f %% of %d\n",
		       100.0 * (double)spared() / (double)TRACE_WAITS, TRACE_WAITS);
	if (use_count)
		count();
	return 0;
}
