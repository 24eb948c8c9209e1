/* A simulated libcuda.so.1 over the simulated libnvidia-ml.so.1: the calls that the shim makes.
 *
 * As the real one, it knows nothing before cuInit (CUDA_ERROR_NOT_INITIALIZED is 3). The simulated
 * frameworks call that when they "start CUDA".
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct memory {
    unsigned long long total, free, used;
};

static void *nvml;
static int started;

static void *call(const char *name)
{
    return dlsym(nvml, name);
}

int cuInit(unsigned flags)
{
    (void)flags;
    if (getenv("SIMULATED_CUDA_HAS_NO_DEVICE"))
        return 100;
    nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!nvml || ((int (*)(void))call("nvmlInit_v2"))())
        return 100;
    started = 1;
    return 0;
}

/* The n-th of those that the container was given, where they are named. */
static int handle_of(int ordinal, void **handle)
{
    int (*by_index)(unsigned, void **) = call("nvmlDeviceGetHandleByIndex_v2");
    int (*by_uuid)(const char *, void **) = call("nvmlDeviceGetHandleByUUID");
    const char *given = getenv("NVIDIA_VISIBLE_DEVICES");
    char name[96];
    if (given && strncmp(given, "GPU-", 4) == 0) {
        for (int i = 0; i < ordinal && given; i++)
            given = strchr(given, ',') ? strchr(given, ',') + 1 : NULL;
        if (!given)
            return 2;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(given, ","), given);
        return by_uuid(name, handle);
    }
    return by_index((unsigned)ordinal, handle);
}

int cuDeviceGetCount(int *count)
{
    const char *given = getenv("SIMULATED_GPUS");
    *count = given ? atoi(given) : 1;
    return started ? 0 : 3;
}

int cuDeviceGet(int *device, int ordinal)
{
    void *handle;
    if (!started)
        return 3;
    *device = ordinal;
    return handle_of(ordinal, &handle) ? 101 : 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    void *handle;
    struct memory memory;
    int (*info)(void *, struct memory *) = call("nvmlDeviceGetMemoryInfo");
    if (getenv("SIMULATED_CUDA_HIDES_THE_TOTAL") || handle_of(device, &handle) ||
        info(handle, &memory))
        return 801;
    *bytes = memory.total;
    return 0;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
    void *handle;
    char text[96];
    int (*uuid_of)(void *, char *, unsigned) = call("nvmlDeviceGetUUID");
    if (handle_of(device, &handle) || uuid_of(handle, text, sizeof text))
        return 801;
    const char *digits = strchr(text, '-');
    for (int i = 0; i < 16; i++) {
        unsigned byte;
        while (*digits == '-')
            digits++;
        if (sscanf(digits, "%2x", &byte) != 1)
            return 801;
        uuid[i] = (unsigned char)byte;
        digits += 2;
    }
    return 0;
}

int cuDeviceGetName(char *name, int length, int device)
{
    (void)device;
    const char *given = getenv("SIMULATED_CUDA_NAME");
    snprintf(name, (size_t)length, "%s", given ? given : "Simulated H200");
    return 0;
}
