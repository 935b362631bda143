// Reading a case's fields: tensors in every form of the case format, numbers, and the memory behind them.
#pragma once

#include <quire/index.h>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quire::conformance {

/// What a field's plain lists hold: i64 in index fields, f32 elsewhere, bool where the op takes bool.
enum class FieldKind { index, real, boolean };

/// A step's named tensors, for later steps of a program to refer to.
using NamedTensors = std::map<std::string, Tensor, std::less<>>;

/// The tensors of one call, with a copy of what their memory held before it.
class Memory {
 public:
  /// `storage` is the whole allocation, gaps included; `tensor` lies in it. A name may be held twice for one memory (an alias).
  void hold(std::string name, const Tensor& tensor, const Tensor& storage, bool writable);
  /// The names whose read-only bytes, stride gaps or, after an error, any bytes changed. In order of the fields.
  std::vector<std::string> changed(bool after_error) const;

 private:
  struct Held {
    std::string name;
    Tensor tensor, storage;
    std::vector<std::byte> before;
    bool writable;
  };
  std::vector<Held> held_;
};

/// Where a case's references lead.
struct Surroundings {
  std::filesystem::path folder;                       ///< side files are named relative to it
  const std::map<std::string, NamedTensors, std::less<>>* steps = nullptr;  ///< a program's earlier steps
  const std::map<std::string, Index, std::less<>>* indices = nullptr;       ///< theirs, by "step.index"
  bool watches_refs = true;  ///< false where streams may change what a ref leads to while the step is read
};

/// One JSON object read field by field. Every problem raises invalid_argument naming the field; `finish` names a field that nobody asked for.
/// Hidden keys are not there.
class Fields {
 public:
  Fields(const nlohmann::json& object, Memory& memory, const Surroundings& surroundings, std::span<const std::string_view> hidden = {});

  bool has(std::string_view name) const;
  const nlohmann::json& object() const { return object_; }
  Tensor tensor(std::string_view name, FieldKind kind);            ///< required, read-only
  Tensor optional_tensor(std::string_view name, FieldKind kind);   ///< undefined where absent
  Tensor writable(std::string_view name);                          ///< required, real, changed by the call
  Tensor optional_writable(std::string_view name);
  std::int64_t integer(std::string_view name);
  std::optional<std::int64_t> optional_integer(std::string_view name);
  std::optional<double> optional_number(std::string_view name);
  std::optional<bool> optional_boolean(std::string_view name);
  std::vector<std::int64_t> integers(std::string_view name);
  std::string text(std::string_view name);
  /// The field as it stands.
  const nlohmann::json& value(std::string_view name);

  void finish() const;
  /// Every tensor read so far, by field.
  const NamedTensors& tensors() const { return tensors_; }
  /// Those of them that the call changes.
  bool is_writable(std::string_view name) const { return writable_.contains(name); }
  /// The index that was read, for later steps to refer to.
  void keep_index(const Index& index) { index_ = index; }
  const std::optional<Index>& index() const { return index_; }
  /// Tensors that the call needs until its stream has passed.
  void keep(const std::vector<Tensor>& tensors) { kept_.insert(kept_.end(), tensors.begin(), tensors.end()); }
  const std::vector<Tensor>& kept() const { return kept_; }
  Memory& memory() { return memory_; }
  const Surroundings& surroundings() const { return surroundings_; }

 private:
  bool is_hidden(std::string_view name) const;
  Tensor read(std::string_view name, FieldKind kind, bool writable);
  Tensor read_alias(std::string_view name, const std::string& other, bool writable);

  const nlohmann::json& object_;
  Memory& memory_;
  const Surroundings& surroundings_;
  std::span<const std::string_view> hidden_;
  std::set<std::string, std::less<>> used_;
  NamedTensors tensors_;
  std::set<std::string, std::less<>> writable_;
  std::optional<Index> index_;
  std::vector<Tensor> kept_;
  std::map<std::string, Tensor, std::less<>> storages_;
  std::set<std::string, std::less<>> pending_;  // fields whose alias is being followed
};

/// "list of ...", for messages.
std::string_view kind_of(const nlohmann::json& value);

}  // namespace quire::conformance
