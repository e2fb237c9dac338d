// Tests differences of two documents: every edit, and nothing else.
// SPDX-License-Identifier: Apache-2.0
#include "core/compare/document_difference.h"

#include "core/edit/apply_edit.h"
#include "core/support/json_fields.h"
#include "tests/support/example_texts.h"
#include "tests/support/random_edits.h"

#include <rapidcheck.h>

#include <functional>

#include <fmt/format.h>

namespace fuseline::testing {
namespace {

using Changes = std::vector<DocumentChange>;
using Section = DocumentChange::Section;
using Kind = DocumentChange::Kind;

/// "changed op fc1: bias false -> true", one line a change.
std::string linesOf(const Changes& changes) {
  std::string text;
  for (const DocumentChange& change : changes) {
    text += fmt::format("{} {}{}", kindName(change.kind), placeOf(change), change.newId.empty() ? "" : " to ") +
            change.newId;
    for (const FieldChange& field : change.fields)
      text += fmt::format("{} {} -> {}", field.name.empty() ? ":" : "; " + field.name, field.base, field.next);
    text += "\n";
  }
  return text;
}

PipelineDocument edited(PipelineDocument document, const Edit& edit) {
  const Result<Edit> applied = applyEdit(document, edit);
  EXPECT_TRUE(applied) << applied.error().message;
  return document;
}

std::string differenceAfter(const PipelineDocument& document, const Edit& edit) {
  return linesOf(documentDifference(document, edited(document, edit)));
}

// ---- Everything, and nothing else: against the files with their lists sorted.

std::string idIn(const Json& item) {
  if (item.is_array()) return item.size() == 2 ? item[1].get<std::string>() : std::string();
  const bool hasId = item.is_object() && item.contains("id") && item["id"].is_string();
  return hasId ? item["id"].get<std::string>() : std::string();
}

void sortLists(Json& section, std::initializer_list<const char*> lists) {
  if (!section.is_object()) return;
  for (const char* name : lists)
    if (section.contains(name) && section[name].is_array())
      std::ranges::stable_sort(section[name].get_ref<Json::array_t&>(), {}, idIn);
  section.erase("view");
}

std::string meaningOf(const PipelineDocument& document) {
  Json file = *parseJson(serialize(document));
  for (const char* name : {"$schema", "format", "formatVersion", "view"}) file.erase(name);
  if (file.contains("pipeline")) sortLists(file["pipeline"], {"inputs", "ops", "wires", "outputs"});
  if (file.contains("blocks"))
    for (auto& [name, block] : file["blocks"].items()) sortLists(block, {"ops", "wires"});
  return nlohmann::json(file).dump();
}

TEST(DocumentDifferenceProperty, IsEmptyExactlyWhereTheMeaningIsTheSame) {
  EXPECT_TRUE(rc::check([] {
    const PipelineDocument base = randomStart();
    PipelineDocument next = base;
    const int numEdits = *rc::gen::inRange(0, 6);
    for (int i = 0; i < numEdits; ++i) (void)applyEdit(next, randomEditOrGroup(next));
    const Changes changes = documentDifference(base, next);
    RC_ASSERT(changes.empty() == (meaningOf(base) == meaningOf(next)));
    RC_ASSERT(documentDifference(next, base).empty() == changes.empty());
    RC_ASSERT(documentDifference(next, next, {.withView = true}).empty());
  }));
}

TEST(DocumentDifferenceProperty, NamesTheOpThatWasEdited) {
  EXPECT_TRUE(rc::check([] {
    const PipelineDocument base = example(*rc::gen::element<std::string>("gpt_mlp", "residual_norm", "llama_mlp"));
    const DocumentOp op = *rc::gen::elementOf(base.ops());
    const Changes changes = documentDifference(base, edited(base, SetAttribute{op.id, "mark", 7}));
    RC_ASSERT(changes == (Changes{{.section = Section::Ops,
                                   .block = {},
                                   .kind = Kind::Changed,
                                   .id = op.id,
                                   .newId = {},
                                   .fields = {{.name = "mark", .base = {}, .next = "7"}}}}));
    const Changes renamed = documentDifference(base, edited(base, RenameOp{op.id, "other"}));
    RC_ASSERT(renamed.size() == 1u);
    RC_ASSERT(renamed[0].kind == Kind::Renamed && renamed[0].id == op.id && renamed[0].newId == "other");
  }));
}

// ---- In which words.

TEST(DocumentDifference, OfAPipelineTellsItsPartsApart) {
  const PipelineDocument llama = example("llama_mlp");
  EXPECT_EQ(differenceAfter(llama, SetSymbol{"M", 8}), "changed symbol M: 512 -> 8\n");
  EXPECT_EQ(differenceAfter(llama, SetSymbol{"Q", 8}), "added symbol Q:  -> 8\n");
  EXPECT_EQ(differenceAfter(llama, RenameOp{"norm", "first"}), "renamed op norm to first\n");
  EXPECT_EQ(differenceAfter(llama, ReplaceInput{"x", {.id = "x", .dtype = "f16", .shape = {"M", "H"}}}),
            "changed input x; dtype \"bf16\" -> \"f16\"\n");
  EXPECT_EQ(differenceAfter(llama, EditGroup{"", {AddOp{{.id = "act2", .operation = "GELU"}}}}),
            "added op act2; op  -> \"GELU\"\n");
}

TEST(DocumentDifference, OfAWireSaysWhereItCameFrom) {
  const PipelineDocument document =
      parseDocument(pipelineText(R"({"id": "a", "op": "GELU"}, {"id": "b", "op": "ReLU"})",
                                 R"(["x", "a.x"], ["a.y", "b.x"])", "b.y"))
          .document;
  const Edit rewired = EditGroup{"", {RemoveWire{{{"a", "y"}, {"b", "x"}}}, AddWire{{{"x", ""}, {"b", "x"}}}}};
  EXPECT_EQ(differenceAfter(document, rewired), "changed wire to b.x; from \"a.y\" -> \"x\"\n");
}

TEST(DocumentDifference, TakesNoOpForARenamedOneWhereSeveralCouldBeMeant) {
  const auto withOps = [](const char* first, const char* second) {
    PipelineDocument document;
    for (const char* id : {first, second}) document = edited(document, AddOp{{.id = id, .operation = "GELU"}});
    return document;
  };
  EXPECT_EQ(documentDifference(withOps("a", "b"), withOps("c", "d")).size(), 4u) << "two gone, two new";
  EXPECT_EQ(linesOf(documentDifference(withOps("a", "b"), withOps("c", "b"))), "renamed op a to c\n");
}

TEST(DocumentDifference, ReadsTheFieldsOfARecipeWhereverTheyStand) {
  const PipelineDocument llama = example("llama_mlp");
  const auto with = [&](const char* recipe) { return edited(llama, SetRecipe{*parseJson(recipe)}); };
  const PipelineDocument apart = with(R"({"name": "DelayedScaling", "fields": {"margin": 2}})");
  const PipelineDocument beside = with(R"({"margin": 2, "name": "DelayedScaling"})");
  EXPECT_EQ(linesOf(documentDifference(apart, beside)), "");
  EXPECT_EQ(linesOf(documentDifference(apart, with(R"({"name": "DelayedScaling", "margin": 0})"))),
            "changed recipe; margin 2 -> 0\n");
}

TEST(DocumentDifference, OfFusionSwitchesIsOneOfSets) {
  const PipelineDocument llama = example("llama_mlp");
  const auto with = [&](const char* fusion) { return edited(llama, SetFusion{*parseJson(fusion)}); };
  const PipelineDocument base = with(R"({"rules": "all", "without": ["A", "B"]})");
  EXPECT_EQ(linesOf(documentDifference(base, with(R"({"without": ["B", "A"], "rules": "all"})"))), "");
  EXPECT_EQ(linesOf(documentDifference(base, with(R"({"rules": "te", "without": ["B", "C"]})"))),
            "changed fusion; rules \"all\" -> \"te\"; without \"A\" -> ; without  -> \"C\"\n");
}

TEST(DocumentDifference, LooksIntoBlocks) {
  const PipelineDocument stack = example("transformer_stack");
  const auto& [name, block] = stack.blocks().front();
  const DocumentOp& op = block.ops.front();
  EXPECT_EQ(differenceAfter(stack, EditInBlock{name, {SetAttribute{op.id, "mark", 7}}}),
            fmt::format("changed op {} in block {}; mark  -> 7\n", op.id, name));
}

TEST(DocumentDifference, OfTheOrderOfPortsMattersInABlockOnly) {
  const auto withBlock = [](const DocumentInput& first, const DocumentInput& second) {
    return edited(PipelineDocument(), AddBlock{"Pair", {.inputs = {first, second}, .ops = {{.id = "a"}}}});
  };
  const DocumentInput x{.id = "x"}, z{.id = "z"};
  EXPECT_EQ(linesOf(documentDifference(withBlock(x, z), withBlock(z, x))),
            "changed block Pair; order of inputs x, z -> z, x\n");
  const auto withInputs = [](const DocumentInput& first, const DocumentInput& second) {
    return edited(PipelineDocument(), EditGroup{"", {AddInput{first}, AddInput{second}}});
  };
  EXPECT_EQ(linesOf(documentDifference(withInputs(x, z), withInputs(z, x))), "");
}

TEST(DocumentDifference, OfTheViewIsThereWhereItIsAskedFor) {
  const PipelineDocument llama = example("llama_mlp");
  const PipelineDocument moved = edited(llama, MoveNode{"norm", Position{7, -7}});
  EXPECT_EQ(linesOf(documentDifference(llama, moved)), "");
  const Changes changes = documentDifference(llama, moved, {.withView = true});
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(placeOf(changes[0]), "place of norm");
  EXPECT_EQ(changes[0].fields[0].next, "[7,-7]");
}

}  // namespace
}  // namespace fuseline::testing
