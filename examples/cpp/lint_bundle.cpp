// Says what a folder is, how it was checked and what is wrong with it:  lint_bundle FOLDER [ENGINE]
// The exit code is 3 if an engine would fail on it, as that of `argosy lint`.
#include <argosy/bundle.h>
#include <argosy/lint.h>

#include <cstdio>

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: lint_bundle FOLDER [ENGINE]\n");
    return 2;
  }
  // Folders that others wrote say nothing of themselves.
  if (auto bundle = argosy::read_bundle(arguments[1])) {
    std::printf("%s for %s, check: %s %s%s\n", bundle->model_class.c_str(), bundle->engine.c_str(),
                bundle->check.kind.c_str(), bundle->check.why.c_str(), bundle->check.compared.c_str());
    for (const argosy::BundleGraph& graph : bundle->graphs)
      std::printf("  %s: %s\n", graph.file.c_str(), graph.component.c_str());
    for (const argosy::BundleVariant& variant : bundle->variants)
      std::printf("  variant %s, check: %s\n", variant.name.c_str(), variant.check.kind.c_str());
  }
  auto report = argosy::lint_bundle(arguments[1], count > 2 ? arguments[2] : "");
  if (!report) {
    std::fputs(argosy::to_text(report.error()).c_str(), stderr);
    return 1;
  }
  int exit_code = 0;
  for (const argosy::LintFinding& finding : report->findings) {
    std::printf("%s[%s] %s: %s; %s\n", finding.is_error ? "error" : "warning", finding.rule.c_str(),
                finding.file.c_str(), finding.what.c_str(), finding.hint.c_str());
    if (finding.is_error) exit_code = 3;
  }
  std::printf("as a bundle for %s: %zu findings\n", report->engine.c_str(), report->findings.size());
  return exit_code;
}
