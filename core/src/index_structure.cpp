// What a compiled step depends on (A14), where an index lies (A15), and its form at the ABI.
#include <quire/index.h>
#include <quire/registry.h>

#include <fmt/format.h>

#include <algorithm>

namespace quire {

Structure Index::structure() const {
  Structure reports;
  const auto walk = [&](std::string path, const Tensor& tensor) {
    reports.emplace_back(std::move(path), fmt::format("{}{}", name(tensor.dtype()), to_string(tensor.shape())));
  };
  const auto presence = [&](std::string path, bool present) { reports.emplace_back(std::move(path), present ? "present" : "absent"); };
  reports.emplace_back("tokens", std::string(name(kind_)));
  if (is_tabled()) {
    presence("tokens.row", row_.defined());
    if (row_.defined()) walk("tokens.row", row_);
  }
  walk("tokens.pos", pos_);
  if (is_tabled()) {
    walk("tokens.table", table_);
    reports.emplace_back("tokens.blocks", fmt::format("{}", block_tables_.size()));
    for (std::size_t i = 0; i < block_tables_.size(); ++i) {
      reports.emplace_back(fmt::format("tokens.blocks.{}", i), fmt::format("{}", block_tables_[i].block_size));
      walk(fmt::format("tokens.blocks.{}", i), block_tables_[i].blocks);
    }
  }
  reports.emplace_back("every", fmt::format("{}", reads_));
  reports.emplace_back("window", window_ ? fmt::format("{}", *window_) : "absent");
  presence("columns", columns_.defined());
  if (columns_.defined()) walk("columns", columns_);
  presence("draft", draft_.has_value());
  if (draft_) {
    walk("draft.slots", draft_->slots);
    walk("draft.sees", draft_->sees);
  }
  return reports;
}

Index Index::place(std::span<const Device> devices) const {
  for (const Device& device : devices) {
    if (device == this->device()) continue;  // its tensors lie there already
    throw Error(ErrorCode::unavailable, "devices",
                fmt::format("devices: type {} number {}; allowed: devices of a loaded backend (quire backends lists them)", device.type, device.id));
  }
  return *this;
}

IndexAbi::IndexAbi(const Index& index) : index_(index) {
  abi_.struct_size = sizeof abi_;
  abi_.kind = static_cast<std::int32_t>(index_.kind());
  const auto view = [](const Tensor& tensor, quire_tensor& storage) -> const quire_tensor* {
    if (!tensor.defined()) return nullptr;
    storage = tensor.view();
    return &storage;
  };
  abi_.pos = view(index_.pos(), pos_);
  abi_.table = view(index_.table(), table_);
  abi_.row = view(index_.row(), row_);
  blocks_.resize(index_.block_tables().size());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const BlockTable& blocks = index_.block_tables()[i];
    block_tables_.push_back({blocks.block_size, view(blocks.blocks, blocks_[i])});
  }
  abi_.block_table_count = static_cast<std::int64_t>(block_tables_.size());
  abi_.block_tables = block_tables_.data();
  abi_.reads = index_.reads();
  abi_.window = index_.window_size().value_or(0);
  abi_.columns = view(index_.columns(), columns_);
  if (index_.draft_tokens()) {
    abi_.slots = view(index_.draft_tokens()->slots, slots_);
    abi_.sees = view(index_.draft_tokens()->sees, sees_);
  }
}

}  // namespace quire
