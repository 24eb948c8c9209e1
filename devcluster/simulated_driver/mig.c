/* MIG instances of the SIMULATED driver's cards. */
#include "simulation.h"

#include <string.h>

static nvmlReturn_t give(unsigned *place, unsigned value)
{
    if (place == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *place = value;
    return NVML_SUCCESS;
}

EXPORTED nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current,
                                           unsigned *pending)
{
    struct target target;
    nvmlReturn_t result = enter_device(__func__, device, &target);
    if (result == NVML_SUCCESS && target.device->max_instances == 0)
        result = NVML_ERROR_NOT_SUPPORTED;
    if (result == NVML_SUCCESS)
        result = give(current, target.device->mig_enabled);
    return leave(result == NVML_SUCCESS ? give(pending, target.device->mig_enabled) : result);
}

/* 0 for a card that knows no MIG or has it off; never an error for that. */
EXPORTED nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count)
{
    struct target target;
    nvmlReturn_t result = enter_device(__func__, device, &target);
    if (result != NVML_SUCCESS)
        return leave(result);
    return leave(give(count, target.device->mig_enabled ? target.device->max_instances : 0));
}

/* Indices may have gaps: NOT_FOUND there, and where MIG is off. */
EXPORTED nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index,
                                                          nvmlDevice_t *instance)
{
    struct target target;
    nvmlReturn_t result = enter_device(__func__, device, &target);
    if (result == NVML_SUCCESS && (instance == NULL || target.instance != NULL))
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result != NVML_SUCCESS)
        return leave(result);
    for (unsigned i = 0; i < target.device->instance_count; i++)
        if (target.device->mig_enabled && target.device->instances[i].index == index) {
            *instance = handle_of(target.device->instances[i].uuid);
            return leave(*instance != NULL ? NVML_SUCCESS : NVML_ERROR_MEMORY);
        }
    return leave(NVML_ERROR_NOT_FOUND);
}

EXPORTED nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t instance,
                                                                   nvmlDevice_t *device)
{
    struct target target;
    nvmlReturn_t result = enter_device(__func__, instance, &target);
    if (result == NVML_SUCCESS && (device == NULL || target.instance == NULL))
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS) {
        *device = handle_of(target.device->uuid);
        result = *device != NULL ? NVML_SUCCESS : NVML_ERROR_MEMORY;
    }
    return leave(result);
}

EXPORTED nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned *is_instance)
{
    struct target target;
    nvmlReturn_t result = enter_device(__func__, device, &target);
    return leave(result == NVML_SUCCESS ? give(is_instance, target.instance != NULL) : result);
}

EXPORTED nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned *id)
{
    struct target target;
    nvmlReturn_t result = enter_device(__func__, device, &target);
    if (result == NVML_SUCCESS && target.instance == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    return leave(result == NVML_SUCCESS ? give(id, target.instance->gpu_instance) : result);
}

EXPORTED nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned *id)
{
    struct target target;
    nvmlReturn_t result = enter_device(__func__, device, &target);
    if (result == NVML_SUCCESS && target.instance == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    return leave(result == NVML_SUCCESS ? give(id, target.instance->compute_instance) : result);
}

EXPORTED nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device,
                                                 nvmlDeviceAttributes_t *attributes)
{
    struct target target;
    nvmlReturn_t result = enter_device(__func__, device, &target);
    if (result == NVML_SUCCESS && attributes == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS && target.instance == NULL)
        result = NVML_ERROR_NOT_SUPPORTED;
    if (result == NVML_SUCCESS) {
        memset(attributes, 0, sizeof *attributes);
        attributes->multiprocessorCount = target.instance->multiprocessors;
        attributes->gpuInstanceSliceCount = target.instance->slices;
        attributes->computeInstanceSliceCount = target.instance->slices;
        attributes->memorySizeMB = target.instance->total_bytes / MIB;
    }
    return leave(result);
}

EXPORTED nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device,
                                              nvmlDeviceAttributes_t *attributes)
{
    return nvmlDeviceGetAttributes_v2(device, attributes);
}
