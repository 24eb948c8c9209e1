/* Process lists of the SIMULATED driver: which PIDs and bytes a caller gets.
 *
 * The kernel module of a real driver changed twice what a caller in a child PID namespace gets:
 *   before 535.113.01   every process, with host PIDs
 *   before 565.57.01    its own namespace's processes and PIDs, but 0 bytes
 *   since then          its own namespace's processes, PIDs and bytes
 * A caller in the host's namespace gets every process with the right bytes from all of them.
 */
#include "simulation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct listed {
    unsigned pid, gpu_instance, compute_instance;
    uint64_t bytes;
};

struct list {
    struct listed *items;
    unsigned count;
};

/* Far above what a test's own PID can be, below Linux's largest (2^22). */
static pid_t stand_in_pid(const char *id)
{
    unsigned sum = 0;
    for (; *id != '\0'; id++)
        sum = sum * 31 + (unsigned char)*id;
    return (pid_t)(3000000 + sum % 1000000);
}

/* Only a caller in the host's namespace can know a host PID: it leaves a note for the others.
 * Where none was left, a stand-in is as foreign to a child namespace as the true one. */
static pid_t host_pid(const struct record *record, bool caller_is_host)
{
    char name[80], path[PATH_MAX], text[32];
    snprintf(name, sizeof name, "%s.hostpid", record->id);
    if (!state_path(path, sizeof path, "allocations", name))
        return 0;
    if (caller_is_host && record->visible_pid > 0) {
        snprintf(text, sizeof text, "pid=%ld\n", (long)record->visible_pid);
        write_text(path, text);
        return record->visible_pid;
    }
    char *note = read_text(path);
    uint64_t pid = note != NULL ? field_number(note, "pid", 0) : 0;
    free(note);
    return pid != 0 ? (pid_t)pid : stand_in_pid(record->id);
}

static void apply_era(const struct record *record, bool caller_is_host, struct listed *listed)
{
    listed->pid = (unsigned)record->visible_pid;
    listed->bytes = record->bytes;
    if (older_than(current_driver.version, 535, 113, 1))
        listed->pid = (unsigned)host_pid(record, caller_is_host);
    else if (older_than(current_driver.version, 565, 57, 1) && !caller_is_host)
        listed->bytes = 0;
}

static void name_instance(struct target target, const struct record *record,
                          struct listed *listed)
{
    listed->gpu_instance = listed->compute_instance = NVML_NO_MIG_INSTANCE;
    for (unsigned i = 0; i < target.device->instance_count; i++)
        if (strcmp(target.device->instances[i].uuid, record->uuid) == 0) {
            listed->gpu_instance = target.device->instances[i].gpu_instance;
            listed->compute_instance = target.device->instances[i].compute_instance;
        }
}

/* One entry per process and instance, however many allocations it has. */
static void add_to_list(struct list *list, const struct listed *listed)
{
    for (unsigned i = 0; i < list->count; i++) {
        struct listed *known = &list->items[i];
        if (known->pid == listed->pid && known->gpu_instance == listed->gpu_instance &&
            known->compute_instance == listed->compute_instance) {
            known->bytes += listed->bytes;
            return;
        }
    }
    list->items[list->count++] = *listed;
}

/* A client of MPS is in both lists (nvidia-smi calls it "M+C"). */
static bool is_in_list(enum kind of_record, enum kind of_list)
{
    return of_record == of_list || (of_record == KIND_MPS && of_list == KIND_COMPUTE);
}

/* On success the caller frees `items`. */
static nvmlReturn_t list_processes(struct target target, enum kind kind, struct list *list)
{
    struct records records;
    struct listed listed;
    *list = (struct list){NULL, 0};
    if (!sees_whole_card(target))
        return NVML_ERROR_NO_PERMISSION;
    if (!read_records(&records))
        return NVML_ERROR_UNKNOWN;
    list->items = calloc(records.count + 1, sizeof *list->items);
    bool caller_is_host = own_pid_namespace() == current_driver.host_pid_namespace;
    for (size_t i = 0; i < records.count && list->items != NULL; i++) {
        const struct record *record = &records.items[i];
        if (!belongs_to(record, target) || !is_in_list(record->kind, kind))
            continue;
        apply_era(record, caller_is_host, &listed);
        name_instance(target, record, &listed);
        if (process_memory_hidden())
            listed.bytes = NVML_VALUE_NOT_AVAILABLE;
        if (listed.pid != 0)
            add_to_list(list, &listed);
    }
    free_records(&records);
    return list->items != NULL ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

/* How NVML hands out a list: `count` is the room, then the number; too little room is an error
 * that tells the number, and with no room `infos` may be NULL. */
static nvmlReturn_t fill(const char *function, nvmlDevice_t device, enum kind kind,
                         unsigned *count, nvmlProcessInfo_t *infos)
{
    struct target target;
    struct list list = {NULL, 0};
    nvmlReturn_t result = enter_device(function, device, &target);
    if (result == NVML_SUCCESS && count == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        result = list_processes(target, kind, &list);
    if (result == NVML_SUCCESS && list.count > 0 && *count > 0 && infos == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS) {
        result = list.count > *count ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
        for (unsigned i = 0; i < list.count && result == NVML_SUCCESS; i++)
            infos[i] = (nvmlProcessInfo_t){list.items[i].pid, list.items[i].bytes,
                                           list.items[i].gpu_instance,
                                           list.items[i].compute_instance};
        *count = list.count;
    }
    free(list.items);
    return leave(result);
}

#define PROCESS_LIST(function, kind)                                                               \
    EXPORTED nvmlReturn_t function(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *infos) \
    {                                                                                              \
        return fill(#function, device, kind, count, infos);                                        \
    }

PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, KIND_COMPUTE)
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, KIND_COMPUTE)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, KIND_GRAPHICS)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, KIND_GRAPHICS)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, KIND_MPS)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, KIND_MPS)

EXPORTED nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                            nvmlProcessDetailList_v1_t *details)
{
    struct target target;
    struct list list = {NULL, 0};
    nvmlReturn_t result = enter_device(__func__, device, &target);
    if (result == NVML_SUCCESS && details == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS &&
        details->version != NVML_STRUCT_VERSION(nvmlProcessDetailList_v1_t, 1U))
        result = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (result == NVML_SUCCESS && details->mode > (unsigned)KIND_MPS)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        result = list_processes(target, (enum kind)details->mode, &list);
    if (result == NVML_SUCCESS) {
        bool room = details->procArray != NULL && list.count <= details->numProcArrayEntries;
        result = room || list.count == 0 ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
        for (unsigned i = 0; i < list.count && result == NVML_SUCCESS; i++)
            details->procArray[i] = (nvmlProcessDetail_v1_t){
                list.items[i].pid, list.items[i].bytes, list.items[i].gpu_instance,
                list.items[i].compute_instance, 0};
        details->numProcArrayEntries = list.count;
    }
    free(list.items);
    return leave(result);
}

/* Nothing computes here, so no process was busy: NOT_FOUND, as the real one for an empty window.
 * Asked without a buffer, it first tells how large one has to be. */
EXPORTED nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                                      nvmlProcessUtilizationSample_t *samples,
                                                      unsigned *count, unsigned long long since)
{
    struct target target;
    (void)since;
    nvmlReturn_t result = enter_device(__func__, device, &target);
    if (result == NVML_SUCCESS && count == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result != NVML_SUCCESS)
        return leave(result);
    if (target.device->mig_enabled)
        return leave(NVML_ERROR_NOT_SUPPORTED);
    *count = samples == NULL ? 100 : 0;
    return leave(samples == NULL ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_ERROR_NOT_FOUND);
}
