#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

/// What systems do each in their own way. Everything else is POSIX; so system.cpp is all that another system asks for.
/// Where a function fails, it says why in errno, as the system's own do.
namespace argosy::system {

// ---- files

/// Renames, unless `to` is there already (EEXIST). EINVAL, ENOSYS or ENOTSUP: cannot be done in this file system.
bool rename_to_new(const char* from, const char* to);

/// Both keep existing, under each other's name. Fails as rename_to_new does where it cannot be done.
bool exchange_names(const char* a, const char* b);

/// Whether an error of these two means that it cannot be done here, rather than that it failed.
bool is_unsupported(int error_number);

/// Makes `to`, which must not exist, a copy that shares its blocks with `from`. False: not possible, and nothing is
/// made.
bool clone_file(const char* from, const char* to);

/// Copies up to `size` bytes between open files without bringing them into this process. Returns how many, -1 with
/// errno.
ssize_t copy_between(int from, uint64_t from_offset, int to, uint64_t to_offset, size_t size);

/// Tells the system that these bytes will be read, or that they were written and may go to the disk. Waits for neither.
void begin_reading(int descriptor, uint64_t offset, uint64_t size);
void begin_writing(int descriptor, uint64_t offset, uint64_t size);

/// When a file was changed last.
struct Time {
  int64_t seconds = 0, nanoseconds = 0;
};
Time modified(const struct stat& file);

// ---- processes

/// A pipe that programs started later do not get. False with errno if there is none.
bool open_pipe(int (&ends)[2]);

/// The path of the running program; empty if the system does not tell.
std::string own_program();

/// What a program that is started inherits.
char** environment();

// ---- sockets

/// A socket that programs started later do not get; -1 with errno. One that does not wait says EINPROGRESS and EAGAIN.
int open_socket(int family, int protocol, bool waits);
/// The next connection, likewise.
int accept_connection(int listening);
/// What a send wants besides, so that a connection that is gone is an error of the call and no signal.
int send_flags();

// ---- memory

/// The peak resident memory of this process so far, in bytes; 0 where the system does not tell.
uint64_t peak_rss_bytes();

/// Of the machine, in bytes; 0 where the system does not tell.
struct Memory {
  uint64_t total = 0, available = 0;
};
Memory memory();

}  // namespace argosy::system
