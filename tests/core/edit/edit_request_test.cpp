// Edits that are requested in text: each has an inverse, and a refusal names the unexpected and the expected text.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/edit_request.h"

#include "core/edit/apply_edit.h"
#include "tests/core/edit/edit_scene.h"
#include "tests/core/edit/has_link.h"

#include <vector>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

using Requests = std::vector<EditRequest>;

PipelineDocument small() { return parseDocument(smallPipeline()).document; }

EditRequest insertRequest(const std::string& type, Side side, const std::string& anchor) {
  return {.verb = EditVerb::Insert, .argument = type, .side = side, .anchor = anchor};
}
EditRequest request(EditVerb verb, const std::string& argument) {
  return {.verb = verb, .argument = argument, .side = Side::Unknown, .anchor = {}};
}

/// The document afterwards; the inverses give back the same bytes.
PipelineDocument afterwards(const PipelineDocument& before, const Requests& requests) {
  const Result<EditedDocument> edited = editedDocument(before, requests);
  if (!edited) {
    ADD_FAILURE() << edited.error().message;
    return before;
  }
  PipelineDocument undone = edited->document;
  for (auto edit = edited->edits.rbegin(); edit != edited->edits.rend(); ++edit)
    EXPECT_TRUE(applyEdit(undone, edit->inverse));
  EXPECT_EQ(serialize(undone), serialize(before));
  return edited->document;
}

std::string refusalOf(const EditRequest& wanted) {
  const Result<EditedDocument> edited = editedDocument(small(), Requests{wanted});
  return edited ? "accepted" : edited.error().message;
}

TEST(EditRequest, InsertsBeforeAndAfter) {
  const PipelineDocument next =
      afterwards(small(), {insertRequest("RMSNorm", Side::Before, "fc"), insertRequest("SiLU", Side::After, "act"),
                           insertRequest("Identity", Side::Before, "y"), insertRequest("GELU", Side::After, "x")});
  EXPECT_TRUE(hasLink(next, "norm.y", "rmsnorm.x") && hasLink(next, "rmsnorm.y", "fc.x"));
  EXPECT_TRUE(hasLink(next, "act.y", "silu.x") && hasLink(next, "silu.y", "identity.x"));
  EXPECT_TRUE(hasLink(next, "identity.y", "y"));
  EXPECT_TRUE(hasLink(next, "x", "gelu.x") && hasLink(next, "gelu.y", "norm.x"));
  EXPECT_EQ(next.findOp("rmsnorm")->attributes["normalized_shape"], Json::array({"H"}));
  EXPECT_FALSE(hasErrors(lower(next).diagnostics));
}

TEST(EditRequest, ReplacesRenamesAndDeletes) {
  const PipelineDocument next =
      afterwards(small(), {request(EditVerb::Replace, "act=SiLU"), request(EditVerb::Rename, "act=silu"),
                           request(EditVerb::Delete, "norm")});
  EXPECT_EQ(next.findOp("silu")->operation, "SiLU");
  EXPECT_EQ(next.findOp("norm"), nullptr);
  EXPECT_TRUE(hasLink(next, "x", "fc.x") && hasLink(next, "silu.y", "y"));
}

TEST(EditRequest, TakesIdsWithEqualsSigns) {
  const PipelineDocument next =
      afterwards(small(), {request(EditVerb::Rename, "fc=f=c"), request(EditVerb::SetAttribute, "f=c.bias=true"),
                           request(EditVerb::Connect, "x=f=c.x"), request(EditVerb::Replace, "act=SiLU")});
  EXPECT_EQ(next.findOp("f=c")->attributes["bias"], Json(true));
  EXPECT_TRUE(hasLink(next, "x", "f=c.x"));
  EXPECT_NE(afterwards(next, {request(EditVerb::Rename, "f=c=d=e")}).findOp("d=e"), nullptr);
}

TEST(EditRequest, ConnectsAndDisconnects) {
  const PipelineDocument next =
      afterwards(small(), {request(EditVerb::Connect, "x=fc.x"), request(EditVerb::Connect, "fc.y=y")});
  EXPECT_TRUE(hasLink(next, "x", "fc.x") && hasLink(next, "fc.y", "y"));
  EXPECT_FALSE(hasLink(next, "norm.y", "fc.x"));
  const PipelineDocument apart = afterwards(next, {request(EditVerb::Disconnect, "act.x")});
  EXPECT_FALSE(linkInto(apart, {"act", "x"}));
}

TEST(EditRequest, ReadsValuesAsJsonListsOrExpressions) {
  const PipelineDocument next = afterwards(
      small(),
      {request(EditVerb::SetAttribute, "fc.bias=true"), request(EditVerb::SetAttribute, "fc.out_features=4*H"),
       request(EditVerb::SetAttribute, "norm.normalized_shape=H"), request(EditVerb::SetAttribute, "norm.eps=1e-6"),
       request(EditVerb::SetSymbol, "H=64"), request(EditVerb::SetSymbol, "F=max(2, 3)*H")});
  EXPECT_EQ(next.findOp("fc")->attributes["bias"], Json(true));
  EXPECT_EQ(next.findOp("fc")->attributes["out_features"], Json("4*H"));
  EXPECT_EQ(next.findOp("norm")->attributes["normalized_shape"], Json::array({"H"}));
  EXPECT_EQ(next.findOp("norm")->attributes["eps"], Json(1e-6));
  EXPECT_EQ(next.symbols()["H"], Json(64));
  const PipelineDocument list =
      afterwards(next, {request(EditVerb::SetAttribute, "norm.normalized_shape=[2, (H + 1)*2]"),
                        request(EditVerb::SetAttribute, "norm.eps=")});
  EXPECT_EQ(list.findOp("norm")->attributes["normalized_shape"], Json::array({2, "(H + 1)*2"}));
  EXPECT_FALSE(list.findOp("norm")->attributes.contains("eps"));
}

TEST(EditRequest, RepeatsBypassesAndFolds) {
  const PipelineDocument bypassed = afterwards(small(), {request(EditVerb::Bypass, "act")});
  EXPECT_TRUE(bypassed.findOp("act")->isBypassed());
  EXPECT_FALSE(afterwards(bypassed, {request(EditVerb::Use, "act")}).findOp("act")->isBypassed());
  const PipelineDocument row = afterwards(small(), {request(EditVerb::Repeat, "act=12")});
  EXPECT_EQ(row.ops().size(), 14U);
  const PipelineDocument folded = afterwards(row, {request(EditVerb::FoldRepeats, "")});
  ASSERT_EQ(folded.blocks().size(), 1U);
  EXPECT_LT(folded.ops().size(), row.ops().size());
}

TEST(EditRequest, RefusalsNameTheFoundAndTheExpectedValue) {
  EXPECT_EQ(refusalOf(insertRequest("RMSNrom", Side::Before, "fc")),
            "insert RMSNrom before fc: there is no op type RMSNrom; did you mean RMSNorm? `fuseline ops` lists them.");
  EXPECT_EQ(refusalOf(insertRequest("GELU", Side::Before, "nrom")),
            "insert GELU before nrom: the pipeline has no op, input or output nrom; did you mean norm?");
  EXPECT_EQ(refusalOf(insertRequest("GELU", Side::Before, "x")),
            "insert GELU before x: x is an input of the pipeline, so nothing can be before it. Use --after x.");
  EXPECT_EQ(refusalOf(insertRequest("GELU", Side::After, "y")),
            "insert GELU after y: y is an output of the pipeline, so nothing can be after it. Use --before y.");
  EXPECT_EQ(refusalOf(insertRequest("GELU", Side::Unknown, "")),
            "insert GELU: expected --before OP or --after OP next.");
  EXPECT_EQ(refusalOf(request(EditVerb::Replace, "act")), "replace act: expected OP=TYPE.");
  EXPECT_EQ(refusalOf(request(EditVerb::Delete, "zz")),
            "delete zz: the pipeline has no op, input or output zz. It has: x, norm, fc, act, y.");
  EXPECT_EQ(refusalOf(request(EditVerb::Connect, "act.y=norm.x")),
            "connect act.y=norm.x: This wire would close a cycle: norm -> fc -> act -> norm.");
  EXPECT_EQ(refusalOf(request(EditVerb::SetAttribute, "fc.bais=true"))
                .find("set-attribute fc.bais=true: fc (Linear) has "
                      "no attribute bais; did you mean bias? It "
                      "has: "),
            0U);
  EXPECT_EQ(refusalOf(request(EditVerb::Repeat, "act=1")),
            "repeat act=1: expected OP=N with N from 2 to 10000, not \"1\".");
  EXPECT_EQ(refusalOf(request(EditVerb::Use, "act")), "unbypass act: act is not bypassed already.");
  EXPECT_EQ(refusalOf(request(EditVerb::Disconnect, "x")).find("disconnect x: no wire ends at x."), 0U);
  EXPECT_EQ(refusalOf(request(EditVerb::FoldRepeats, "")).find("fold-repeats: no repeated ops"), 0U);
}

/// The first edit does not stay where the second one fails.
TEST(EditRequest, StopsAtTheFirstThatFails) {
  const Result<EditedDocument> edited =
      editedDocument(small(), Requests{request(EditVerb::Delete, "norm"), request(EditVerb::Delete, "norm")});
  ASSERT_FALSE(edited);
  EXPECT_EQ(edited.error().message.find("delete norm: the pipeline has no"), 0U) << edited.error().message;
}

}  // namespace
}  // namespace fuseline::testing
