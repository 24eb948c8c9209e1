/* SIMULATION of NVIDIA's management library (NVML): no driver and no GPU is involved.
 *
 * A small libnvidia-ml.so.1 on which the unchanged Python module `pynvml` runs, for tests and
 * demonstrations on machines without a GPU. docs/simulated-driver.md says what is simulated, what
 * is not, and where each rule comes from.
 *
 * Here: the life of the library, the way into every entry point, and questions about the system.
 */
#include "simulation.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Whoever wants to know whether a library is this one asks for this symbol. */
EXPORTED const char gpumem_simulated_driver[] =
    "simulated NVIDIA driver of gpu-memory-operator: no GPU is involved";

struct driver current_driver;
static struct timespec loaded_change;
static ino_t loaded_inode;
static unsigned users; /* successful calls of nvmlInit less those of nvmlShutdown */
static bool current_call_hides_memory;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

/* Reads driver.conf again when another file stands there: it is replaced, never edited. */
static bool refresh_driver(void)
{
    char path[PATH_MAX];
    struct stat status;
    if (!state_path(path, sizeof path, "driver.conf", "") || stat(path, &status) != 0) {
        loaded_inode = 0;
        return false;
    }
    if (loaded_inode == status.st_ino && loaded_change.tv_sec == status.st_mtim.tv_sec &&
        loaded_change.tv_nsec == status.st_mtim.tv_nsec)
        return true;
    if (!load_driver(&current_driver))
        return false;
    loaded_inode = status.st_ino;
    loaded_change = status.st_mtim;
    return true;
}

/* Sleeps without the guard, so that one hanging card does not hide the others. */
static void hang(unsigned milliseconds)
{
    struct timespec left = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000L};
    pthread_mutex_unlock(&guard);
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
    pthread_mutex_lock(&guard);
}

static nvmlReturn_t enter_for(const char *function, const char *uuid, bool needs_init)
{
    pthread_mutex_lock(&guard);
    if (!refresh_driver())
        return users > 0 || !needs_init ? NVML_ERROR_DRIVER_NOT_LOADED : NVML_ERROR_UNINITIALIZED;
    if (!offered_by(current_driver.version, function))
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    if (needs_init && users == 0)
        return NVML_ERROR_UNINITIALIZED;
    struct fault fault = find_fault(function, &current_driver, uuid);
    current_call_hides_memory = fault.hides_process_memory;
    if (fault.hang_milliseconds > 0)
        hang(fault.hang_milliseconds);
    return fault.error;
}

nvmlReturn_t enter(const char *function)
{
    return enter_for(function, NULL, true);
}

nvmlReturn_t enter_uuid(const char *function, const char *uuid)
{
    return enter_for(function, uuid, true);
}

/* On success `target` is what the handle names now: cards may have come and gone. */
nvmlReturn_t enter_device(const char *function, nvmlDevice_t handle, struct target *target)
{
    const char *uuid = uuid_of(handle);
    nvmlReturn_t result = enter_for(function, uuid, true);
    if (result != NVML_SUCCESS)
        return result;
    if (uuid == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (find_target(&current_driver, uuid, target))
        return NVML_SUCCESS;
    /* An instance that is gone makes its handle invalid; a card that is gone was lost. */
    return strncmp(uuid, "MIG-", 4) == 0 ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_GPU_IS_LOST;
}

nvmlReturn_t leave(nvmlReturn_t result)
{
    pthread_mutex_unlock(&guard);
    return result;
}

/* Whether a fault hides the memory of processes from the call that was entered last. */
bool process_memory_hidden(void)
{
    return current_call_hides_memory;
}

nvmlReturn_t copy_text(char *buffer, unsigned size, const char *text)
{
    if (buffer == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= size)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(buffer, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

/* ---- Life of the library: reference counted, as the real one since 5.319 ---- */

EXPORTED nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
    (void)flags; /* "attach no GPU", "fail without a GPU": neither changes what is simulated */
    nvmlReturn_t result = enter_for("nvmlInit", NULL, false);
    if (result == NVML_SUCCESS && users++ == 0)
        remember_devices();
    return leave(result);
}

EXPORTED nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

EXPORTED nvmlReturn_t nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

EXPORTED nvmlReturn_t nvmlShutdown(void)
{
    pthread_mutex_lock(&guard);
    nvmlReturn_t result = users > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
    users -= users > 0;
    return leave(result);
}

/* In the words of driver 580. */
static const struct {
    unsigned code;
    const char *text;
} ERROR_TEXTS[] = {
    {0, "Success"},
    {1, "Uninitialized"},
    {2, "Invalid Argument"},
    {3, "Not Supported"},
    {4, "Insufficient Permissions"},
    {5, "Already Initialized"},
    {6, "Not Found"},
    {7, "Insufficient Size"},
    {8, "Insufficient External Power"},
    {9, "Driver Not Loaded"},
    {10, "Timeout"},
    {11, "Interrupt Request Issue"},
    {12, "NVML Shared Library Not Found"},
    {13, "Function Not Found"},
    {14, "Corrupted infoROM"},
    {15, "GPU is lost"},
    {16, "GPU requires reset"},
    {17, "GPU access blocked by the operating system"},
    {18, "Driver/library version mismatch"},
    {19, "In use by another client"},
    {20, "Insufficient Memory"},
    {21, "No data"},
    {22, "vGPU ECC not supported"},
    {23, "Insufficient Resources"},
    {24, "Invalid Frequency"},
    {25, "Argument version mismatch"},
    {26, "Requested functionality has been deprecated"},
    {27, "System is not in ready state"},
    {28, "No supported GPUs were found"},
    {29, "Resource not in correct state to perform requested operation"},
    {30, "Reset type is not supported for given device"},
};

EXPORTED const char *nvmlErrorString(unsigned code)
{
    for (size_t i = 0; i < sizeof ERROR_TEXTS / sizeof ERROR_TEXTS[0]; i++)
        if (ERROR_TEXTS[i].code == code)
            return ERROR_TEXTS[i].text;
    return "Unknown Error";
}

/* ---- The system ---- */

EXPORTED nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    char text[96];
    nvmlReturn_t result = enter(__func__);
    snprintf(text, sizeof text, "%s-simulated", current_driver.version_text);
    return leave(result == NVML_SUCCESS ? copy_text(version, length, text) : result);
}

EXPORTED nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
    char text[96];
    nvmlReturn_t result = enter(__func__);
    snprintf(text, sizeof text, "%d.%s-simulated", current_driver.cuda_version / 1000,
             current_driver.version_text);
    return leave(result == NVML_SUCCESS ? copy_text(version, length, text) : result);
}

EXPORTED nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    nvmlReturn_t result = enter(__func__);
    if (result == NVML_SUCCESS && version == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        *version = current_driver.cuda_version;
    return leave(result);
}

EXPORTED nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

/* Reads /proc as the real one does: NOT_FOUND for a PID of another namespace. */
EXPORTED nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length)
{
    char path[64], target[PATH_MAX];
    nvmlReturn_t result = enter(__func__);
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    char *command = result == NVML_SUCCESS ? read_text(path) : NULL;
    if (result == NVML_SUCCESS && command == NULL)
        result = NVML_ERROR_NOT_FOUND;
    if (result == NVML_SUCCESS) {
        snprintf(target, sizeof target, "%s", command);
        if (name != NULL && length > 0 && strlen(target) >= length)
            target[length - 1] = '\0';
        result = copy_text(name, length, target);
    }
    free(command);
    return leave(result);
}
