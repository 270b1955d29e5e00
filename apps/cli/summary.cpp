#include "summary.h"

#include <cmath>
#include <utility>

namespace argosy::cli {
namespace {

JsonWriter begun(std::string_view command) {
  JsonWriter writer(JsonWriter::Layout::kIndented);
  writer.begin_object().key("command").value(command);
  return writer;
}

}  // namespace

Summary::Summary(std::string_view command) : command_(command), members_(begun(command)) {}

void Summary::set_failure(std::string_view code, std::string_view message, std::string_view hint) {
  if (!failure_) failure_ = Failure{std::string(code), std::string(message), std::string(hint)};
}

std::string Summary::text(int exit_code, double seconds) {
  const bool has_failed = exit_code != 0 && failure_;
  JsonWriter writer = has_failed ? begun(command_) : std::move(members_);
  writer.key("seconds").value(std::round(seconds * 1000) / 1000).key("exit_code").value(exit_code);
  if (has_failed) {
    writer.key("error").begin_object().key("code").value(failure_->code).key("message").value(failure_->message);
    writer.key("hint").value(failure_->hint).end_object();
  }
  writer.end_object();
  return writer.take() + "\n";
}

}  // namespace argosy::cli
