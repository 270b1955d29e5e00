// The program of a package: bin/argosy, which finds the shared library in lib beside it. So the code is in a package
// once, for the program and for find_package. Not linked to the library: tools that repair wheels would take it for a
// missing one.
#include <dlfcn.h>

#include <cstdio>
#include <string>

#include "base/system.h"

int main(int count, char** values) {
  std::string path = argosy::system::own_program();
  for (int up = 0; up < 2; ++up) path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  path += "/lib/" ARGOSY_LIBRARY;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* start = library != nullptr ? dlsym(library, "argosy_main") : nullptr;
  if (start == nullptr) {
    std::fprintf(
        stderr,
        "argosy: %s\n  hint: the program needs the library that was installed with it; install the package again\n",
        dlerror());
    return 1;
  }
  return reinterpret_cast<int (*)(int, char**)>(start)(count, values);
}
