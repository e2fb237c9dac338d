// Compares the file contents of two documents.
// SPDX-License-Identifier: Apache-2.0
#include "core/compare/document_difference.h"

#include "core/document/file_format.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

using ChangedPart = DocumentChange::Section;
using Kind = DocumentChange::Kind;

/// In which order an object has its members says nothing.
std::string textOf(const Json& value) {
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Empty: it is not there.
std::string textAt(const Json& object, const std::string& name) {
  return object.contains(name) ? textOf(object[name]) : std::string();
}

Json without(Json object, std::initializer_list<const char*> names) {
  for (const char* name : names) object.erase(name);
  return object;
}

/// A member of an object; null: there is none.
const Json& memberOf(const Json& json, const char* name) {
  static const Json kNull;
  return json.is_object() && json.contains(name) ? json[name] : kNull;
}

// ---- Entries of lists.

/// An entry of a list: its key, and its other fields.
struct Entry {
  std::string id;
  Json content;
};
using Entries = std::vector<Entry>;

/// Entry of an input, op or output.
Entry entryOf(const Json& item) {
  const Json& id = memberOf(item, "id");
  if (!id.is_string()) return {.id = {}, .content = item};
  return {.id = id.get<std::string>(), .content = without(item, {"id"})};
}

/// A wire is known by where it ends: an input takes one.
Entry wireOf(const Json& item) {
  const bool isWire = item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string();
  if (!isWire) return {.id = {}, .content = item};
  return {.id = item[1].get<std::string>(), .content = {{"from", item[0]}}};
}

Entries entriesOf(const Json& list, Entry (*read)(const Json&)) {
  Entries entries;
  for (const Json& item : list) entries.push_back(read(item));
  return entries;
}

/// Attributes are listed with the other fields of an op.
std::vector<FieldChange> contentChanges(const Json& base, const Json& next) {
  const bool haveAttributes = memberOf(base, "attributes").is_object() && memberOf(next, "attributes").is_object();
  if (!haveAttributes) return changedFields(base, next);
  std::vector<FieldChange> fields = changedFields(without(base, {"attributes"}), without(next, {"attributes"}));
  std::ranges::move(changedFields(base["attributes"], next["attributes"]), std::back_inserter(fields));
  return fields;
}

/// Everything that is said of an entry, as an object to compare another with.
Json nothingLike(const Json& content) {
  if (!content.is_object()) return nullptr;
  return memberOf(content, "attributes").is_object() ? Json{{"attributes", Json::object()}} : Json::object();
}

/// Entries of two lists that have the same id, the first with the first, the second with the second.
struct Pairing {
  std::vector<std::pair<const Entry*, const Entry*>> both;
  std::vector<const Entry*> removed;
  std::vector<const Entry*> added;
};

Pairing paired(const Entries& base, const Entries& next) {
  std::map<std::string, std::vector<const Entry*>> waiting;
  for (const Entry& entry : next) waiting[entry.id].push_back(&entry);
  std::map<std::string, std::size_t> taken;
  Pairing pairing;
  for (const Entry& entry : base) {
    const std::vector<const Entry*>& others = waiting[entry.id];
    std::size_t& index = taken[entry.id];
    if (index < others.size())
      pairing.both.emplace_back(&entry, others[index++]);
    else
      pairing.removed.push_back(&entry);
  }
  std::map<std::string, std::size_t> seen;
  for (const Entry& entry : next)
    if (seen[entry.id]++ >= taken[entry.id]) pairing.added.push_back(&entry);
  return pairing;
}

// ---- Ids that are others.

using Renames = std::map<std::string, std::string>;

std::multiset<std::string> idsOf(const Entries& entries) {
  std::multiset<std::string> ids;
  for (const Entry& entry : entries) ids.insert(entry.id);
  return ids;
}

/// Entries that are unique by their fields and missing on the other side.
std::map<std::string, std::vector<const Entry*>> loneEntries(const std::vector<const Entry*>& entries,
                                                             const std::multiset<std::string>& own,
                                                             const std::multiset<std::string>& others) {
  std::map<std::string, std::vector<const Entry*>> byContent;
  for (const Entry* entry : entries)
    if (!entry->id.empty() && own.count(entry->id) == 1 && !others.contains(entry->id))
      byContent[textOf(entry->content)].push_back(entry);
  return byContent;
}

/// An entry that is gone and one that came are the same where no other one could be meant.
Renames renamesOf(const Entries& base, const Entries& next) {
  const Pairing pairing = paired(base, next);
  const auto gone = loneEntries(pairing.removed, idsOf(base), idsOf(next));
  const auto came = loneEntries(pairing.added, idsOf(next), idsOf(base));
  Renames renames;
  for (const auto& [content, entries] : gone) {
    const auto same = came.find(content);
    if (entries.size() == 1 && same != came.end() && same->second.size() == 1)
      renames[entries.front()->id] = same->second.front()->id;
  }
  return renames;
}

std::string renamed(const std::string& id, const Renames& renames) {
  const auto found = renames.find(id);
  return found == renames.end() ? id : found->second;
}

std::string renamedEndpoint(const std::string& text, const Renames& renames) {
  Endpoint endpoint = parseEndpoint(text);
  const auto found = renames.find(endpoint.node);
  if (found == renames.end()) return text;
  endpoint.node = found->second;
  return toString(endpoint);
}

/// As they would be if the ids had been the new ones.
void follow(Entries& entries, const Renames& renames) {
  for (Entry& entry : entries)
    if (memberOf(entry.content, "from").is_string())
      entry.content["from"] = renamedEndpoint(entry.content["from"].get<std::string>(), renames);
}

// ---- Sections.

constexpr std::array<const char*, 4> kLists = {"inputs", "ops", "wires", "outputs"};

/// Collects the changes of two documents.
class Differences {
 public:
  explicit Differences(const DifferenceOptions& options) : m_options(options) {}

  std::vector<DocumentChange> of(const Json& base, const Json& next) {
    named(ChangedPart::Symbols, memberOf(base, "symbols"), memberOf(next, "symbols"));
    section(memberOf(base, "pipeline"), memberOf(next, "pipeline"), memberOf(base, "view"), memberOf(next, "view"));
    blocks(memberOf(base, "blocks"), memberOf(next, "blocks"));
    whole(ChangedPart::Recipe, changedFields(flat(memberOf(base, "recipe")), flat(memberOf(next, "recipe"))));
    whole(ChangedPart::Fusion, fusionChanges(memberOf(base, "fusion"), memberOf(next, "fusion")));
    whole(ChangedPart::File, changedFields(rest(base), rest(next)));
    return std::move(m_changes);
  }

 private:
  static Json rest(const Json& file) {
    return without(file,
                   {"$schema", "format", "formatVersion", "symbols", "pipeline", "blocks", "recipe", "fusion", "view"});
  }

  void add(ChangedPart section, Kind kind, std::string id, std::vector<FieldChange> fields, std::string newId = {}) {
    m_changes.push_back({.section = section,
                         .block = m_block,
                         .kind = kind,
                         .id = std::move(id),
                         .newId = std::move(newId),
                         .fields = std::move(fields)});
  }

  void whole(ChangedPart section, std::vector<FieldChange> fields) {
    if (!fields.empty()) add(section, Kind::Changed, {}, std::move(fields));
  }

  /// Members of an object, each a change of its own.
  void named(ChangedPart section, const Json& base, const Json& next) {
    const auto orEmpty = [](const Json& json) { return json.is_null() ? Json::object() : json; };
    for (FieldChange& field : changedFields(orEmpty(base), orEmpty(next))) {
      const std::string id = std::exchange(field.name, {});
      const Kind kind = field.base.empty() ? Kind::Added : field.next.empty() ? Kind::Removed : Kind::Changed;
      add(section, kind, id, {field});
    }
  }

  /// The fields of a recipe stand beside its name, or apart.
  static Json flat(const Json& recipe) {
    const Json& fields = memberOf(recipe, "fields");
    if (!fields.is_object()) return recipe;
    Json all = without(recipe, {"fields"});
    for (const auto& [name, value] : fields.items())
      if (!all.contains(name)) all[name] = value;
    return all;
  }

  /// Switches are a set.
  static std::vector<FieldChange> fusionChanges(const Json& base, const Json& next) {
    std::vector<FieldChange> fields;
    Json before = base;
    Json after = next;
    for (const char* name : {"without", "with"}) {
      if (!memberOf(base, name).is_array() || !memberOf(next, name).is_array()) continue;
      std::ranges::move(switchChanges(name, base[name], next[name]), std::back_inserter(fields));
      before.erase(name);
      after.erase(name);
    }
    std::vector<FieldChange> others = changedFields(before, after);
    others.insert(others.end(), fields.begin(), fields.end());
    return others;
  }

  static std::vector<FieldChange> switchChanges(const char* name, const Json& base, const Json& next) {
    const auto textsOf = [](const Json& list) {
      std::multiset<std::string> texts;
      for (const Json& entry : list) texts.insert(textOf(entry));
      return texts;
    };
    const std::multiset<std::string> before = textsOf(base);
    const std::multiset<std::string> after = textsOf(next);
    std::vector<std::string> gone, came;
    std::ranges::set_difference(before, after, std::back_inserter(gone));
    std::ranges::set_difference(after, before, std::back_inserter(came));
    std::vector<FieldChange> fields;
    for (const std::string& entry : gone) fields.push_back({.name = name, .base = entry, .next = {}});
    for (const std::string& entry : came) fields.push_back({.name = name, .base = {}, .next = entry});
    return fields;
  }

  void blocks(const Json& base, const Json& next) {
    const auto isOdd = [](const Json& json) { return !json.is_object() && !json.is_null(); };
    if (isOdd(base) || isOdd(next)) return whole(ChangedPart::File, changedFields(base, next));
    const Json before = base.is_null() ? Json::object() : base;
    const Json after = next.is_null() ? Json::object() : next;
    for (const auto& [name, block] : before.items()) {
      if (!after.contains(name))
        add(ChangedPart::Blocks, Kind::Removed, name,
            changedFields(block, block.is_object() ? Json::object() : Json()));
      else if (textOf(block) != textOf(after[name]))
        insideOf(name, block, after[name]);
    }
    for (const auto& [name, block] : after.items())
      if (!before.contains(name))
        add(ChangedPart::Blocks, Kind::Added, name, changedFields(block.is_object() ? Json::object() : Json(), block));
  }

  void insideOf(const std::string& name, const Json& base, const Json& next) {
    m_block = name;
    section(base, next, memberOf(base, "view"), memberOf(next, "view"));
    m_block.clear();
  }

  /// The pipeline, or a block.
  void section(const Json& base, const Json& next, const Json& baseView, const Json& nextView) {
    if (!base.is_object() || !next.is_object()) return bodyAsWhole(changedFields(base, next));
    std::map<std::string, std::pair<Entries, Entries>> lists;
    std::vector<FieldChange> odd;
    Json before = without(base, {"view"});
    Json after = without(next, {"view"});
    for (const char* name : kLists) {
      if (!memberOf(base, name).is_array() || !memberOf(next, name).is_array()) continue;
      const auto read = std::string_view(name) == "wires" ? wireOf : entryOf;
      lists[name] = {entriesOf(base[name], read), entriesOf(next[name], read)};
      before.erase(name);
      after.erase(name);
    }
    const Renames renames = followRenames(lists);
    entries(ChangedPart::Inputs, lists["inputs"], renames);
    entries(ChangedPart::Ops, lists["ops"], renames);
    entries(ChangedPart::Wires, lists["wires"], {});
    entries(ChangedPart::Outputs, lists["outputs"], {});
    std::vector<FieldChange> others = changedFields(before, after);
    if (!m_block.empty())
      for (const char* name : {"inputs", "outputs"}) portOrder(name, lists[name], renames, others);
    bodyAsWhole(std::move(others));
    if (m_options.withView) view(baseView, nextView, renames);
  }

  void bodyAsWhole(std::vector<FieldChange> fields) {
    if (fields.empty()) return;
    const std::string block = std::exchange(m_block, {});
    add(block.empty() ? ChangedPart::File : ChangedPart::Blocks, Kind::Changed, block, std::move(fields));
    m_block = block;
  }

  static Renames followRenames(std::map<std::string, std::pair<Entries, Entries>>& lists) {
    Renames renames = renamesOf(lists["ops"].first, lists["ops"].second);
    renames.merge(renamesOf(lists["inputs"].first, lists["inputs"].second));
    for (Entry& wire : lists["wires"].first) wire.id = renamedEndpoint(wire.id, renames);
    follow(lists["wires"].first, renames);
    follow(lists["outputs"].first, renames);
    return renames;
  }

  void entries(ChangedPart section, const std::pair<Entries, Entries>& lists, const Renames& renames) {
    const Pairing pairing = paired(lists.first, lists.second);
    std::set<std::string> isNew;
    for (const Entry* entry : pairing.removed) {
      const auto rename = renames.find(entry->id);
      if (rename == renames.end()) {
        add(section, Kind::Removed, entry->id, contentChanges(entry->content, nothingLike(entry->content)));
        continue;
      }
      add(section, Kind::Renamed, entry->id, {}, rename->second);
      isNew.insert(rename->second);
    }
    for (const auto& [base, next] : pairing.both)
      if (std::vector<FieldChange> fields = contentChanges(base->content, next->content); !fields.empty())
        add(section, Kind::Changed, base->id, std::move(fields));
    for (const Entry* entry : pairing.added)
      if (!isNew.contains(entry->id))
        add(section, Kind::Added, entry->id, contentChanges(nothingLike(entry->content), entry->content));
  }

  /// The first port is the main one.
  static void portOrder(const char* name, const std::pair<Entries, Entries>& lists, const Renames& renames,
                        std::vector<FieldChange>& fields) {
    const std::multiset<std::string> known = idsOf(lists.second);
    std::vector<std::string> before, after;
    for (const Entry& entry : lists.first)
      if (const std::string id = renamed(entry.id, renames); known.contains(id)) before.push_back(id);
    for (const Entry& entry : lists.second)
      if (std::ranges::count(before, entry.id) > 0) after.push_back(entry.id);
    if (before != after)
      fields.push_back({.name = fmt::format("order of {}", name),
                        .base = fmt::format("{}", fmt::join(before, ", ")),
                        .next = fmt::format("{}", fmt::join(after, ", "))});
  }

  /// By "frame ID", so that none is taken for a node. Nothing: they are not told apart by their ids.
  static std::optional<Json> framesOf(const Json& view) {
    Json frames = Json::object();
    const Json& list = memberOf(view, "frames");
    if (list.is_null()) return frames;
    if (!list.is_array()) return std::nullopt;
    for (const Entry& entry : entriesOf(list, entryOf)) {
      if (entry.id.empty() || frames.contains("frame " + entry.id)) return std::nullopt;
      frames["frame " + entry.id] = entry.content;
    }
    return frames;
  }

  void view(const Json& base, const Json& next, const Renames& renames) {
    const auto positionsOf = [](const Json& view) {
      const Json& positions = memberOf(view, "positions");
      return positions.is_object() ? positions : Json::object();
    };
    const Json positions = positionsOf(base);
    Json before = Json::object();
    for (const auto& [id, position] : positions.items()) before[renamed(id, renames)] = position;
    named(ChangedPart::View, before, positionsOf(next));
    const std::optional<Json> framesBefore = framesOf(base);
    const std::optional<Json> framesAfter = framesOf(next);
    const bool areNamed = framesBefore && framesAfter;
    if (areNamed) named(ChangedPart::View, *framesBefore, *framesAfter);
    const auto othersOf = [areNamed](const Json& view) {
      if (!view.is_object()) return view.is_null() ? Json::object() : view;
      Json others = memberOf(view, "positions").is_object() ? without(view, {"positions"}) : view;
      return areNamed ? without(others, {"frames"}) : others;
    };
    whole(ChangedPart::View, changedFields(othersOf(base), othersOf(next)));
  }

  DifferenceOptions m_options;
  std::string m_block;
  std::vector<DocumentChange> m_changes;
};

const char* nounOf(ChangedPart section) {
  switch (section) {
    case ChangedPart::Symbols: return "symbol";
    case ChangedPart::Inputs: return "input";
    case ChangedPart::Ops: return "op";
    case ChangedPart::Wires: return "wire to";
    case ChangedPart::Outputs: return "output";
    case ChangedPart::Blocks: return "block";
    case ChangedPart::Recipe: return "recipe";
    case ChangedPart::Fusion: return "fusion";
    case ChangedPart::View: return "place of";
    case ChangedPart::File: return "file";
  }
  return "";
}

}  // namespace

std::vector<FieldChange> changedFields(const Json& base, const Json& next) {
  if (!base.is_object() || !next.is_object()) {
    if (textOf(base) == textOf(next)) return {};
    const auto orNothing = [](const Json& json) { return json.is_null() ? std::string() : textOf(json); };
    return {{.name = {}, .base = orNothing(base), .next = orNothing(next)}};
  }
  std::vector<FieldChange> fields;
  for (const auto& [name, value] : base.items())
    if (std::string text = textOf(value); text != textAt(next, name))
      fields.push_back({.name = name, .base = std::move(text), .next = textAt(next, name)});
  for (const auto& [name, value] : next.items())
    if (!base.contains(name)) fields.push_back({.name = name, .base = {}, .next = textOf(value)});
  return fields;
}

std::string_view sectionName(ChangedPart section) {
  switch (section) {
    case ChangedPart::Symbols: return "symbols";
    case ChangedPart::Inputs: return "inputs";
    case ChangedPart::Ops: return "ops";
    case ChangedPart::Wires: return "wires";
    case ChangedPart::Outputs: return "outputs";
    case ChangedPart::Blocks: return "blocks";
    case ChangedPart::Recipe: return "recipe";
    case ChangedPart::Fusion: return "fusion";
    case ChangedPart::View: return "view";
    case ChangedPart::File: return "file";
  }
  return "";
}

std::string_view kindName(Kind kind) {
  switch (kind) {
    case Kind::Added: return "added";
    case Kind::Removed: return "removed";
    case Kind::Changed: return "changed";
    case Kind::Renamed: return "renamed";
  }
  return "";
}

std::string placeOf(const DocumentChange& change) {
  return fmt::format("{}{}{}{}{}", nounOf(change.section), change.id.empty() ? "" : " ", change.id,
                     change.block.empty() ? "" : " in block ", change.block);
}

std::map<std::string, std::string> renamedIds(std::span<const DocumentChange> changes, std::string_view block) {
  Renames renames;
  for (const DocumentChange& change : changes)
    if (change.kind == Kind::Renamed && change.block == block) renames[change.id] = change.newId;
  return renames;
}

std::vector<DocumentChange> documentDifference(const PipelineDocument& base, const PipelineDocument& next,
                                               const DifferenceOptions& options) {
  return Differences(options).of(toJson(base), toJson(next));
}

}  // namespace fuseline
