#include "frontends/pt2/signature.h"

#include "base/text.h"

namespace argosy {
namespace {

Result<std::string_view> tensor_name(const JsonField& spec) {
  JsonField argument = spec.member("arg");
  return argument.member("name").string();
}

Result<Argument> read_constant(const JsonField& value) {
  ARGOSY_TRY(auto tag, value.tag());
  JsonField inner = value.child(tag.first, tag.second);
  if (tag.first == "as_none") return Argument(None{});
  if (tag.first == "as_int") {
    ARGOSY_TRY(int64_t number, inner.integer());
    return Argument(number);
  }
  if (tag.first == "as_float") {
    ARGOSY_TRY(double number, inner.number());
    return Argument(number);
  }
  if (tag.first == "as_bool") {
    ARGOSY_TRY(bool flag, inner.boolean());
    return Argument(flag);
  }
  if (tag.first == "as_string") {
    ARGOSY_TRY(std::string_view text, inner.string());
    return Argument(std::string(text));
  }
  return value.error(format("unknown kind of constant {}", quoted(tag.first)));
}

Result<InputRole> read_user_input(const JsonField& spec) {
  InputRole role;
  JsonField argument = spec.member("arg");
  ARGOSY_TRY(auto tag, argument.tag());
  JsonField inner = argument.child(tag.first, tag.second);
  if (tag.first == "as_tensor") {
    ARGOSY_TRY(role.argument, inner.member("name").string());
    return role;
  }
  if (tag.first == "as_sym_int" || tag.first == "as_sym_float" || tag.first == "as_sym_bool") {
    ARGOSY_TRY(role.argument, inner.member("as_name").string());
    return role;
  }
  if (tag.first == "as_custom_obj") {
    ARGOSY_TRY(std::string_view object, inner.member("name").string());
    return argument.error(ErrorCode::kUnsupportedFeature, format("input {} is a custom object", quoted(object)),
                          "only tensors and numbers can be inputs");
  }
  role.kind = InputRole::Kind::kConstant;
  ARGOSY_TRY(role.constant, read_constant(argument));
  return role;
}

Result<InputRole> read_input(const JsonField& spec) {
  ARGOSY_TRY(auto tag, spec.tag());
  JsonField inner = spec.child(tag.first, tag.second);
  InputRole role;
  role.kind = InputRole::Kind::kWeight;
  if (tag.first == "user_input") return read_user_input(inner);
  if (tag.first == "parameter") {
    ARGOSY_TRY(role.name, inner.member("parameter_name").string());
  } else if (tag.first == "buffer") {
    ARGOSY_TRY(role.name, inner.member("buffer_name").string());
    ARGOSY_TRY(bool is_persistent, inner.member("persistent").boolean());
    role.weight_kind = is_persistent ? WeightKind::kBuffer : WeightKind::kNonPersistentBuffer;
  } else if (tag.first == "tensor_constant") {
    ARGOSY_TRY(role.name, inner.member("tensor_constant_name").string());
    role.weight_kind = WeightKind::kConstant;
  } else if (tag.first == "constant_input") {
    role.kind = InputRole::Kind::kConstant;
    ARGOSY_TRY(role.name, inner.member("name").string());
    JsonField value = inner.member("value");
    ARGOSY_TRY(role.constant, read_constant(value));
    return role;
  } else if (tag.first == "custom_obj") {
    ARGOSY_TRY(std::string_view object, inner.member("custom_obj_name").string());
    return spec.error(ErrorCode::kUnsupportedFeature, format("the graph uses the custom object {}", quoted(object)),
                      "TorchBind and opaque objects have no counterpart in exported files: keep them out of forward()");
  } else if (tag.first == "token") {
    return spec.error(ErrorCode::kUnsupportedFeature, "the graph has an effect token as input",
                      "ops with side effects (printing, logging) cannot be exported: remove them from forward()");
  } else {
    return spec.error(format("unknown kind of input {}", quoted(tag.first)));
  }
  ARGOSY_TRY(role.argument, tensor_name(inner));
  return role;
}

Result<OutputSpec> read_output(const JsonField& spec) {
  ARGOSY_TRY(auto tag, spec.tag());
  JsonField inner = spec.child(tag.first, tag.second);
  OutputSpec output;
  std::string_view target;
  if (tag.first == "user_output") return output;
  if (tag.first == "loss_output") {
    output.kind = OutputKind::kLoss;
    return output;
  }
  if (tag.first == "buffer_mutation") {
    output.kind = OutputKind::kBufferMutation;
    ARGOSY_TRY(target, inner.member("buffer_name").string());
  } else if (tag.first == "parameter_mutation") {
    output.kind = OutputKind::kParameterMutation;
    ARGOSY_TRY(target, inner.member("parameter_name").string());
  } else if (tag.first == "user_input_mutation") {
    output.kind = OutputKind::kInputMutation;
    ARGOSY_TRY(target, inner.member("user_input_name").string());
  } else if (tag.first == "gradient_to_parameter" || tag.first == "gradient_to_user_input" || tag.first == "token") {
    return spec.error(ErrorCode::kUnsupportedFeature, format("outputs of kind {} are not supported", quoted(tag.first)),
                      "export the model for inference: model.eval(), and no backward pass in forward()");
  } else {
    return spec.error(format("unknown kind of output {}", quoted(tag.first)));
  }
  output.target = target;
  return output;
}

}  // namespace

Result<SignatureJson> read_signature(const JsonField& signature) {
  SignatureJson result;
  JsonField inputs = signature.member("input_specs");
  JsonField outputs = signature.member("output_specs");
  ARGOSY_TRY_STATUS(inputs.require_array());
  ARGOSY_TRY_STATUS(outputs.require_array());
  int64_t index = 0;
  for (JsonView item : inputs.view().items()) {
    JsonField field = inputs.item(item, index++);
    ARGOSY_TRY(InputRole role, read_input(field));
    result.inputs.push_back(std::move(role));
  }
  index = 0;
  for (JsonView item : outputs.view().items()) {
    JsonField field = outputs.item(item, index++);
    ARGOSY_TRY(OutputSpec output, read_output(field));
    result.outputs.push_back(std::move(output));
  }
  return result;
}

}  // namespace argosy
