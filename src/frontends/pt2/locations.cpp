#include "frontends/pt2/locations.h"

#include <charconv>

namespace argosy {
namespace {

constexpr std::string_view kFrame = "File \"";
constexpr std::string_view kNoModule = "_empty_nn_module_stack_from_metadata_hook";

// Folders of an installation differ from machine to machine; what follows them does not.
std::string_view without_installation(std::string_view file) {
  for (std::string_view folder : {"site-packages/", "dist-packages/"}) {
    size_t at = file.rfind(folder);
    if (at != std::string_view::npos) return file.substr(at + folder.size());
  }
  size_t slash = file.find_last_of("/\\");
  return slash == std::string_view::npos ? file : file.substr(slash + 1);
}

struct Frame {
  std::string_view file;
  std::string_view rest;  // from behind the file's closing quote to the end of the line
};

Frame frame_at(std::string_view trace, size_t at) {
  at += kFrame.size();
  size_t close = trace.find('"', at);
  if (close == std::string_view::npos) return {};
  std::string_view rest = trace.substr(close + 1);
  return {trace.substr(at, close - at), rest.substr(0, rest.find('\n'))};
}

/// Where the frame to report starts; npos if there is none.
size_t last_model_frame(std::string_view trace) {
  size_t last = trace.rfind(kFrame);
  for (size_t at = last; at != std::string_view::npos; at = trace.rfind(kFrame, at - 1)) {
    std::string_view file = frame_at(trace, at).file;
    if (!file.empty() && !without_installation(file).starts_with("torch/")) return at;
    if (at == 0) break;
  }
  return last;
}

int call_index(std::string_view& name) {
  size_t at = name.rfind('@');
  int index = 0;
  if (at == std::string_view::npos) return 0;
  auto [end, error] = std::from_chars(name.data() + at + 1, name.data() + name.size(), index);
  if (error != std::errc() || end != name.data() + name.size() || index < 0) return 0;
  name = name.substr(0, at);
  return index;
}

}  // namespace

void read_module_stack(std::string_view stack, ModelLocation& location) {
  std::string_view entry = stack.substr(stack.rfind(';') + 1);
  size_t first = entry.find(','), last = entry.rfind(',');
  if (first == std::string_view::npos || first == last) return;
  std::string_view key = entry.substr(0, first);
  if (key == kNoModule) return;
  std::string_view path = entry.substr(first + 1, last - first - 1);
  std::string_view class_name = entry.substr(last + 1);
  // A module that is called again carries the number of the call in its key, or in its path once it was unflattened.
  int in_key = call_index(key), in_path = call_index(path);
  location.module_path = path;
  location.class_name = class_name.substr(class_name.rfind('.') + 1);
  location.call_index = std::max(in_key, in_path);
}

void read_stack_trace(std::string_view trace, ModelLocation& location) {
  size_t at = last_model_frame(trace);
  if (at == std::string_view::npos) return;
  Frame frame = frame_at(trace, at);
  location.file = without_installation(frame.file);
  constexpr std::string_view kLine = ", line ";
  size_t number = frame.rest.find(kLine);
  if (number == std::string_view::npos) return;
  const char* digits = frame.rest.data() + number + kLine.size();
  std::from_chars(digits, frame.rest.data() + frame.rest.size(), location.line);
}

LocationId LocationReader::read(JsonView metadata) {
  std::string_view stack = metadata.find("nn_module_stack").as_string().value_or("");
  std::string_view trace = metadata.find("stack_trace").as_string().value_or("");
  std::string_view entry = stack.substr(stack.rfind(';') + 1);
  size_t at = last_model_frame(trace);
  Frame frame = at == std::string_view::npos ? Frame{} : frame_at(trace, at);
  std::string key;
  key.reserve(entry.size() + frame.file.size() + frame.rest.size() + 2);
  key.append(entry).append("\n").append(frame.file).append("\n").append(frame.rest);
  auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  ModelLocation location;
  read_module_stack(stack, location);
  read_stack_trace(trace, location);
  LocationId id =
      location.empty() && location.class_name.empty() ? LocationId{} : locations_.intern(std::move(location));
  known_.emplace(std::move(key), id);
  return id;
}

}  // namespace argosy
