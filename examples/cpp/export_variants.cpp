// Exports a model that was captured before for transformers.js, in several variants at once:
//   export_variants CACHE MODEL OUTPUT VARIANT...      such as fp32 q4
// What they share is written once. The first one is what the engine opens by itself.
#include <argosy/cache.h>

#include <cstdio>

int main(int count, char** arguments) {
  if (count < 5) {
    std::fprintf(stderr, "usage: export_variants CACHE MODEL OUTPUT VARIANT...\n");
    return 2;
  }
  auto report = [](const argosy::Error& error) {
    std::fputs(argosy::to_text(error).c_str(), stderr);
    return 1;
  };
  auto checkpoint = argosy::Checkpoint::open(arguments[2]);
  if (!checkpoint) return report(checkpoint.error());
  std::vector<argosy::OnnxVariant> variants;
  for (int i = 4; i < count; ++i) {
    auto model = argosy::open_cached({.model = arguments[2], .cache = arguments[1], .dtype = arguments[i]});
    if (!model) return report(model.error());
    variants.push_back({arguments[i], model->capture, model->weight_plan});
  }
  auto bundle = argosy::OnnxExporter().run(variants, *checkpoint,
                                           {.output = arguments[3], .engine = argosy::Engine::kTransformersJs});
  if (!bundle) return report(bundle.error());
  for (const std::string& file : bundle->files) std::printf("%s\n", file.c_str());
  return 0;
}
