// What a compiled step depends on (A14), where an index lies (A15), and its form at the ABI.
#include <quire/index.h>
#include <quire/stream.h>

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

bool Index::is_on(Device device) const {
  return this->device() == device || std::any_of(copies_.begin(), copies_.end(), [&](const Index& copy) { return copy.device() == device; });
}

const Index& Index::on(Device device) const {
  if (this->device() == device) return *this;
  std::string allowed = to_string(this->device());
  for (const Index& copy : copies_) {
    if (copy.device() == device) return copy;
    allowed += ", " + to_string(copy.device());
  }
  reject("index", fmt::format("no copy on {}, where the call runs", to_string(device)), fmt::format("the devices that it lies on: {} (A15, Index::place)", allowed));
}

Index Index::place(std::span<const Device> devices) const {
  if (devices.empty()) reject("devices", "none", "one device or more");
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (std::find(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(i), devices[i]) != devices.begin() + static_cast<std::ptrdiff_t>(i)) {
      reject("devices", fmt::format("{} twice", to_string(devices[i])), "each device once");
    }
    if (!devices[i].is_host()) (void)backend_of(devices[i]);
  }
  const auto copy_on = [&](Device device) {
    Index copy = is_on(device) ? on(device) : *this;
    copy.copies_.clear();
    if (copy.device() == device) return copy;
    const Backend& backend = backend_of(device.is_host() ? copy.device() : device);
    // Between devices of two backends by way of the host.
    const bool through_host = !device.is_host() && !copy.device().is_host() && &backend != &backend_of(copy.device());
    const auto move = [&](Tensor& tensor) {
      if (!tensor.defined()) return;
      if (through_host) tensor = copy_to(tensor, backend_of(copy.device()), Device{});
      tensor = copy_to(tensor, backend, device);
    };
    move(copy.table_);
    move(copy.row_);
    for (BlockTable& blocks : copy.block_tables_) move(blocks.blocks);
    move(copy.columns_);
    if (copy.draft_) {
      move(copy.draft_->slots);
      move(copy.draft_->sees);
    }
    move(copy.pos_);  // last: it says where the copy lies
    return copy;
  };
  Index placed = copy_on(devices[0]);
  for (const Device& device : devices.subspan(1)) placed.copies_.push_back(copy_on(device));
  return placed;
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

void IndexAbi::keep(std::vector<Tensor>& tensors) const {
  for (const Tensor* tensor : {&index_.pos(), &index_.table(), &index_.row(), &index_.columns()}) {
    if (tensor->defined()) tensors.push_back(*tensor);
  }
  for (const BlockTable& blocks : index_.block_tables()) tensors.push_back(blocks.blocks);
  if (index_.draft_tokens()) {
    tensors.push_back(index_.draft_tokens()->slots);
    tensors.push_back(index_.draft_tokens()->sees);
  }
}

}  // namespace quire
