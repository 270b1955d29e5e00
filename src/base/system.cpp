#include "base/system.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>

#if defined(__APPLE__)
#include <crt_externs.h>
#include <mach-o/dyld.h>
#include <sys/clonefile.h>
#include <sys/resource.h>
#include <sys/sysctl.h>
#else
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <cinttypes>

extern char** environ;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): of the C library
#endif

namespace argosy::system {

bool is_unsupported(int error_number) {
  return error_number == EINVAL || error_number == ENOSYS || error_number == ENOTSUP;
}

#if defined(__APPLE__)

bool rename_to_new(const char* from, const char* to) { return ::renamex_np(from, to, RENAME_EXCL) == 0; }

bool exchange_names(const char* a, const char* b) { return ::renamex_np(a, b, RENAME_SWAP) == 0; }

bool clone_file(const char* from, const char* to) { return ::clonefile(from, to, 0) == 0; }

ssize_t copy_between(int /*from*/, uint64_t /*from_offset*/, int /*to*/, uint64_t /*to_offset*/, size_t /*size*/) {
  errno = ENOSYS;
  return -1;
}

void begin_reading(int descriptor, uint64_t offset, uint64_t size) {
  radvisory range{static_cast<off_t>(offset), static_cast<int>(size < INT_MAX ? size : INT_MAX)};
  ::fcntl(descriptor, F_RDADVISE, &range);
}

void begin_writing(int /*descriptor*/, uint64_t /*offset*/, uint64_t /*size*/) {}

Time modified(const struct stat& file) { return {file.st_mtimespec.tv_sec, file.st_mtimespec.tv_nsec}; }

bool open_pipe(int (&ends)[2]) {
  if (::pipe(ends) != 0) return false;
  // A program that another thread starts in between would get them: there is no call that does both.
  for (int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
  return true;
}

std::string own_program() {
  char path[PATH_MAX], real[PATH_MAX];
  uint32_t size = sizeof path;
  if (::_NSGetExecutablePath(path, &size) != 0 || ::realpath(path, real) == nullptr) return "";
  return real;
}

char** environment() { return *::_NSGetEnviron(); }

namespace {

int set_up_socket(int socket) {
  const int yes = 1;
  if (socket >= 0) {
    ::fcntl(socket, F_SETFD, FD_CLOEXEC);
    ::setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &yes, sizeof yes);
  }
  return socket;
}

}  // namespace

int open_socket(int family, int protocol, bool waits) {
  const int socket = set_up_socket(::socket(family, SOCK_STREAM, protocol));
  if (socket >= 0 && !waits) ::fcntl(socket, F_SETFL, O_NONBLOCK);
  return socket;
}

int accept_connection(int listening) { return set_up_socket(::accept(listening, nullptr, nullptr)); }

int send_flags() { return 0; }

uint64_t peak_rss_bytes() {
  rusage usage = {};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<uint64_t>(usage.ru_maxrss) : 0;
}

Memory memory() {
  Memory found;
  size_t size = sizeof found.total;
  if (::sysctlbyname("hw.memsize", &found.total, &size, nullptr, 0) != 0) found.total = 0;
  return found;
}

#else

bool rename_to_new(const char* from, const char* to) {
  return ::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0;
}

bool exchange_names(const char* a, const char* b) {
  return ::renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0;
}

bool clone_file(const char* from, const char* to) {
  int source = ::open(from, O_RDONLY | O_CLOEXEC);
  if (source < 0) return false;
  int target = ::open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  bool is_done = target >= 0 && ::ioctl(target, FICLONE, source) == 0;
  if (target >= 0) {
    ::close(target);
    if (!is_done) ::unlink(to);
  }
  ::close(source);
  return is_done;
}

ssize_t copy_between(int from, uint64_t from_offset, int to, uint64_t to_offset, size_t size) {
  off64_t read_at = static_cast<off64_t>(from_offset), write_at = static_cast<off64_t>(to_offset);
  return ::copy_file_range(from, &read_at, to, &write_at, size, 0);
}

void begin_reading(int descriptor, uint64_t offset, uint64_t size) {
  ::posix_fadvise(descriptor, static_cast<off_t>(offset), static_cast<off_t>(size), POSIX_FADV_WILLNEED);
}

void begin_writing(int descriptor, uint64_t offset, uint64_t size) {
  ::sync_file_range(descriptor, static_cast<off64_t>(offset), static_cast<off64_t>(size), SYNC_FILE_RANGE_WRITE);
}

Time modified(const struct stat& file) { return {file.st_mtim.tv_sec, file.st_mtim.tv_nsec}; }

bool open_pipe(int (&ends)[2]) { return ::pipe2(ends, O_CLOEXEC) == 0; }

std::string own_program() {
  char path[PATH_MAX];
  ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  return std::string(path, length > 0 ? static_cast<size_t>(length) : 0);
}

char** environment() { return environ; }

int open_socket(int family, int protocol, bool waits) {
  return ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | (waits ? 0 : SOCK_NONBLOCK), protocol);
}

int accept_connection(int listening) { return ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC); }

int send_flags() { return MSG_NOSIGNAL; }

namespace {

/// In bytes, what a file of /proc says in kilobytes in the line that starts with `key`; 0 if there is none.
uint64_t kilobytes_in(const char* path, const char* key) {
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return 0;
  uint64_t kilobytes = 0;
  char line[256], name[64];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, "%63[^:]: %" SCNu64, name, &kilobytes) == 2 && std::string(name) == key) break;
    kilobytes = 0;
  }
  std::fclose(file);
  return kilobytes * 1024;
}

}  // namespace

// getrusage would count the parent's memory from before exec, so that a small program started by a large one looks
// large.
uint64_t peak_rss_bytes() { return kilobytes_in("/proc/self/status", "VmHWM"); }

Memory memory() { return {kilobytes_in("/proc/meminfo", "MemTotal"), kilobytes_in("/proc/meminfo", "MemAvailable")}; }

#endif

}  // namespace argosy::system
