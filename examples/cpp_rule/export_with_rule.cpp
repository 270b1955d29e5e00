// Exports a model with an op that is no PyTorch's:  export_with_rule MODEL.capture CHECKPOINT OUTPUT
// OUTPUT is NAME.pte for ExecuTorch, NAME.pt2 for PyTorch, and else a folder for ONNX Runtime. The op is one of
// examples/extension, where a rule in Python would do as well.
#include <argosy/exporter.h>

#include <cstdio>

namespace {

const argosy::OpRule kMix{"sample::mix", [](argosy::OpGraph& graph) {
                            auto parts = graph.tensors("parts");
                            auto weights = graph.numbers("weights");
                            auto sum = graph.mul(parts[0], weights[0]);
                            for (size_t i = 1; i < parts.size(); ++i)
                              sum = graph.add(sum, graph.mul(parts[i], weights[i]));
                            if (graph.has("bias")) sum = graph.add(sum, graph.tensor("bias"));
                            graph.replace({sum});
                          }};

argosy::Result<argosy::ExportedBundle> export_model(const argosy::Capture& capture,
                                                    const argosy::Checkpoint& checkpoint,
                                                    const std::filesystem::path& output) {
  if (output.extension() == ".pte")
    return argosy::ExecutorchExporter().run(capture, checkpoint, {.output = output, .rules = {kMix}});
  if (output.extension() == ".pt2")
    return argosy::Pt2Exporter().run(capture, checkpoint, {.output = output, .rules = {kMix}});
  return argosy::OnnxExporter().run(capture, checkpoint, {.output = output, .rules = {kMix}});
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: export_with_rule MODEL.capture CHECKPOINT OUTPUT\n");
    return 2;
  }
  auto capture = argosy::Capture::open(arguments[1]);
  auto checkpoint = argosy::Checkpoint::open(arguments[2]);
  if (!capture || !checkpoint) {
    std::fputs(argosy::to_text(capture ? checkpoint.error() : capture.error()).c_str(), stderr);
    return 1;
  }
  auto bundle = export_model(*capture, *checkpoint, arguments[3]);
  if (!bundle) {
    std::fputs(argosy::to_text(bundle.error()).c_str(), stderr);
    return 1;
  }
  std::printf("%zu files in %s\n", bundle->files.size(), bundle->path.c_str());
  return 0;
}
