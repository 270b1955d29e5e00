#include <cstring>

#include "base/text.h"
#include "tensor/box.h"
#include "tensor/sha256.h"
#include "tensor/source.h"
#include "tensor/source_derived.h"

namespace argosy {
namespace {

// Bytes in memory, whoever owns them.
class MemorySource final : public TensorSource {
 public:
  MemorySource(std::span<const std::byte> bytes, std::vector<std::byte> own, DType dtype, std::vector<int64_t> shape,
               std::string recipe, std::shared_ptr<const void> owner)
      : own_(std::move(own)),
        bytes_(own_.empty() ? bytes : std::span<const std::byte>(own_)),
        dtype_(dtype),
        shape_(std::move(shape)),
        recipe_(std::move(recipe)),
        owner_(std::move(owner)) {}

  DType dtype() const override { return dtype_; }
  std::span<const int64_t> shape() const override { return shape_; }
  std::string recipe() const override { return recipe_; }
  size_t scratch_for(int64_t) const override { return 0; }

  Status read(const Box& box, std::span<std::byte> out, Scratch&) const override {
    check_read(*this, box, out.size());
    BoxRuns runs(shape_, box.start, box.extent);
    int64_t run_bytes = bytes_of(dtype_, runs.run());
    std::byte* next = out.data();
    for (BoxRuns::Strip strip; runs.next(strip);) {
      copy_runs(next, run_bytes, bytes_.data() + bytes_of(dtype_, strip.offset), bytes_of(dtype_, strip.stride),
                run_bytes, strip.count);
      next += run_bytes * strip.count;
    }
    return {};
  }

 private:
  std::vector<std::byte> own_;
  std::span<const std::byte> bytes_;
  DType dtype_;
  std::vector<int64_t> shape_;
  std::string recipe_;
  std::shared_ptr<const void> owner_;
};

class ShapeOnlySource final : public TensorSource {
 public:
  ShapeOnlySource(DType dtype, std::vector<int64_t> shape, std::string name)
      : dtype_(dtype), shape_(std::move(shape)), name_(std::move(name)) {}

  DType dtype() const override { return dtype_; }
  std::span<const int64_t> shape() const override { return shape_; }
  std::string recipe() const override {
    return format("shape_only({}, {})", quoted(name_, name_.size()), tensor_text(dtype_, shape_));
  }
  size_t scratch_for(int64_t) const override { return 0; }
  Status read(const Box&, std::span<std::byte>, Scratch&) const override {
    return fail(ErrorCode::kNotFound, format("the contents of tensor {} are not known", quoted(name_)),
                "this program was loaded without its weights; give the checkpoint");
  }

 private:
  DType dtype_;
  std::vector<int64_t> shape_;
  std::string name_;
};

Status check_size(const char* what, size_t given, DType dtype, std::span<const int64_t> shape) {
  ARGOSY_TRY(int64_t needed, checked_tensor_bytes(dtype, shape));
  if (given == static_cast<size_t>(needed)) return {};
  return fail(ErrorCode::kInvalidInput,
              format("{} of {} bytes for {}, which takes {}", what, given, tensor_text(dtype, shape), needed));
}

}  // namespace

Result<TensorSourcePtr> borrowed(std::span<const std::byte> bytes, DType dtype, std::vector<int64_t> shape,
                                 std::string identity, std::shared_ptr<const void> owner) {
  ARGOSY_TRY_STATUS(check_size("memory", bytes.size(), dtype, shape));
  std::string recipe = format("memory({}, {})", quoted(identity, identity.size()), tensor_text(dtype, shape));
  return std::make_shared<MemorySource>(bytes, std::vector<std::byte>{}, dtype, std::move(shape), std::move(recipe),
                                        std::move(owner));
}

Result<TensorSourcePtr> literal(std::vector<std::byte> bytes, DType dtype, std::vector<int64_t> shape) {
  ARGOSY_TRY_STATUS(check_size("literal", bytes.size(), dtype, shape));
  std::string recipe = format("literal({}, sha256:{})", tensor_text(dtype, shape), sha256_hex(bytes));
  return std::make_shared<MemorySource>(std::span<const std::byte>{}, std::move(bytes), dtype, std::move(shape),
                                        std::move(recipe), nullptr);
}

Result<TensorSourcePtr> shape_only(DType dtype, std::vector<int64_t> shape, std::string name) {
  ARGOSY_TRY_STATUS(checked_tensor_bytes(dtype, shape));
  return std::make_shared<ShapeOnlySource>(dtype, std::move(shape), std::move(name));
}

}  // namespace argosy
