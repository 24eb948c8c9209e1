/* What the files of the simulated driver share: its state in memory, and who reads and writes it.
 *
 * Everything is read from the folder that $SIMULATED_NVIDIA_DRIVER names, so that containers which
 * share that folder share the cards (not GPUMEM_...: admission takes those from users' containers):
 *   driver.conf      driver version and cards, written by the Python module (conf.c reads it)
 *   faults           errors on demand, read at every call (faults.c)
 *   allocations/     one record and one lock per allocation (records.c, holding.c)
 *   limits/          memory limits of cgroups (limits.c)
 */
#ifndef GPUMEM_SIMULATION_H
#define GPUMEM_SIMULATION_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "nvml_abi.h"

#define MAX_DEVICES 32
#define MAX_INSTANCES 8
#define UUID_SIZE 96
#define NAME_SIZE 96
#define MIB (1024ULL * 1024ULL)
#define EXPORTED __attribute__((visibility("default")))

struct version {
    unsigned major, minor, patch;
};

/* One MIG instance. Its memory is apart from its siblings'. */
struct instance {
    char uuid[UUID_SIZE];
    char profile[32];
    unsigned index, gpu_instance, compute_instance, slices, multiprocessors;
    uint64_t total_bytes, reserved_bytes;
};

struct device {
    char uuid[UUID_SIZE];
    char name[NAME_SIZE];
    char pci[NVML_PCI_BUS_ID_SIZE];
    unsigned minor, compute_major, compute_minor, multiprocessors;
    uint64_t total_bytes, reserved_bytes;
    bool mig_enabled;
    unsigned max_instances, instance_count;
    struct instance instances[MAX_INSTANCES];
};

struct driver {
    char version_text[64];
    struct version version;
    int cuda_version;            /* as NVML counts: 1000 * major + 10 * minor */
    uint64_t host_pid_namespace; /* inode; callers in it get what a node's own processes get */
    unsigned device_count;
    struct device devices[MAX_DEVICES];
};

/* A card, or one MIG instance of it (then `instance` is not NULL). */
struct target {
    const struct device *device;
    const struct instance *instance;
};

enum kind { KIND_COMPUTE, KIND_GRAPHICS, KIND_MPS };

/* One allocation whose process lives. */
struct record {
    char id[64];
    char uuid[UUID_SIZE]; /* of the card, or of the MIG instance */
    char cgroup[512];
    uint64_t pid_namespace, start_time, bytes, managed_bytes;
    pid_t pid;         /* in its own PID namespace */
    pid_t visible_pid; /* in the caller's; 0 where the caller cannot see the process */
    enum kind kind;
};

/* conf.c: reading small files, and driver.conf. */
const char *state_folder(void); /* NULL when the environment names none */
bool state_path(char *path, size_t size, const char *part, const char *name);
char *read_text(const char *path); /* to be freed; NULL when there is no such file */
bool write_text(const char *path, const char *text); /* atomically */
bool field_text(const char *line, const char *key, char *value, size_t size);
uint64_t field_number(const char *line, const char *key, uint64_t otherwise);
bool load_driver(struct driver *driver);
struct version parse_version(const char *text);
bool older_than(struct version version, unsigned major, unsigned minor, unsigned patch);
bool find_target(const struct driver *driver, const char *uuid, struct target *target);

/* records.c: the allocations of living processes. */
struct records {
    struct record *items;
    size_t count;
};
enum kind parse_kind(const char *text);
const char *kind_text(enum kind kind);
uint64_t own_pid_namespace(void); /* inode, 0 when /proc does not tell */
bool read_records(struct records *records);
void free_records(struct records *records);
bool belongs_to(const struct record *record, struct target target);
uint64_t used_bytes(const struct records *records, struct target target);
void remove_record(const char *id);
void remove_dead_records(void);

/* limits.c */
struct limit {
    char uuid[UUID_SIZE];
    char cgroup[512];
    uint64_t inode; /* of the cgroup: one that was removed and made again has no limit */
    uint64_t soft, hard;
};
bool find_limit(const char *uuid, const char *cgroup, struct limit *nearest);
bool inside_cgroup(const char *cgroup, const char *ancestor);

/* holding.c: an allocation of this process (in_process.c offers it to ctypes). */
enum holding_result { HELD, OUT_OF_MEMORY, OVER_CGROUP_LIMIT, NO_SUCH_DEVICE, STATE_UNUSABLE };
struct holding {
    int lock;
    char id[64];
    char uuid[UUID_SIZE];
    enum kind kind;
    uint64_t bytes, managed_bytes;
    uint64_t free_bytes; /* what was free at the last attempt, for messages */
};
enum holding_result hold(struct holding *holding, const char *gpu, enum kind kind, uint64_t bytes,
                         uint64_t managed_bytes);
enum holding_result resize(struct holding *holding, uint64_t bytes, uint64_t managed_bytes);
void release(struct holding *holding);
bool held_by_this_process(const char *id);

/* faults.c */
struct fault {
    nvmlReturn_t error;
    unsigned hang_milliseconds;
    bool hides_process_memory;
};
struct fault find_fault(const char *function, const struct driver *driver, const char *uuid);
bool offered_by(struct version driver, const char *function);

/* nvml.c: every entry point begins with one of the enter functions and ends with leave(). */
extern struct driver current_driver;
nvmlReturn_t enter(const char *function);
nvmlReturn_t enter_device(const char *function, nvmlDevice_t handle, struct target *target);
nvmlReturn_t enter_uuid(const char *function, const char *uuid);
nvmlReturn_t leave(nvmlReturn_t result);
bool process_memory_hidden(void);
nvmlReturn_t copy_text(char *buffer, unsigned size, const char *text);

/* devices.c */
nvmlDevice_t handle_of(const char *uuid); /* NULL when the table is full */
const char *uuid_of(nvmlDevice_t handle); /* NULL when it is no handle of ours */
void remember_devices(void);
bool remembered(const char *uuid);
bool sees_whole_card(struct target target);

#endif
