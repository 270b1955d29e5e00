#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/system.h"
#include "base/text.h"
#include "io/names.h"
#include "registry/registry_source.h"

namespace argosy {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kScheme = "http://";
constexpr size_t kMaxHead = size_t{1} << 14, kReceived = size_t{1} << 16;
constexpr uint64_t kMaxPort = 65535;

struct Address {
  std::string host, port, path;  // the path without a slash at its end
  std::string authority;         // as it was written
};

bool is_visible(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t number = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Result<Address> parse_address(std::string_view url) {
  auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::kInvalidInput, format("the registry {} {}", quoted(url, 1000), why),
                "give a folder, or http://HOST[:PORT][/PATH]");
  };
  if (!url.starts_with(kScheme)) return refuse("is not plain HTTP");
  if (!is_visible(url) || url.find_first_of("?#@\\") != std::string_view::npos)
    return refuse("is more than a host and a path");
  std::string_view rest = url.substr(kScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  Address address{"", "80", std::string(rest.substr(slash)), std::string(rest.substr(0, slash))};
  while (address.path.ends_with('/')) address.path.pop_back();
  std::string_view host = address.authority;
  size_t colon = host.rfind(':');
  if (host.starts_with('[')) {  // an address of IPv6
    const size_t end = host.find(']');
    if (end == std::string_view::npos) return refuse("has no host");
    if (colon < end) colon = std::string_view::npos;
    address.host = host.substr(1, end - 1);
  } else {
    address.host = host.substr(0, colon);
  }
  if (colon != std::string_view::npos) address.port = host.substr(colon + 1);
  const auto port = number_of(address.port);
  if (address.host.empty() || !port || *port == 0 || *port > kMaxPort) return refuse("has no host, or no port");
  return address;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

/// A connection with a moment at which all must be done.
class Connection {
 public:
  Connection(int socket, int idle_seconds, Clock::time_point end)
      : socket_(socket), idle_seconds_(idle_seconds), end_(end) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { ::close(socket_); }

  Status wait(short events) const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now()).count();
    const int most = static_cast<int>(std::clamp<int64_t>(left, 0, int64_t{idle_seconds_} * 1000));
    pollfd waiting{socket_, events, 0};
    int ready = 0;
    do ready = ::poll(&waiting, 1, most);
    while (ready < 0 && errno == EINTR);
    if (ready > 0) return {};
    return fail(ErrorCode::kIo, left < int64_t{idle_seconds_} * 1000 ? "the server is too slow"
                                                                     : format("no answer for {} s", idle_seconds_));
  }

  Status send(std::string_view text) const {
    while (!text.empty()) {
      ARGOSY_TRY_STATUS(wait(POLLOUT));
      const ssize_t count = ::send(socket_, text.data(), text.size(), system::send_flags() | MSG_DONTWAIT);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (count < 0) return fail(ErrorCode::kIo, format("the connection ended: {}", std::strerror(errno)));
      text.remove_prefix(static_cast<size_t>(count));
    }
    return {};
  }

  /// How many bytes came; 0 at the end.
  Result<size_t> receive(std::span<char> out) const {
    while (true) {
      ARGOSY_TRY_STATUS(wait(POLLIN));
      const ssize_t count = ::recv(socket_, out.data(), out.size(), MSG_DONTWAIT);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (count < 0) return fail(ErrorCode::kIo, format("the connection ended: {}", std::strerror(errno)));
      return static_cast<size_t>(count);
    }
  }

  /// Later than before: the answer is larger than was known.
  void extend(Clock::time_point end) { end_ = end; }

 private:
  int socket_;
  int idle_seconds_;
  Clock::time_point end_;
};

Result<std::unique_ptr<Connection>> connect_to(const Address& address, const HttpPatience& patience) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  if (const int failure = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &wanted, &found); failure != 0)
    return fail(ErrorCode::kIo, format("{} is not known: {}", address.host, ::gai_strerror(failure)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  std::string why = "no address";
  const auto end = Clock::now() + std::chrono::seconds(patience.least_seconds);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    const int socket = system::open_socket(each->ai_family, each->ai_protocol, /*waits=*/false);
    if (socket < 0) continue;
    auto connection = std::make_unique<Connection>(socket, patience.idle_seconds, end);
    if (::connect(socket, each->ai_addr, each->ai_addrlen) != 0 && errno != EINPROGRESS) {
      why = std::strerror(errno);
      continue;
    }
    if (Status ready = connection->wait(POLLOUT); !ready) {
      why = ready.error().message;
      continue;
    }
    int failure = 0;
    socklen_t size = sizeof failure;
    ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure == 0) return connection;
    why = std::strerror(failure);
  }
  return fail(ErrorCode::kIo, format("{} cannot be reached: {}", address.authority, why));
}

struct Answer {
  int status = 0;
  uint64_t bytes = 0;
  std::string begun;  // of the body, what came with the head
};

class HttpSource : public RegistrySource {
 public:
  HttpSource(std::string url, Address address, const HttpPatience& patience)
      : url_(std::move(url)), address_(std::move(address)), patience_(patience) {}

  const std::string& location() const override { return url_; }

  Result<std::optional<std::string>> read(const std::string& name, uint64_t max_bytes) const override {
    std::string text;
    auto take = [&](std::span<const std::byte> bytes) -> Status {
      text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return {};
    };
    auto may_have = [&](uint64_t bytes) -> Status {
      if (bytes <= max_bytes) return {};
      return fail(ErrorCode::kCorruptFile, format("{} has {} bytes, at most {} are read", name, bytes, max_bytes));
    };
    ARGOSY_TRY(bool is_there, get(name, may_have, take));
    if (!is_there) return std::nullopt;
    return text;
  }

  Status fetch(const std::string& name, uint64_t bytes, const Sink& sink) const override {
    auto may_have = [&](uint64_t size) -> Status {
      if (size == bytes) return {};
      return fail(ErrorCode::kCorruptFile, format("{} has {} bytes, by its index it has {}", name, size, bytes));
    };
    ARGOSY_TRY(bool is_there, get(name, may_have, sink));
    if (!is_there) return fail(ErrorCode::kNotFound, format("{} is not there, though its index names it", name));
    return {};
  }

 private:
  /// False: the server has no such file.
  Result<bool> get(const std::string& name, const std::function<Status(uint64_t)>& may_have, const Sink& sink) const {
    auto done = get_in(name, may_have, sink);
    if (!done) done.error().in(format("{}/{}", url_, name));
    return done;
  }

  Result<bool> get_in(const std::string& name, const std::function<Status(uint64_t)>& may_have,
                      const Sink& sink) const {
    if (!is_plain_relative_path(name) || !is_visible(name))
      return fail(ErrorCode::kInvalidInput, format("{} is no name of a registry's file", quoted(name)));
    ARGOSY_TRY(std::unique_ptr<Connection> connection, connect_to(address_, patience_));
    ARGOSY_TRY_STATUS(
        connection->send(format("GET {}/{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: argosy\r\n"
                                "Accept-Encoding: identity\r\nConnection: close\r\n\r\n",
                                address_.path, name, address_.authority)));
    ARGOSY_TRY(Answer answer, read_head(*connection));
    if (answer.status == 404) return false;
    if (answer.status >= 300 && answer.status < 400) {
      return fail(ErrorCode::kCorruptFile, format("the server redirects (status {}), which is refused", answer.status),
                  "give the address that it leads to");
    }
    if (answer.status != 200) return fail(ErrorCode::kIo, format("the server says {}", answer.status));
    ARGOSY_TRY_STATUS(may_have(answer.bytes));
    connection->extend(Clock::now() +
                       std::chrono::seconds(patience_.least_seconds +
                                            static_cast<int64_t>(answer.bytes / patience_.bytes_per_second)));
    std::array<char, kReceived> block;
    for (uint64_t left = answer.bytes; left > 0;) {
      std::span<const char> part(answer.begun);
      if (part.empty()) {
        ARGOSY_TRY(size_t count, connection->receive(block));
        if (count == 0) {
          return fail(ErrorCode::kCorruptFile,
                      format("the answer ends after {} of {} bytes", answer.bytes - left, answer.bytes));
        }
        part = std::span(block).first(count);
      }
      part = part.first(std::min<uint64_t>(part.size(), left));
      ARGOSY_TRY_STATUS(sink(std::as_bytes(part)));
      left -= part.size();
      answer.begun.clear();
    }
    return true;
  }

  static Result<Answer> read_head(const Connection& connection) {
    std::string text;
    size_t end = std::string::npos;
    std::array<char, 4096> block;
    while ((end = text.find("\r\n\r\n")) == std::string::npos) {
      if (text.size() > kMaxHead) return fail(ErrorCode::kCorruptFile, "the head of the answer does not end");
      ARGOSY_TRY(size_t count, connection.receive(block));
      if (count == 0) return fail(ErrorCode::kCorruptFile, "the answer ends within its head");
      text.append(block.data(), count);
    }
    Answer answer;
    answer.begun = text.substr(end + 4);
    std::string_view head = std::string_view(text).substr(0, end);
    const size_t line_end = std::min(head.find("\r\n"), head.size());
    std::string_view first = head.substr(0, line_end);
    const bool is_http = first.starts_with("HTTP/1.1 ") || first.starts_with("HTTP/1.0 ");
    const auto status = is_http ? number_of(first.substr(9, 3)) : std::nullopt;
    if (!status) return fail(ErrorCode::kCorruptFile, "the answer is not HTTP");
    answer.status = static_cast<int>(*status);
    if (answer.status != 200) return answer;
    std::optional<uint64_t> length;
    head.remove_prefix(std::min(line_end + 2, head.size()));
    while (!head.empty()) {
      const size_t next = std::min(head.find("\r\n"), head.size());
      std::string_view line = head.substr(0, next);
      head.remove_prefix(std::min(next + 2, head.size()));
      const size_t colon = line.find(':');
      if (colon == std::string_view::npos) return fail(ErrorCode::kCorruptFile, "the answer's head is malformed");
      const std::string name = lower(line.substr(0, colon));
      std::string_view value = line.substr(colon + 1);
      value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
      value = value.substr(0, value.find_last_not_of(" \t") + 1);
      if (name == "transfer-encoding" || (name == "content-encoding" && lower(value) != "identity"))
        return fail(ErrorCode::kCorruptFile, "the answer is encoded, which is refused");
      if (name != "content-length") continue;
      const auto number = number_of(value);
      if (!number || (length && length != number))
        return fail(ErrorCode::kCorruptFile, "the answer's length is no number");
      length = number;
    }
    if (!length) return fail(ErrorCode::kCorruptFile, "the answer does not say how long it is");
    answer.bytes = *length;
    return answer;
  }

  std::string url_;
  Address address_;
  HttpPatience patience_;
};

}  // namespace

Result<std::unique_ptr<RegistrySource>> http_source(const std::string& url, const HttpPatience& patience) {
  ARGOSY_TRY(Address address, parse_address(url));
  return std::make_unique<HttpSource>(url, std::move(address), patience);
}

}  // namespace argosy
