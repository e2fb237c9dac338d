// Finds these readers along the wires and outputs of a section.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/extra_readers.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace fuseline {

ExtraReaders findExtraReaders(const Section& section) {
  const Connectivity& wiring = section.wiring();
  ExtraReaders readers;
  const auto note = [&](const Source& source, std::string by) {
    if (source.kind != Source::Kind::Op || source.port <= 0 || !section.op(source.index).isBypassed()) return;
    const Port& port = section.type(source.index)->outputs[static_cast<std::size_t>(source.port)];
    readers.emplace(source.index, ExtraReader{port.name, std::move(by)});
  };
  for (std::size_t i = 0; i < section.block().ops.size(); ++i) {
    const std::vector<Source>& sources = wiring.sources(i);
    const std::size_t numRead = section.op(i).isBypassed() ? std::min<std::size_t>(1, sources.size()) : sources.size();
    for (std::size_t port = 0; port < numRead; ++port)
      note(sources[port], section.op(i).id + "." + section.type(i)->inputs[port].name);
  }
  for (std::size_t i = 0; i < section.block().outputs.size(); ++i)
    note(wiring.outputSource(i), "output " + section.block().outputs[i].id);
  return readers;
}

}  // namespace fuseline
