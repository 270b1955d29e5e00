#include "base/text.h"
#include "commands.h"
#include "driver/lint_folder.h"
#include "io/json.h"
#include "own_engines.h"
#include "table.h"

namespace argosy::cli {
namespace {

using engines::Finding;
using engines::LintReport;

std::string_view severity_name(Finding::Severity severity) {
  return severity == Finding::Severity::kError ? "error" : "warning";
}

struct Counts {
  uint64_t errors = 0, warnings = 0;
};

Counts counts_of(const LintReport& report) {
  Counts counts;
  for (const Finding& finding : report.findings)
    ++(finding.severity == Finding::Severity::kError ? counts.errors : counts.warnings);
  return counts;
}

std::string as_text(const LintReport& report) {
  std::string text;
  for (const Finding& finding : report.findings) text += printable(to_text(finding)) + "\n";
  Counts counts = counts_of(report);
  return text + format("as a bundle for {}: {}, {} ({}, {})\n", report.engine, count_of(counts.errors, "error"),
                       count_of(counts.warnings, "warning"), count_of(report.graphs, "graph"),
                       count_of(report.files, "file"));
}

void add_members(const LintReport& report, JsonWriter& writer) {
  Counts counts = counts_of(report);
  writer.key("engine").value(report.engine);
  writer.key("errors").value(counts.errors).key("warnings").value(counts.warnings);
  writer.key("graphs").value(static_cast<uint64_t>(report.graphs));
  writer.key("files").value(static_cast<uint64_t>(report.files));
  writer.key("findings").begin_array();
  for (const Finding& finding : report.findings) {
    writer.begin_object().key("severity").value(severity_name(finding.severity)).key("rule").value(finding.rule);
    writer.key("file").value(finding.file).key("what").value(finding.what).key("hint").value(finding.hint);
    writer.end_object();
  }
  writer.end_array();
}

std::string rules_as_text() {
  Table table("llll", 0);
  for (const engines::LintRuleInfo& rule : engines::lint_rules())
    table.add(
        {rule.engine.empty() ? "all" : rule.engine, rule.name, std::string(severity_name(rule.severity)), rule.what});
  return table.text();
}

void add_rules(JsonWriter& writer) {
  writer.key("rules").begin_array();
  for (const engines::LintRuleInfo& rule : engines::lint_rules()) {
    writer.begin_object().key("engine");
    rule.engine.empty() ? writer.null() : writer.value(rule.engine);
    writer.key("rule").value(rule.name).key("severity").value(severity_name(rule.severity));
    writer.key("what").value(rule.what).end_object();
  }
  writer.end_array();
}

}  // namespace

int run_lint(const LintOptions& options, const Environment& environment, Terminal& terminal) {
  if (options.list_rules) {
    if (!terminal.wants_json()) return terminal.print(rules_as_text()) ? kDone : kFailed;
    add_rules(terminal.summary().members());
    return kDone;
  }
  Result<LintReport> report = lint_folder(options.folder, options.engine);
  if (report && options.engine.empty()) {
    Result<std::string> missing = lint_by_own_engine(options.folder, *report, environment);
    if (!missing) {
      report = fail(std::move(missing).error());
    } else if (!missing->empty()) {
      terminal.log(LogLevel::kWarn, *missing);
    }
  }
  if (!report) {
    terminal.print_error(report.error());
    return kFailed;
  }
  if (terminal.wants_json())
    add_members(*report, terminal.summary().members());
  else if (!terminal.print(as_text(*report)))
    return kFailed;
  return report->has_errors() ? kWrong : kDone;
}

}  // namespace argosy::cli
