/* Holds memory of a real NVIDIA GPU for as long as it lives; needs no CUDA to be compiled:
 *     cc -O2 -o real_gpu_hold real_gpu_hold.c -ldl
 * usage: real_gpu_hold --gpu INDEX --mib N
 * Prints one line that ends with its PID when it holds, and one per command on its input:
 * `set MIB`, `end`. The same commands as simulated-alloc's, so that one script drives both.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *library;

static void *find(const char *name)
{
    void *function = dlsym(library, name);
    if (function == NULL) {
        fprintf(stderr, "libcuda.so.1 has no %s\n", name);
        exit(69);
    }
    return function;
}

static void check(int code, const char *what)
{
    if (code != 0) {
        fprintf(stderr, "%s: CUDA error %d\n", what, code);
        exit(code == 2 ? 2 : 69);
    }
}

int main(int count, char **words)
{
    unsigned long long memory = 0;
    void *context = NULL;
    int device = 0;
    char line[64];
    if (count != 5 || strcmp(words[1], "--gpu") != 0 || strcmp(words[3], "--mib") != 0) {
        fprintf(stderr, "usage: real_gpu_hold --gpu INDEX --mib N\n");
        return 64;
    }
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 69;
    }
    int (*allocate)(unsigned long long *, size_t) =
        (int (*)(unsigned long long *, size_t))find("cuMemAlloc_v2");
    int (*release)(unsigned long long) = (int (*)(unsigned long long))find("cuMemFree_v2");
    check(((int (*)(unsigned))find("cuInit"))(0), "cuInit");
    check(((int (*)(int *, int))find("cuDeviceGet"))(&device, atoi(words[2])), "cuDeviceGet");
    check(((int (*)(void **, int))find("cuDevicePrimaryCtxRetain"))(&context, device), "context");
    check(((int (*)(void *))find("cuCtxSetCurrent"))(context), "cuCtxSetCurrent");
    check(allocate(&memory, strtoull(words[4], NULL, 10) << 20), "cuMemAlloc");
    printf("holding %s MiB, pid %ld\n", words[4], (long)getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL && strncmp(line, "set ", 4) == 0) {
        check(release(memory), "cuMemFree");
        check(allocate(&memory, strtoull(line + 4, NULL, 10) << 20), "cuMemAlloc");
        printf("holding %llu MiB\n", strtoull(line + 4, NULL, 10));
        fflush(stdout);
    }
    return 0;
}
