// Exports a captured model to ONNX:  export_onnx MODEL.capture CHECKPOINT OUTPUT [PLAN.json]
// `argosy capture --model DIR -o MODEL.capture` makes the capture. A checkpoint that has weights under other names than
// the model needs a plan: `python -m argosy.capture.weight_plan --model DIR -o PLAN.json`.
#include <argosy/exporter.h>

#include <cstdio>

int main(int count, char** arguments) {
  if (count < 4) {
    std::fprintf(stderr, "usage: export_onnx MODEL.capture CHECKPOINT OUTPUT [PLAN.json]\n");
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

  argosy::OnnxExportOptions options;
  options.output = arguments[3];
  if (count > 4) options.weight_plan = arguments[4];
  options.threads = 2;
  auto bundle = argosy::OnnxExporter().run(*capture, *checkpoint, options);
  if (!bundle) return report(bundle.error());

  std::printf("%s: %zu tensors, %llu bytes written to %s\n", capture->model_class().c_str(), checkpoint->tensor_count(),
              static_cast<unsigned long long>(bundle->bytes), bundle->path.c_str());
  for (const std::string& file : bundle->files) std::printf("  %s\n", file.c_str());
  for (const std::string& warning : bundle->warnings) std::fprintf(stderr, "warning: %s\n", warning.c_str());
  return 0;
}
