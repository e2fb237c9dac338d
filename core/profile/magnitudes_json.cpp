// Histograms of magnitudes to JSON and back.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/magnitudes_json.h"

namespace fuseline {

Json toJson(const MagnitudeHistogram& magnitudes) {
  return {{"firstExponent", magnitudes.firstExponent}, {"counts", magnitudes.counts}, {"zeros", magnitudes.zeros}};
}

MagnitudeHistogram magnitudesIn(JsonFields& fields) {
  MagnitudeHistogram magnitudes;
  fields.read("firstExponent", magnitudes.firstExponent);
  fields.read("zeros", magnitudes.zeros);
  fields.read("counts", magnitudes.counts);
  return magnitudes;
}

}  // namespace fuseline
