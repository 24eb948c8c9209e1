/* Faults on demand, and what a driver of some age does not offer yet.
 *
 * The file `faults` holds lines such as
 *   fault  function=nvmlDeviceGetMemoryInfo*  device=GPU-...  error=GPU_IS_LOST
 *   fault  function=*  device=*  hang_milliseconds=200
 *   fault  function=*  device=0  hides_process_memory=1
 * (fields parted by tabs). Absent fields match everything; errors of the first match count.
 */
#include "simulation.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    nvmlReturn_t error;
} ERRORS[] = {
    {"UNINITIALIZED", NVML_ERROR_UNINITIALIZED},
    {"INVALID_ARGUMENT", NVML_ERROR_INVALID_ARGUMENT},
    {"NOT_SUPPORTED", NVML_ERROR_NOT_SUPPORTED},
    {"NO_PERMISSION", NVML_ERROR_NO_PERMISSION},
    {"NOT_FOUND", NVML_ERROR_NOT_FOUND},
    {"INSUFFICIENT_SIZE", NVML_ERROR_INSUFFICIENT_SIZE},
    {"DRIVER_NOT_LOADED", NVML_ERROR_DRIVER_NOT_LOADED},
    {"TIMEOUT", NVML_ERROR_TIMEOUT},
    {"FUNCTION_NOT_FOUND", NVML_ERROR_FUNCTION_NOT_FOUND},
    {"GPU_IS_LOST", NVML_ERROR_GPU_IS_LOST},
    {"RESET_REQUIRED", NVML_ERROR_RESET_REQUIRED},
    {"OPERATING_SYSTEM", NVML_ERROR_OPERATING_SYSTEM},
    {"LIB_RM_VERSION_MISMATCH", NVML_ERROR_LIB_RM_VERSION_MISMATCH},
    {"IN_USE", NVML_ERROR_IN_USE},
    {"MEMORY", NVML_ERROR_MEMORY},
    {"NO_DATA", NVML_ERROR_NO_DATA},
    {"GPU_NOT_FOUND", NVML_ERROR_GPU_NOT_FOUND},
    {"UNKNOWN", NVML_ERROR_UNKNOWN},
};

/* The first driver that has a function. Older ones answer FUNCTION_NOT_FOUND, as pynvml does
 * itself where the library lacks the symbol. */
static const struct {
    const char *pattern;
    unsigned major, minor, patch;
} FIRST_DRIVERS[] = {
    {"nvmlDeviceGet*RunningProcesses_v3", 510, 39, 1},
    {"nvmlDeviceGetMemoryInfo_v2", 510, 39, 1},
    {"nvmlDeviceGetRunningProcessDetailList", 535, 104, 5},
    {"nvmlDevice?etMemoryLimits_v1", 615, 0, 0},
};

bool offered_by(struct version driver, const char *function)
{
    for (size_t i = 0; i < sizeof FIRST_DRIVERS / sizeof FIRST_DRIVERS[0]; i++)
        if (fnmatch(FIRST_DRIVERS[i].pattern, function, 0) == 0)
            return !older_than(driver, FIRST_DRIVERS[i].major, FIRST_DRIVERS[i].minor,
                               FIRST_DRIVERS[i].patch);
    return true;
}

static nvmlReturn_t error_named(const char *name)
{
    for (size_t i = 0; i < sizeof ERRORS / sizeof ERRORS[0]; i++)
        if (strcmp(ERRORS[i].name, name) == 0)
            return ERRORS[i].error;
    return NVML_ERROR_UNKNOWN;
}

static bool concerns(const char *pattern, const struct driver *driver, const char *uuid)
{
    struct target target;
    char index[16];
    if (pattern[0] == '\0' || strcmp(pattern, "*") == 0)
        return true;
    if (uuid == NULL || !find_target(driver, uuid, &target))
        return uuid != NULL && strcmp(pattern, uuid) == 0;
    /* A fault of a card is one of its MIG instances too. */
    snprintf(index, sizeof index, "%u", (unsigned)(target.device - driver->devices));
    return strcmp(pattern, uuid) == 0 || strcmp(pattern, target.device->uuid) == 0 ||
           strcmp(pattern, index) == 0;
}

static void add_fault(struct fault *fault, const char *line)
{
    char error[32];
    if (fault->error == NVML_SUCCESS && field_text(line, "error", error, sizeof error))
        fault->error = error_named(error);
    fault->hang_milliseconds += (unsigned)field_number(line, "hang_milliseconds", 0);
    fault->hides_process_memory |= field_number(line, "hides_process_memory", 0) != 0;
}

/* `uuid` is NULL for a call that concerns no card. */
struct fault find_fault(const char *function, const struct driver *driver, const char *uuid)
{
    char path[PATH_MAX], pattern[80], device[UUID_SIZE];
    struct fault fault = {NVML_SUCCESS, 0, false};
    char *text = state_path(path, sizeof path, "faults", "") ? read_text(path) : NULL;
    char *rest = text;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        if (strncmp(line, "fault\t", 6) != 0)
            continue;
        field_text(line, "device", device, sizeof device);
        if (field_text(line, "function", pattern, sizeof pattern) &&
            fnmatch(pattern, function, 0) != 0)
            continue;
        if (concerns(device, driver, uuid))
            add_fault(&fault, line);
    }
    free(text);
    return fault;
}
