// What the few files of libsodium that packages have take from the rest of it: random numbers, which are the system's, and an
// end for misuse.
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

void randombytes_buf(void* bytes, size_t size) {
  if (getentropy(bytes, size) != 0) abort();
}

void sodium_misuse(void) { abort(); }
