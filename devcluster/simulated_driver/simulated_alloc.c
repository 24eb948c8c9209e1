/* simulated-alloc: a program that holds memory of a SIMULATED card for as long as it lives.
 *
 * Prints one line when it holds, then one per change. Commands on standard input: `set MIB`,
 * `managed MIB`, `end`; the end of the input leaves it holding. Ends cleanly on SIGTERM and SIGINT.
 * Exit codes: 0 ended as asked, 2 out of memory, 3 over the limit of its cgroup, 64 wrong usage,
 * 69 no such GPU or no usable state folder.
 */
#include "simulation.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_OUT_OF_MEMORY = 2, EXIT_OVER_LIMIT = 3, EXIT_USAGE = 64, EXIT_UNAVAILABLE = 69 };

static const char USAGE[] =
    "usage: simulated-alloc --gpu UUID|INDEX --mib N [--kind compute|graphics|mps]\n"
    "                       [--managed-mib M] [--grow-mib-per-second R] [--seconds S]\n"
    "Holds memory of a simulated card; $SIMULATED_NVIDIA_DRIVER names the driver's folder.\n";

struct options {
    const char *gpu;
    enum kind kind;
    uint64_t mib, managed_mib;
    double grow_mib_per_second, seconds; /* 0 seconds: until it is told to end */
};

static volatile sig_atomic_t told_to_end;

static void end(int signal_number)
{
    (void)signal_number;
    told_to_end = 1;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static bool parse_amount(const char *text, double *amount)
{
    char *last;
    *amount = strtod(text, &last);
    return last != text && (*last == '\0' || *last == '\n') && *amount >= 0 && *amount < 1e9;
}

static bool take_option(struct options *options, int option, const char *text)
{
    double amount = 0;
    if (option == 'g') {
        options->gpu = text;
        return true;
    }
    if (option == 'k') {
        options->kind = parse_kind(text);
        return strcmp(kind_text(options->kind), text) == 0;
    }
    if (option == '?' || !parse_amount(text, &amount))
        return false;
    if (option == 'm')
        options->mib = (uint64_t)amount;
    else if (option == 'u')
        options->managed_mib = (uint64_t)amount;
    else if (option == 'r')
        options->grow_mib_per_second = amount;
    else
        options->seconds = amount;
    return true;
}

static bool parse_options(int count, char **arguments, struct options *options)
{
    static const struct option NAMES[] = {
        {"gpu", required_argument, NULL, 'g'},
        {"mib", required_argument, NULL, 'm'},
        {"kind", required_argument, NULL, 'k'},
        {"managed-mib", required_argument, NULL, 'u'},
        {"grow-mib-per-second", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'},
        {NULL, 0, NULL, 0},
    };
    *options = (struct options){.gpu = NULL, .kind = KIND_COMPUTE, .mib = UINT64_MAX};
    for (int option; (option = getopt_long(count, arguments, "", NAMES, NULL)) != -1;)
        if (!take_option(options, option, optarg))
            return false;
    return optind == count && options->gpu != NULL && options->mib != UINT64_MAX;
}

static int explain(enum holding_result result, const struct holding *holding, uint64_t mib,
                   const char *gpu)
{
    const char *folder = state_folder();
    if (result == OUT_OF_MEMORY || result == OVER_CGROUP_LIMIT) {
        fprintf(stderr,
                "simulated-alloc: out of memory: asked for %" PRIu64 " MiB, %" PRIu64
                " MiB are free %s\n",
                mib, (uint64_t)(holding->free_bytes / MIB),
                result == OUT_OF_MEMORY ? "on the card" : "under the limit of this cgroup");
        return result == OUT_OF_MEMORY ? EXIT_OUT_OF_MEMORY : EXIT_OVER_LIMIT;
    }
    if (result == NO_SUCH_DEVICE)
        fprintf(stderr,
                "simulated-alloc: %s is no card of this driver, or MIG is on and an instance "
                "(MIG-...) must be named\n",
                gpu);
    else
        fprintf(stderr,
                "simulated-alloc: the state folder %s cannot be used: set SIMULATED_NVIDIA_DRIVER "
                "to a folder with driver.conf that this user may write to\n",
                folder != NULL ? folder : "(none named)");
    return EXIT_UNAVAILABLE;
}

static void say(const char *what, const struct holding *holding)
{
    printf("%s %" PRIu64 " MiB %s, managed %" PRIu64 " MiB, of %s as pid %ld\n", what,
           (uint64_t)(holding->bytes / MIB), kind_text(holding->kind),
           (uint64_t)(holding->managed_bytes / MIB), holding->uuid, (long)getpid());
    fflush(stdout);
}

static enum holding_result obey(struct holding *holding, const char *line, uint64_t *asked_mib)
{
    double amount;
    uint64_t bytes = holding->bytes, managed_bytes = holding->managed_bytes;
    if (strcmp(line, "end\n") == 0) {
        told_to_end = 1;
        return HELD;
    }
    if (strncmp(line, "set ", 4) == 0 && parse_amount(line + 4, &amount)) {
        bytes = (uint64_t)amount * MIB;
    } else if (strncmp(line, "managed ", 8) == 0 && parse_amount(line + 8, &amount)) {
        managed_bytes = (uint64_t)amount * MIB;
    } else {
        fprintf(stderr, "simulated-alloc: commands are `set MIB`, `managed MIB`, `end`, not %s", line);
        return HELD;
    }
    *asked_mib = (bytes + managed_bytes) / MIB;
    enum holding_result result = resize(holding, bytes, managed_bytes);
    if (result == HELD)
        say("holding", holding);
    return result;
}

/* Every tenth of a second: fine enough for a ramp, and light. */
static enum holding_result grow(struct holding *holding, const struct options *options,
                                double since, uint64_t *asked_mib)
{
    uint64_t grown = (uint64_t)(options->grow_mib_per_second * (now() - since));
    *asked_mib = options->mib + grown;
    if (*asked_mib * MIB <= holding->bytes)
        return HELD;
    return resize(holding, *asked_mib * MIB, holding->managed_bytes);
}

static int wait_milliseconds(const struct options *options, double since)
{
    if (options->grow_mib_per_second > 0)
        return 100;
    if (options->seconds <= 0)
        return -1;
    double left = since + options->seconds - now();
    return left > 0 ? (int)(left * 1000) + 1 : 0;
}

static enum holding_result stay(struct holding *holding, const struct options *options,
                                const sigset_t *while_waiting, uint64_t *asked_mib)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    enum holding_result result = HELD;
    double since = now();
    char line[128];
    while (result == HELD && !told_to_end) {
        int left = wait_milliseconds(options, since);
        struct timespec timeout = {left / 1000, (long)(left % 1000) * 1000000L};
        int ready = ppoll(&input, 1, left < 0 ? NULL : &timeout, while_waiting);
        if (ready > 0 && fgets(line, sizeof line, stdin) != NULL)
            result = obey(holding, line, asked_mib);
        else if (ready > 0)
            input.fd = -1; /* nobody will say anything any more */
        if (result == HELD && options->grow_mib_per_second > 0)
            result = grow(holding, options, since, asked_mib);
        if (options->seconds > 0 && now() - since >= options->seconds)
            break;
    }
    return result;
}

int main(int count, char **arguments)
{
    struct options options;
    struct holding holding;
    sigset_t signals, while_waiting;
    if (!parse_options(count, arguments, &options)) {
        fputs(USAGE, stderr);
        return EXIT_USAGE;
    }
    /* Blocked except while waiting: a signal in between is not lost. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, &while_waiting);
    struct sigaction action = {.sa_handler = end};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    setvbuf(stdin, NULL, _IONBF, 0); /* poll() must see every line that fgets() has not read */

    uint64_t asked_mib = options.mib + options.managed_mib;
    enum holding_result result = hold(&holding, options.gpu, options.kind, options.mib * MIB,
                                      options.managed_mib * MIB);
    if (result == HELD) {
        say("holding", &holding);
        result = stay(&holding, &options, &while_waiting, &asked_mib);
    }
    int code = result == HELD ? 0 : explain(result, &holding, asked_mib, options.gpu);
    release(&holding);
    return code;
}
