#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/json.h"

namespace argosy::cli {

/// What a command did, for scripts: one JSON object, which --json asks for. The command's name is its first member, the
/// command itself adds others, and how it ended comes last. Of a command that failed nothing else is said.
class Summary {
 public:
  explicit Summary(std::string_view command);

  /// Inside the object. Whatever is begun in it is to be ended, unless the command fails.
  JsonWriter& members() { return members_; }
  /// The first one is kept.
  void set_failure(std::string_view code, std::string_view message, std::string_view hint);
  /// The object, with a line feed. Uses up the members.
  std::string text(int exit_code, double seconds);

  /// Another one has been printed: that of a program which did the work, or one of the command's own form.
  void leave() { is_left_ = true; }
  bool is_left() const { return is_left_; }

 private:
  struct Failure {
    std::string code, message, hint;
  };
  std::string command_;
  JsonWriter members_;
  std::optional<Failure> failure_;
  bool is_left_ = false;
};

}  // namespace argosy::cli
