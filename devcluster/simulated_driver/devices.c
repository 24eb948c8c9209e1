/* Cards of the SIMULATED driver: handles, names, addresses, memory. */
#include "simulation.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Entries stay for as long as the library is loaded: a handle never dangles. */
#define MAX_HANDLES 512
struct nvmlDevice_st {
    char uuid[UUID_SIZE];
};
static struct nvmlDevice_st handles[MAX_HANDLES];

/* A real driver counts its cards at nvmlInit: a later one is seen after another nvmlInit, and one
 * that went away keeps its index and is lost. */
static char found_at_init[MAX_DEVICES][UUID_SIZE];
static unsigned count_at_init;

nvmlDevice_t handle_of(const char *uuid)
{
    for (unsigned i = 0; i < MAX_HANDLES; i++) {
        if (handles[i].uuid[0] == '\0')
            snprintf(handles[i].uuid, sizeof handles[i].uuid, "%s", uuid);
        if (strcmp(handles[i].uuid, uuid) == 0)
            return &handles[i];
    }
    return NULL;
}

/* Compares addresses and never reads through a handle that is none of ours. */
const char *uuid_of(nvmlDevice_t handle)
{
    for (unsigned i = 0; i < MAX_HANDLES && handles[i].uuid[0] != '\0'; i++)
        if (handle == &handles[i])
            return handles[i].uuid;
    return NULL;
}

void remember_devices(void)
{
    count_at_init = current_driver.device_count;
    for (unsigned i = 0; i < count_at_init; i++)
        memcpy(found_at_init[i], current_driver.devices[i].uuid, UUID_SIZE);
}

static unsigned index_at_init(const char *uuid)
{
    unsigned i = 0;
    while (i < count_at_init && strcmp(found_at_init[i], uuid) != 0)
        i++;
    return i;
}

bool remembered(const char *uuid)
{
    return index_at_init(uuid) < count_at_init;
}

/* "In MIG mode, if device handle is provided, the API returns aggregate information, only if the
 * caller has appropriate privileges." */
bool sees_whole_card(struct target target)
{
    return target.instance != NULL || !target.device->mig_enabled || geteuid() == 0;
}

static nvmlReturn_t give_handle(const char *uuid, nvmlDevice_t *device)
{
    if (device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = handle_of(uuid);
    return *device != NULL ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

static nvmlReturn_t give_number(unsigned *place, unsigned value)
{
    if (place == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *place = value;
    return NVML_SUCCESS;
}

/* ---- Finding cards ---- */

EXPORTED nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    nvmlReturn_t result = enter(__func__);
    return leave(result == NVML_SUCCESS ? give_number(count, count_at_init) : result);
}

EXPORTED nvmlReturn_t nvmlDeviceGetCount(unsigned *count)
{
    return nvmlDeviceGetCount_v2(count);
}

EXPORTED nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    struct target target;
    const char *uuid = index < MAX_DEVICES ? found_at_init[index] : "";
    nvmlReturn_t result = enter_uuid(__func__, uuid);
    if (result == NVML_SUCCESS && index >= count_at_init)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS && !find_target(&current_driver, uuid, &target))
        result = NVML_ERROR_GPU_IS_LOST;
    return leave(result == NVML_SUCCESS ? give_handle(uuid, device) : result);
}

EXPORTED nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

EXPORTED nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    struct target target;
    nvmlReturn_t result = enter_uuid(__func__, uuid);
    if (result == NVML_SUCCESS && uuid == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS &&
        (!find_target(&current_driver, uuid, &target) || !remembered(target.device->uuid)))
        result = NVML_ERROR_NOT_FOUND;
    return leave(result == NVML_SUCCESS ? give_handle(uuid, device) : result);
}

/* Takes the domain with four digits too, as Linux writes it. */
static bool same_bus_id(const char *given, const char *own)
{
    return strcasecmp(given, own) == 0 || (strlen(own) > 4 && strcasecmp(given, own + 4) == 0);
}

EXPORTED nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    nvmlReturn_t result = enter(__func__);
    if (result != NVML_SUCCESS || bus_id == NULL)
        return leave(result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT);
    for (unsigned i = 0; i < current_driver.device_count; i++) {
        const struct device *own = &current_driver.devices[i];
        if (same_bus_id(bus_id, own->pci) && remembered(own->uuid))
            return leave(give_handle(own->uuid, device));
    }
    return leave(NVML_ERROR_NOT_FOUND);
}

/* ---- What a card is ---- */

EXPORTED nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
    struct target target;
    nvmlReturn_t result = enter_device(__func__, device, &target);
    return leave(result == NVML_SUCCESS ? copy_text(uuid, length, uuid_of(device)) : result);
}

EXPORTED nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
    struct target target;
    char text[NAME_SIZE + 40] = "";
    nvmlReturn_t result = enter_device(__func__, device, &target);
    if (result == NVML_SUCCESS)
        snprintf(text, sizeof text, "%s%s%s", target.device->name,
                 target.instance != NULL ? " MIG " : "",
                 target.instance != NULL ? target.instance->profile : "");
    return leave(result == NVML_SUCCESS ? copy_text(name, length, text) : result);
}

EXPORTED nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
    struct target target;
    nvmlReturn_t result = enter_device(__func__, device, &target);
    if (result != NVML_SUCCESS)
        return leave(result);
    return leave(give_number(index, target.instance != NULL ? target.instance->index
                                                            : index_at_init(target.device->uuid)));
}

EXPORTED nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor)
{
    struct target target;
    nvmlReturn_t result = enter_device(__func__, device, &target);
    return leave(result == NVML_SUCCESS ? give_number(minor, target.device->minor) : result);
}

EXPORTED nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    struct target target;
    nvmlReturn_t result = enter_device(__func__, device, &target);
    if (result == NVML_SUCCESS && pci == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result != NVML_SUCCESS)
        return leave(result);
    const char *bus_id = target.device->pci;
    memset(pci, 0, sizeof *pci);
    sscanf(bus_id, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
    pci->pciDeviceId = 0xFFFF10DE; /* NVIDIA's vendor id with a device id that no product has */
    snprintf(pci->busId, sizeof pci->busId, "%s", bus_id);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%.15s",
             strlen(bus_id) > 4 ? bus_id + 4 : bus_id);
    return leave(NVML_SUCCESS);
}

EXPORTED nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major,
                                                         int *minor)
{
    struct target target;
    nvmlReturn_t result = enter_device(__func__, device, &target);
    if (result == NVML_SUCCESS && (major == NULL || minor == NULL))
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS) {
        *major = (int)target.device->compute_major;
        *minor = (int)target.device->compute_minor;
    }
    return leave(result);
}

EXPORTED nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned *mode)
{
    struct target target;
    nvmlReturn_t result = enter_device(__func__, device, &target);
    return leave(result == NVML_SUCCESS ? give_number(mode, 0) : result); /* "default" */
}

/* ---- Memory ---- */

struct memory {
    uint64_t total, reserved, used;
};

static nvmlReturn_t measure(struct target target, struct memory *memory)
{
    struct records records;
    if (!sees_whole_card(target))
        return NVML_ERROR_NO_PERMISSION;
    if (!read_records(&records))
        return NVML_ERROR_UNKNOWN;
    const struct instance *instance = target.instance;
    memory->total = instance != NULL ? instance->total_bytes : target.device->total_bytes;
    memory->reserved = instance != NULL ? instance->reserved_bytes : target.device->reserved_bytes;
    memory->used = used_bytes(&records, target);
    free_records(&records);
    return NVML_SUCCESS;
}

/* The first version has no place for the driver's reserve and counts it as used. */
EXPORTED nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *info)
{
    struct target target;
    struct memory memory;
    nvmlReturn_t result = enter_device(__func__, device, &target);
    if (result == NVML_SUCCESS)
        result = info != NULL ? measure(target, &memory) : NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS) {
        info->total = memory.total;
        info->used = memory.reserved + memory.used;
        info->free = info->total - info->used;
    }
    return leave(result);
}

EXPORTED nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *info)
{
    struct target target;
    struct memory memory;
    nvmlReturn_t result = enter_device(__func__, device, &target);
    if (result == NVML_SUCCESS && info == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    /* Not ARGUMENT_VERSION_MISMATCH: so answers driver 580. */
    if (result == NVML_SUCCESS && info->version != NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2U))
        result = NVML_ERROR_FUNCTION_NOT_FOUND;
    if (result == NVML_SUCCESS)
        result = measure(target, &memory);
    if (result == NVML_SUCCESS) {
        info->total = memory.total;
        info->reserved = memory.reserved;
        info->used = memory.used;
        info->free = memory.total - memory.reserved - memory.used;
    }
    return leave(result);
}
