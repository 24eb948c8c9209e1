/* nvmlDeviceSetMemoryLimits_v1 and nvmlDeviceGetMemoryLimits_v1 of the SIMULATED driver. */
#include "simulation.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Names of files cannot hold a path, so its characters are summed up (64-bit FNV-1a). */
static bool limit_path(char *path, size_t size, const char *uuid, const char *cgroup)
{
    char name[UUID_SIZE + 24];
    uint64_t sum = 14695981039346656037ULL;
    for (const char *at = cgroup; *at != '\0'; at++)
        sum = (sum ^ (unsigned char)*at) * 1099511628211ULL;
    snprintf(name, sizeof name, "%s-%016llx", uuid, (unsigned long long)sum);
    return state_path(path, size, "limits", name);
}

static nvmlReturn_t store_limit(struct target target, const nvmlSetMemoryLimits_v1_t *limits)
{
    char path[PATH_MAX], text[1024];
    struct stat status;
    if (target.instance != NULL || target.device->mig_enabled)
        return NVML_ERROR_NOT_SUPPORTED;
    if (limits == NULL || limits->nameSpace == NULL || limits->softLimit > limits->hardLimit)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (geteuid() != 0)
        return NVML_ERROR_NO_PERMISSION;
    if (stat(limits->nameSpace, &status) != 0 || !S_ISDIR(status.st_mode))
        return NVML_ERROR_NOT_FOUND;
    if (!limit_path(path, sizeof path, target.device->uuid, limits->nameSpace))
        return NVML_ERROR_UNKNOWN;
    if (limits->softLimit == 0 && limits->hardLimit == NVML_DEVICE_MEMORY_LIMIT_MAX) {
        unlink(path);
        return NVML_SUCCESS;
    }
    int length = snprintf(text, sizeof text, "limit\tuuid=%s\tcgroup=%s\tinode=%llu\tsoft=%llu\thard=%llu\n",
                          target.device->uuid, limits->nameSpace,
                          (unsigned long long)status.st_ino, limits->softLimit,
                          limits->hardLimit);
    bool stored = (size_t)length < sizeof text && write_text(path, text);
    return stored ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

static nvmlReturn_t read_limits(struct target target, nvmlGetMemoryLimits_v1_t *limits)
{
    struct records records;
    struct limit limit = {.soft = 0, .hard = NVML_DEVICE_MEMORY_LIMIT_MAX};
    struct stat status;
    if (target.instance != NULL || target.device->mig_enabled)
        return NVML_ERROR_NOT_SUPPORTED;
    if (limits == NULL || limits->nameSpace == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (stat(limits->nameSpace, &status) != 0)
        return NVML_ERROR_NOT_FOUND;
    if (!read_records(&records))
        return NVML_ERROR_UNKNOWN;
    find_limit(target.device->uuid, limits->nameSpace, &limit);
    limits->softLimit = limit.soft;
    limits->hardLimit = limit.hard;
    limits->currentUsed = 0;
    for (size_t i = 0; i < records.count; i++)
        if (belongs_to(&records.items[i], target) &&
            inside_cgroup(records.items[i].cgroup, limits->nameSpace))
            limits->currentUsed += records.items[i].bytes;
    free_records(&records);
    return NVML_SUCCESS;
}

EXPORTED nvmlReturn_t nvmlDeviceSetMemoryLimits_v1(nvmlDevice_t device,
                                                   const nvmlSetMemoryLimits_v1_t *limits)
{
    struct target target;
    nvmlReturn_t result = enter_device(__func__, device, &target);
    return leave(result == NVML_SUCCESS ? store_limit(target, limits) : result);
}

EXPORTED nvmlReturn_t nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t device,
                                                   nvmlGetMemoryLimits_v1_t *limits)
{
    struct target target;
    nvmlReturn_t result = enter_device(__func__, device, &target);
    return leave(result == NVML_SUCCESS ? read_limits(target, limits) : result);
}
