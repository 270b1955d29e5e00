#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace argosy::engines {

/// The methods of an ExecuTorch program, as lint rules see them.
struct LintedProgram {
  struct Tensor {
    std::string dtype;           // "i64"; "" for what is no tensor
    std::vector<int64_t> sizes;  // the largest ones
  };
  using Constant = std::variant<int64_t, bool, double, std::string>;
  struct Method {
    std::string name;
    std::vector<Tensor> inputs, outputs;
    std::vector<Constant> constants;   // what a method without inputs returns, if no instruction computes it
    std::vector<std::string> kernels;  // "aten::add.out"
  };
  std::string file;     // "model.pte"
  std::string problem;  // why it could not be read; empty: it was
  std::vector<Method> methods;
  std::vector<std::string> external_data;  // names of data that are to be found in a .ptd file

  const Method* method(std::string_view name) const;  // null if there is none
  /// The first number that a constant method returns.
  const int64_t* number(std::string_view method) const;
};

/// Reads a program; implemented by a layer that knows the format, unlike this one. On failure `problem` of the result
/// is set.
using ProgramReader = std::function<LintedProgram(const std::filesystem::path& path)>;

}  // namespace argosy::engines
