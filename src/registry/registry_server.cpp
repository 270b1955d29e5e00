#include "registry/registry_server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>

#include "base/system.h"
#include "base/text.h"
#include "io/file.h"
#include "registry/registry_index.h"
#include "registry/registry_source.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxRequest = 8192;
constexpr int kMaxConnections = 32, kQueue = 64;
constexpr timeval kPatience = {30, 0};

bool send_all(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket, bytes.data(), bytes.size(), system::send_flags());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
}

bool send_all(int socket, std::string_view text) { return send_all(socket, std::as_bytes(std::span(text))); }

void send_status(int socket, std::string_view status) {
  send_all(socket, format("HTTP/1.1 {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status));
}

/// The first line of a request, whole requests read; empty if it is none.
std::string read_request(int socket) {
  std::string text;
  std::array<char, 1024> block;
  while (text.find("\r\n\r\n") == std::string::npos) {
    const ssize_t count = text.size() > kMaxRequest ? 0 : ::recv(socket, block.data(), block.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return "";
    text.append(block.data(), static_cast<size_t>(count));
  }
  return text.substr(0, text.find("\r\n"));
}

void answer(int socket, const fs::path& folder, const RegistrySource& source) {
  const std::string line = read_request(socket);
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string::npos || last <= first + 1 || line[first + 1] != '/') {
    send_status(socket, "400 Bad Request");
    return;
  }
  const std::string method = line.substr(0, first), name = line.substr(first + 2, last - first - 2);
  if (method != "GET" && method != "HEAD") {
    send_status(socket, "405 Method Not Allowed");
    return;
  }
  std::error_code missing;
  const uint64_t bytes = is_registry_name(name) ? fs::file_size(folder / name, missing) : 0;
  if (!is_registry_name(name) || missing) {
    send_status(socket, "404 Not Found");
    return;
  }
  bool has_begun = false;
  auto begin = [&] {
    has_begun = true;
    return send_all(socket, format("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
                                   "Content-Length: {}\r\nConnection: close\r\n\r\n",
                                   bytes));
  };
  if (method == "HEAD") {
    begin();
    return;
  }
  Status sent = source.fetch(name, bytes, [&](std::span<const std::byte> part) -> Status {
    if ((has_begun || begin()) && send_all(socket, part)) return {};
    return fail(ErrorCode::kIo, "the client is gone");
  });
  if (!has_begun) send_status(socket, sent ? "200 OK" : "403 Forbidden");
}

struct Listening {
  int socket = -1;
  std::string url;
};

Result<Listening> listen_at(const ServeOptions& options) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE;
  const std::string port = format("{}", options.port);
  if (const int failure = ::getaddrinfo(options.host.c_str(), port.c_str(), &wanted, &found); failure != 0)
    return fail(ErrorCode::kIo, format("{} is not known: {}", options.host, ::gai_strerror(failure)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  const int socket = system::open_socket(found->ai_family, found->ai_protocol, /*waits=*/true);
  const int yes = 1;
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  const bool listens = socket >= 0 && ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                       ::bind(socket, found->ai_addr, found->ai_addrlen) == 0 && ::listen(socket, kQueue) == 0 &&
                       ::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) == 0;
  if (!listens) {
    const int failure = errno;
    if (socket >= 0) ::close(socket);
    return fail(ErrorCode::kIo, format("cannot listen at {}:{}: {}", options.host, port, std::strerror(failure)),
                "give another --port, or 0 for any");
  }
  const bool is_six = bound.ss_family == AF_INET6;
  const uint16_t number =
      ntohs(is_six ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port : reinterpret_cast<sockaddr_in&>(bound).sin_port);
  return Listening{
      socket, is_six ? format("http://[{}]:{}", options.host, number) : format("http://{}:{}", options.host, number)};
}

}  // namespace

Status serve_registry(const fs::path& folder, const ServeOptions& options,
                      const std::function<void(const std::string& url)>& on_ready) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    return fail(ErrorCode::kNotFound, format("{} is no folder", quoted(folder.native(), 1000)),
                "give a registry's folder; argosy cache push makes one");
  }
  ARGOSY_TRY(Listening listening, listen_at(options));
  on_ready(listening.url);
  const std::shared_ptr<const RegistrySource> source = folder_source(folder);
  auto count = std::make_shared<std::atomic<int>>(0);
  while (true) {
    const int socket = system::accept_connection(listening.socket);
    if (socket < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EMFILE && errno != ENFILE) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      continue;
    }
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
    ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
    if (*count >= kMaxConnections) {
      send_status(socket, "503 Service Unavailable");
      ::close(socket);
      continue;
    }
    ++*count;
    std::thread([socket, folder, source, count] {
      answer(socket, folder, *source);
      ::close(socket);
      --*count;
    }).detach();
  }
  const int failure = errno;
  ::close(listening.socket);
  return fail(ErrorCode::kIo, format("the server ended: {}", std::strerror(failure)));
}

}  // namespace argosy
