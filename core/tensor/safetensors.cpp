// Reading and writing safetensors files. A file is foreign input: every number in it is checked before it is used.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/safetensors.h"

#include "core/support/atomic_file.h"
#include "core/support/json.h"
#include "core/support/read_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace fuseline {

static_assert(std::endian::native == std::endian::little, "tensor data is stored little-endian");

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLengthBytes = 8;
// The limit of the format's reference implementation.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
// Far more than any shard of a model has.
constexpr std::size_t kMaxTensors = 20'000;
constexpr std::size_t kSafetensorsAlignment = 8;
constexpr std::string_view kMetadata = "__metadata__";

struct DTypeName {
  DType dtype;
  std::string_view name;
};
constexpr std::array kDTypeNames = {DTypeName{DType::F32, "F32"},   DTypeName{DType::F16, "F16"},
                                    DTypeName{DType::BF16, "BF16"}, DTypeName{DType::I64, "I64"},
                                    DTypeName{DType::U8, "U8"},     DTypeName{DType::E4M3, "F8_E4M3"}};

Error fileError(const fs::path& path, std::string_view sentence) {
  return {fmt::format("{}: {}", path.string(), sentence)};
}

// Writing

std::string_view formatName(DType dtype) { return std::ranges::find(kDTypeNames, dtype, &DTypeName::dtype)->name; }

Verdict checkWritable(const NamedTensors& tensors) {
  std::set<std::string_view> seen;
  for (const auto& [name, tensor] : tensors) {
    if (name == kMetadata) return Verdict::no("a tensor is named __metadata__, which the format reserves.");
    if (!seen.insert(name).second) return Verdict::no(fmt::format("two tensors are named '{:.80}'.", name));
    if (static_cast<std::int64_t>(tensor.data.size()) != tensor.spec.bytes())
      return Verdict::no(fmt::format("tensor '{:.80}' is {} and needs {} bytes, but has {}.", name,
                                     toString(tensor.spec), tensor.spec.bytes(), tensor.data.size()));
  }
  return Verdict::yes();
}

/// Indices of the tensors in the order of their data.
std::vector<std::size_t> dataOrder(const NamedTensors& tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t i) { return sizeBytes(tensors[i].second.spec.dtype); });
  return order;
}

Json headerOf(const NamedTensors& tensors, const std::vector<std::size_t>& order, const TensorFileMetadata& metadata) {
  std::vector<std::size_t> begins(tensors.size());
  std::size_t offset = 0;
  for (const std::size_t i : order) {
    begins[i] = offset;
    offset += tensors[i].second.data.size();
  }
  Json header = Json::object();
  if (!metadata.empty()) header[std::string(kMetadata)] = metadata;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor] = tensors[i];
    header[name] = {{"dtype", formatName(tensor.spec.dtype)},
                    {"shape", tensor.spec.shape},
                    {"data_offsets", {begins[i], begins[i] + tensor.data.size()}}};
  }
  return header;
}

/// The header as text, padded with spaces so that the data is aligned. Nothing when a name is not UTF-8.
std::optional<std::string> headerText(const Json& header) {
  try {
    std::string text = header.dump();
    text.resize((text.size() + kSafetensorsAlignment - 1) / kSafetensorsAlignment * kSafetensorsAlignment, ' ');
    return text;
  } catch (const Json::type_error&) {
    return std::nullopt;
  }
}

// Reading

/// Reads the names of the tensors alone, up to the first that occurs twice, which a JSON parser silently accepts, or is
/// one too many.
class HeaderNames : public Json::json_sax_t {
 public:
  Verdict verdict() const {
    if (m_names.size() > kMaxTensors) return Verdict::no(fmt::format("there are more than {} tensors.", kMaxTensors));
    if (!m_duplicate.empty()) return Verdict::no(fmt::format("two tensors are named '{:.80}'.", m_duplicate));
    return Verdict::yes();
  }

  bool key(string_t& name) override {
    if (m_depth != 1) return true;
    if (!m_names.insert(name).second) m_duplicate = name;
    return m_duplicate.empty() && m_names.size() <= kMaxTensors;
  }
  bool start_object(std::size_t) override { return ++m_depth, true; }
  bool end_object() override { return --m_depth, true; }
  bool start_array(std::size_t) override { return ++m_depth, true; }
  bool end_array() override { return --m_depth, true; }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  int m_depth = 0;
  std::set<std::string> m_names;
  std::string m_duplicate;
};

/// Drops fields that are not read here (metadata, unknown fields), so that a hostile header cannot grow or nest without
/// bounds.
bool keepsField(int depth, Json::parse_event_t event, const Json& parsed) {
  static constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};
  if (event != Json::parse_event_t::key) return true;
  const auto& name = parsed.get_ref<const std::string&>();
  return depth == 1 ? name != kMetadata : std::ranges::find(kFields, name) != kFields.end();
}

Result<Json> parseHeader(const fs::path& path, const std::string& text) {
  HeaderNames names;
  (void)Json::sax_parse(text, &names);
  if (const Verdict verdict = names.verdict(); !verdict) return fileError(path, verdict.reason());
  Json header = Json::parse(text, keepsField, /*allow_exceptions=*/false);
  if (header.is_discarded()) return fileError(path, "the header is not valid JSON; is this a safetensors file?");
  if (!header.is_object()) return fileError(path, "the header is not a JSON object; is this a safetensors file?");
  return header;
}

/// Keeps the texts of the metadata only, so that a hostile header cannot nest without bounds.
bool keepsMetadata(int depth, Json::parse_event_t event, const Json& parsed) {
  if (depth == 1 && event == Json::parse_event_t::key) return parsed.get_ref<const std::string&>() == kMetadata;
  const bool begins = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
  return !begins || depth < 2;
}

std::optional<std::uint64_t> asUnsigned(const Json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<std::uint64_t>();
}

std::optional<DType> parseFormatName(const Json& value) {
  if (!value.is_string()) return std::nullopt;
  const auto found = std::ranges::find(kDTypeNames, value.get<std::string>(), &DTypeName::name);
  if (found == kDTypeNames.end()) return std::nullopt;
  return found->dtype;
}

std::optional<Shape> parseShape(const Json& value) {
  if (!value.is_array()) return std::nullopt;
  Shape shape;
  for (const Json& item : value) {
    const auto extent = asUnsigned(item);
    if (!extent || *extent > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
    shape.push_back(static_cast<std::int64_t>(*extent));
  }
  return shape;
}

/// Bytes of a tensor, or nothing when a product of its extents overflows.
std::optional<std::uint64_t> checkedBytes(const TensorSpec& spec) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  std::int64_t bytes = sizeBytes(spec.dtype);
  bool isEmpty = false;
  for (const std::int64_t extent : spec.shape) {
    isEmpty = isEmpty || extent == 0;
    if (extent > kLargest / bytes) return std::nullopt;
    bytes *= std::max<std::int64_t>(extent, 1);
  }
  return isEmpty ? 0 : static_cast<std::uint64_t>(bytes);
}

struct Offsets {
  std::uint64_t begin;
  std::uint64_t end;
};

std::optional<Offsets> parseOffsets(const Json& value) {
  if (!value.is_array() || value.size() != 2) return std::nullopt;
  const auto begin = asUnsigned(value[0]);
  const auto end = asUnsigned(value[1]);
  if (!begin || !end) return std::nullopt;
  return Offsets{*begin, *end};
}

/// The member of an object, or null.
const Json& member(const Json& object, const char* name) {
  static const Json null;
  const auto found = object.find(name);
  return found == object.end() ? null : *found;
}

std::string describe(const Json& value) { return value.is_string() ? value.get<std::string>() : value.type_name(); }

Error foreignTensor(const std::string& name, const std::string& dtype) {
  return {fmt::format("tensor '{:.80}' has the dtype {:.80}. Valid values: F32, F16, BF16, F8_E4M3, I64, U8.", name,
                      dtype)};
}

/// One entry of the header, every field checked against the size of the data. Positions are those in the data.
Result<StoredTensor> parseEntry(const std::string& name, const Json& value, std::uint64_t dataBytes) {
  if (!value.is_object()) return Error{fmt::format("tensor '{:.80}' is described by {}.", name, value.type_name())};
  const Json& dtypeName = member(value, "dtype");
  const auto dtype = parseFormatName(dtypeName);
  if (!dtype && (!dtypeName.is_string() || describe(dtypeName).empty()))
    return foreignTensor(name, describe(dtypeName));
  auto shape = parseShape(member(value, "shape"));
  if (!shape) return Error{fmt::format("tensor '{:.80}': shape is not a list of sizes.", name)};
  const auto offsets = parseOffsets(member(value, "data_offsets"));
  if (!offsets) return Error{fmt::format("tensor '{:.80}': data_offsets is not a pair of positions.", name)};
  if (offsets->begin > offsets->end || offsets->end > dataBytes)
    return Error{fmt::format("tensor '{:.80}' is at bytes {} to {}, but the data has {} bytes.", name, offsets->begin,
                             offsets->end, dataBytes)};
  const std::uint64_t available = offsets->end - offsets->begin;
  if (!dtype) *shape = {static_cast<std::int64_t>(available)};
  StoredTensor entry{.name = name,
                     .spec = {dtype.value_or(DType::U8), std::move(*shape)},
                     .begin = offsets->begin,
                     .end = offsets->end,
                     .foreignDtype = dtype ? "" : describe(dtypeName)};
  if (checkedBytes(entry.spec) != available)
    return Error{
        fmt::format("tensor '{:.80}' is {}, but has {} bytes of data.", name, toString(entry.spec), available)};
  return entry;
}

Result<std::vector<StoredTensor>> parseEntries(const fs::path& path, const Json& header, std::uint64_t dataBytes) {
  std::vector<StoredTensor> entries;
  for (const auto& [name, value] : header.items()) {
    Result<StoredTensor> entry = parseEntry(name, value, dataBytes);
    if (!entry) return fileError(path, entry.error().message);
    entries.push_back(std::move(*entry));
  }
  return entries;
}

/// Every byte of the data must belong to exactly one tensor: no overlap, no hole, no rest.
Verdict checkCoverage(const std::vector<StoredTensor>& entries, std::uint64_t dataBytes) {
  std::vector<const StoredTensor*> byPosition;
  for (const StoredTensor& entry : entries) byPosition.push_back(&entry);
  std::ranges::sort(byPosition, {}, [](const StoredTensor* entry) { return std::pair(entry->begin, entry->end); });
  std::uint64_t expected = 0;
  for (const StoredTensor* entry : byPosition) {
    if (entry->begin != expected)
      return Verdict::no(fmt::format("tensor '{:.80}' begins at byte {}, but the one before it ends at byte {}.",
                                     entry->name, entry->begin, expected));
    expected = entry->end;
  }
  if (expected == dataBytes) return Verdict::yes();
  return Verdict::no(fmt::format("the tensors end at byte {}, but the data has {} bytes.", expected, dataBytes));
}

bool readBytes(std::istream& in, char* out, std::uint64_t count) {
  in.read(out, static_cast<std::streamsize>(count));
  return static_cast<std::uint64_t>(in.gcount()) == count;
}

struct Header {
  std::string text;
  std::uint64_t dataBytes = 0;
};

/// The header's text; its length is checked against the file before any memory is taken.
Result<Header> readHeader(const fs::path& path, std::istream& in, std::uint64_t fileBytes) {
  std::uint64_t length = 0;
  if (fileBytes < kLengthBytes || !readBytes(in, reinterpret_cast<char*>(&length), kLengthBytes))
    return fileError(path, fmt::format("the file has {} bytes; a safetensors file has at least 8.", fileBytes));
  if (length > kMaxHeaderBytes || length > fileBytes - kLengthBytes)
    return fileError(path, fmt::format("the header claims {} bytes, but the file has {}; is this a safetensors file?",
                                       length, fileBytes));
  Header header{.text = std::string(length, '\0'), .dataBytes = fileBytes - kLengthBytes - length};
  if (!readBytes(in, header.text.data(), length)) return fileError(path, "the header could not be read.");
  return header;
}

Result<Header> headerOfFile(const fs::path& path) {
  if (Result<void> regular = checkRegularFile(path, "safetensors file"); !regular) return regular.error();
  std::error_code failure;
  const std::uint64_t fileBytes = fs::file_size(path, failure);
  if (failure) return fileError(path, fmt::format("cannot be read: {}.", failure.message()));
  std::ifstream in(path, std::ios::binary);
  if (!in) return fileError(path, "cannot be opened for reading.");
  return readHeader(path, in, fileBytes);
}

Result<NamedTensors> readData(const fs::path& path, std::istream& in, const std::vector<StoredTensor>& entries) {
  NamedTensors tensors;
  for (const StoredTensor& entry : entries) {
    if (!entry.foreignDtype.empty()) return fileError(path, foreignTensor(entry.name, entry.foreignDtype).message);
    Tensor tensor = Tensor::zeros(entry.spec);
    in.seekg(static_cast<std::streamoff>(entry.begin));
    if (!readBytes(in, reinterpret_cast<char*>(tensor.data.data()), entry.end - entry.begin))
      return fileError(path, fmt::format("the data of tensor '{:.80}' could not be read.", entry.name));
    tensors.emplace_back(entry.name, std::move(tensor));
  }
  return tensors;
}

}  // namespace

Result<void> writeSafetensors(const fs::path& path, const NamedTensors& tensors, const TensorFileMetadata& metadata) {
  if (const Verdict verdict = checkWritable(tensors); !verdict) return fileError(path, verdict.reason());
  const std::vector<std::size_t> order = dataOrder(tensors);
  const std::optional<std::string> header = headerText(headerOf(tensors, order, metadata));
  if (!header) return fileError(path, "the name of a tensor is not valid UTF-8.");
  return writeFileAtomically(path, [&](std::ostream& out) {
    const std::uint64_t length = header->size();
    out.write(reinterpret_cast<const char*>(&length), kLengthBytes);
    out.write(header->data(), static_cast<std::streamsize>(header->size()));
    for (const std::size_t i : order) {
      const std::vector<std::byte>& data = tensors[i].second.data;
      out.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
    }
  });
}

Result<NamedTensors> readSafetensors(const fs::path& path) {
  const Result<std::vector<StoredTensor>> index = safetensorsIndex(path);
  if (!index) return index.error();
  std::ifstream in(path, std::ios::binary);
  if (!in) return fileError(path, "cannot be opened for reading.");
  return readData(path, in, *index);
}

Result<std::vector<StoredTensor>> safetensorsIndex(const fs::path& path) {
  const Result<Header> header = headerOfFile(path);
  if (!header) return header.error();
  const Result<Json> json = parseHeader(path, header->text);
  if (!json) return json.error();
  Result<std::vector<StoredTensor>> entries = parseEntries(path, *json, header->dataBytes);
  if (!entries) return entries.error();
  if (const Verdict verdict = checkCoverage(*entries, header->dataBytes); !verdict)
    return fileError(path, verdict.reason());
  for (StoredTensor& entry : *entries) {
    entry.begin += kLengthBytes + header->text.size();
    entry.end += kLengthBytes + header->text.size();
  }
  return entries;
}

Result<TensorFileMetadata> safetensorsMetadata(const fs::path& path) {
  const Result<Header> header = headerOfFile(path);
  if (!header) return header.error();
  const Json json = Json::parse(header->text, keepsMetadata, /*allow_exceptions=*/false);
  TensorFileMetadata metadata;
  if (!json.is_object()) return metadata;
  for (const auto& [name, value] : member(json, kMetadata.data()).items())
    if (value.is_string()) metadata[name] = value.get<std::string>();
  return metadata;
}

}  // namespace fuseline
