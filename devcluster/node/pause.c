/* The first process of a pod: waits to be told to end, and buries orphans where the pod's
 * containers share their processes. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int number)
{
    _exit(number == SIGTERM ? 0 : 1);
}

static void bury(int number)
{
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

int main(void)
{
    struct sigaction ending = {.sa_handler = end};
    struct sigaction burying = {.sa_handler = bury, .sa_flags = SA_NOCLDSTOP};
    if (sigaction(SIGTERM, &ending, NULL) != 0 || sigaction(SIGINT, &ending, NULL) != 0 ||
        sigaction(SIGCHLD, &burying, NULL) != 0)
        return 2;
    for (;;)
        pause();
}
