// The stages of an analysis: up to the graph, and from the graph to the plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"

#include <stop_token>

namespace fuseline {

struct KnownSavings;

/// The graph with its recipe and the part of one rank, and their diagnostics.
Analysis graphStage(const PipelineDocument& document, const AnalysisOptions& options,
                    const SourceMap* sourceMap = nullptr);

/// Options of the fuser for the graph of an analysis.
FusionOptions fusionOptions(const PipelineDocument& document, const AnalysisOptions& options, const Analysis& analysis);

/// Options of its plans.
PlanOptions planOptions(const AnalysisOptions& options);

/// Adds the report, the plans, and their diagnostics. Nothing is planned where there is an error. known: see
/// fuseByPlans(). Stopped, it leaves plans out.
void planStage(const FusionOptions& fusion, Analysis& analysis, const PlanOptions& plan, KnownSavings* known = nullptr,
               const std::stop_token& stop = {});

/// Adds this report of a graph without an error, its plans, and their diagnostics.
void addPlans(FusionReport report, const FusionOptions& fusion, Analysis& analysis, const PlanOptions& plan,
              const std::stop_token& stop = {});

/// The same with the report and the plans of an earlier analysis without an error, which hold for this graph as well.
void planStageFrom(const Analysis& earlier, const FusionOptions& fusion, Analysis& analysis);

/// Adds what the stages above say of the graph, without its report and plans, which are there already.
void addPlanNotes(const FusionOptions& fusion, Analysis& analysis);

}  // namespace fuseline
