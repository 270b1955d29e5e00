#include "program.h"

int main(int count, char** values) { return argosy::cli::run_program(count, values); }
