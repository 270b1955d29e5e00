// Exports a model with an op that is no PyTorch's:  export_with_rule MODEL.capture CHECKPOINT OUTPUT
// The op is one of examples/extension, where a rule in Python would do as well.
#include <argosy/exporter.h>

#include <cstdio>

int main(int count, char** arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: export_with_rule MODEL.capture CHECKPOINT OUTPUT\n");
    return 2;
  }
  argosy::OpRule mix{"sample::mix", [](argosy::OpGraph& graph) {
                       auto parts = graph.tensors("parts");
                       auto weights = graph.numbers("weights");
                       auto sum = graph.mul(parts[0], weights[0]);
                       for (size_t i = 1; i < parts.size(); ++i) sum = graph.add(sum, graph.mul(parts[i], weights[i]));
                       if (graph.has("bias")) sum = graph.add(sum, graph.tensor("bias"));
                       graph.replace({sum});
                     }};
  auto capture = argosy::Capture::open(arguments[1]);
  auto checkpoint = argosy::Checkpoint::open(arguments[2]);
  if (!capture || !checkpoint) {
    std::fputs(argosy::to_text(capture ? checkpoint.error() : capture.error()).c_str(), stderr);
    return 1;
  }
  argosy::OnnxExportOptions options;
  options.output = arguments[3];
  options.rules = {mix};
  auto bundle = argosy::OnnxExporter().run(*capture, *checkpoint, options);
  if (!bundle) {
    std::fputs(argosy::to_text(bundle.error()).c_str(), stderr);
    return 1;
  }
  std::printf("%zu files in %s\n", bundle->files.size(), bundle->path.c_str());
  return 0;
}
