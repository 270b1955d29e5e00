// Says what is in files, as JSON, a line each:  inspect_files FILE…      or with --version, which library says so
#include <argosy/inspect.h>
#include <argosy/version.h>

#include <cstdio>

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: inspect_files FILE...\n");
    return 2;
  }
  if (std::string_view(arguments[1]) == "--version") {
    std::printf("argosy %s\n", std::string(argosy::version()).c_str());
    return 0;
  }
  for (int i = 1; i < count; ++i) {
    auto text = argosy::inspect_file(arguments[i]);
    if (!text) {
      std::fputs(argosy::to_text(text.error()).c_str(), stderr);
      return 1;
    }
    std::fputs(text->c_str(), stdout);
  }
  return 0;
}
