// Exports a captured language model to ExecuTorch:  export_pte MODEL.capture CHECKPOINT OUTPUT [PLAN.json]
// Weights of linear layers become integers of four bits. OUTPUT is NAME.pte, or a folder with all that a runner needs.
#include <argosy/exporter.h>

#include <cstdio>

int main(int count, char** arguments) {
  if (count < 4) {
    std::fprintf(stderr, "usage: export_pte MODEL.capture CHECKPOINT OUTPUT [PLAN.json]\n");
    return 2;
  }
  auto report = [](const argosy::Error& error) {
    std::fputs(argosy::to_text(error).c_str(), stderr);
    return 1;
  };
  auto capture = argosy::Capture::open(arguments[1]);
  if (!capture) return report(capture.error());
  auto checkpoint = argosy::Checkpoint::open(arguments[2]);
  if (!checkpoint) return report(checkpoint.error());

  argosy::ExecutorchExportOptions options;
  options.output = arguments[3];
  if (count > 4) options.weight_plan = arguments[4];
  options.task = "text-generation";
  options.max_seq_len = 128;
  options.dtype = "float32";
  options.qlinear = "8da4w";
  options.qembedding = "8w";
  auto bundle = argosy::ExecutorchExporter().run(*capture, *checkpoint, options);
  if (!bundle) return report(bundle.error());

  for (const std::string& file : bundle->files) std::printf("%s\n", file.c_str());
  for (const std::string& warning : bundle->warnings) std::fprintf(stderr, "warning: %s\n", warning.c_str());
  return 0;
}
