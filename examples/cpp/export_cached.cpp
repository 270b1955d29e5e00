// Exports a model that was captured before, to ONNX or, as NAME.pt2, for PyTorch:
//   export_cached CACHE MODEL OUTPUT [DTYPE]
// CACHE is the folder that `argosy doctor` names. DTYPE is such as fp16, or of ONNX a variant such as q4.
#include <argosy/cache.h>

#include <cstdio>

int main(int count, char** arguments) {
  if (count < 4) {
    std::fprintf(stderr, "usage: export_cached CACHE MODEL OUTPUT [DTYPE]\n");
    return 2;
  }
  auto report = [](const argosy::Error& error) {
    std::fputs(argosy::to_text(error).c_str(), stderr);
    return 1;
  };
  const std::filesystem::path output = arguments[3];
  const bool is_pt2 = output.extension() == ".pt2";
  argosy::CacheRequest request;
  request.cache = arguments[1];
  request.model = arguments[2];
  request.format = is_pt2 ? argosy::ExportFormat::kPt2 : argosy::ExportFormat::kOnnx;
  if (count > 4) request.dtype = arguments[4];
  auto model = argosy::open_cached(request);
  if (!model) return report(model.error());

  argosy::Pt2ExportOptions pt2{.output = output, .weight_plan = model->weight_plan, .dtype = request.dtype};
  argosy::OnnxExportOptions onnx{.output = output, .weight_plan = model->weight_plan, .dtype = request.dtype};
  auto bundle = is_pt2 ? argosy::Pt2Exporter().run(model->capture, model->checkpoint, pt2)
                       : argosy::OnnxExporter().run(model->capture, model->checkpoint, onnx);
  if (!bundle) return report(bundle.error());
  std::printf("%s: %zu files, %llu bytes\n", model->capture.model_class().c_str(), bundle->files.size(),
              static_cast<unsigned long long>(bundle->bytes));
  return 0;
}
