#pragma once

#include <map>
#include <string>
#include <string_view>

namespace argosy::stamp {

/// A size as torch writes it ("Add(Integer(2), Symbol('s1', ...))") as a sum of products, sorted: equal polynomials are
/// equal texts. torch's own form depends on the names of symbols, which captures give anew. What is no polynomial in
/// other terms (a quotient) is one symbol more; what cannot be read stays as it is.
std::string canonical_expression(std::string_view text);

/// JSON in which that is done to every "expr_str".
std::string with_canonical_expressions(std::string_view json);

/// Makes expressions of two graphs comparable: symbols are numbered in the order in which they are met.
class Symbols {
 public:
  std::string renamed(std::string_view expression);
  std::string renamed_in(std::string_view json);

 private:
  std::string numbered(std::string_view text);
  std::map<std::string, size_t, std::less<>> numbers_;
};

}  // namespace argosy::stamp
