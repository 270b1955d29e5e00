#include "base/system.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace argosy {
namespace {

namespace fs = std::filesystem;

class SystemTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/argosy-system-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) {
    std::string path = folder_ / name;
    std::ofstream(path) << text;
    return path;
  }
  static std::string text_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  fs::path folder_;
};

TEST_F(SystemTest, a_new_name_never_replaces) {
  std::string a = file("a", "first"), b = file("b", "second");
  EXPECT_FALSE(system::rename_to_new(a.c_str(), b.c_str()));
  if (!system::is_unsupported(errno)) {
    EXPECT_EQ(errno, EEXIST);
  }
  EXPECT_EQ(text_of(b), "second");
}

TEST_F(SystemTest, names_are_exchanged) {
  std::string a = file("a", "first"), b = file("b", "second");
  if (!system::exchange_names(a.c_str(), b.c_str())) {
    EXPECT_TRUE(system::is_unsupported(errno)) << errno;
    GTEST_SKIP() << "this file system cannot exchange names";
  }
  EXPECT_EQ(text_of(a), "second");
  EXPECT_EQ(text_of(b), "first");
}

TEST_F(SystemTest, a_clone_is_whole_or_not_there) {
  std::string a = file("a", "text"), b = folder_ / "b";
  bool is_cloned = system::clone_file(a.c_str(), b.c_str());
  EXPECT_EQ(fs::exists(b), is_cloned);
  if (is_cloned) {
    EXPECT_EQ(text_of(b), "text");
  }
}

TEST_F(SystemTest, bytes_are_copied_between_files) {
  int from = ::open(file("a", "0123456789").c_str(), O_RDONLY), to = ::open(file("b", "xxxx").c_str(), O_RDWR);
  ssize_t count = system::copy_between(from, 3, to, 1, 2);
  int error_number = errno;
  ::close(from);
  ::close(to);
  if (count < 0) GTEST_SKIP() << "this system copies nothing by itself: " << error_number;
  EXPECT_EQ(count, 2);
  EXPECT_EQ(text_of(folder_ / "b"), "x34x");
}

TEST_F(SystemTest, a_pipe_is_not_inherited) {
  int ends[2] = {-1, -1};
  ASSERT_TRUE(system::open_pipe(ends));
  for (int end : ends) {
    EXPECT_NE(::fcntl(end, F_GETFD) & FD_CLOEXEC, 0);
    ::close(end);
  }
}

TEST_F(SystemTest, a_file_has_its_time) {
  struct stat info;
  ASSERT_EQ(::stat(file("a", "text").c_str(), &info), 0);
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  EXPECT_NEAR(static_cast<double>(system::modified(info).seconds), static_cast<double>(now.tv_sec), 100);
}

TEST(ProcessTest, tells_program_and_memory) {
  EXPECT_TRUE(fs::exists(system::own_program()));
  EXPECT_GT(system::peak_rss_bytes(), 1'000'000);
  EXPECT_LT(system::peak_rss_bytes(), system::memory().total);
  EXPECT_LE(system::memory().available, system::memory().total);
}

TEST_F(SystemTest, a_connection_that_is_gone_is_an_error_of_send) {
  const int listening = system::open_socket(AF_INET, 0, /*waits=*/true);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listening, any, size), 0);
  ASSERT_EQ(::listen(listening, 1), 0);
  ASSERT_EQ(::getsockname(listening, any, &size), 0);
  const int client = system::open_socket(AF_INET, 0, /*waits=*/false);
  EXPECT_NE(::fcntl(client, F_GETFL) & O_NONBLOCK, 0);
  if (::connect(client, any, size) != 0) {
    EXPECT_EQ(errno, EINPROGRESS);
  }
  const int accepted = system::accept_connection(listening);
  ASSERT_GE(accepted, 0);
  for (int socket : {listening, client, accepted}) EXPECT_EQ(::fcntl(socket, F_GETFD), FD_CLOEXEC);

  ::close(client);
  ssize_t sent = 0;
  for (int i = 0; i < 100 && sent >= 0; ++i) sent = ::send(accepted, "a", 1, system::send_flags());
  EXPECT_EQ(sent, -1);
  EXPECT_TRUE(errno == EPIPE || errno == ECONNRESET) << errno;
  ::close(accepted);
  ::close(listening);
}

}  // namespace
}  // namespace argosy
