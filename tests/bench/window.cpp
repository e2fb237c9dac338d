// bench_window [OPS [PIPELINE]]: how long the window takes to open a large pipeline, to show a frame while the view
// moves, and to show the new plan after edits. PIPELINE: the beginning of a title; all three without it. Prints times
// on the processor, which other programs hardly disturb: one thread works at a time, so that a machine that does
// nothing else takes as long. After a removed op two threads work, and times are those of a clock, from the key press
// to the painted frame. ctest only looks whether it runs.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "ui/session/plan_steps.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"
#include "ui/window/main_window.h"

#include <QApplication>
#include <QTest>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

using namespace fuseline;

namespace {

constexpr int kDefaultOps = 10'000;
constexpr int kBlockOps = 6;
constexpr int kFrames = 120;
constexpr int kEdits = 5;
constexpr int kMostRemovals = 15;

std::string textOf(Json pipeline, const Json& positions = Json::object()) {
  pipeline["inputs"] = {{{"id", "x"}, {"dtype", "bf16"}, {"shape", {16, 64}}}};
  return Json{{"format", "fuseline-pipeline"},
              {"formatVersion", {{"major", 1}, {"minor", 0}}},
              {"pipeline", std::move(pipeline)},
              {"view", {{"positions", positions}}}}
      .dump();
}

/// Residual blocks: a branch, a norm, a layer with its bias, an activation, and the sum with the branch.
std::string pipelineOf(int numOps, bool hasPositions) {
  Json ops = Json::array();
  Json wires = Json::array();
  Json positions = Json::object();
  std::string last = "x";
  for (int block = 0; block < numOps / kBlockOps; ++block) {
    const std::string name = fmt::format("b{}_", block);
    const auto add = [&](const char* id, const char* op, Json attributes = Json::object()) {
      positions[name + id] = {static_cast<int>(positions.size() % (kBlockOps * 10)) * 232, block / 10 * 360};
      ops.push_back({{"id", name + id}, {"op", op}, {"attributes", std::move(attributes)}});
      wires.push_back({last, name + id + ".x"});
      last = name + id + ".y";
    };
    add("save", "MakeExtraOutput");
    add("norm", "RMSNorm", {{"normalized_shape", {64}}});
    add("fc", "BasicLinear", {{"in_features", 64}, {"out_features", 64}});
    add("bias", "Bias", {{"size", 64}});
    add("act", "GELU");
    add("add", "AddExtraInput");
    wires.push_back({name + "save.extra", name + "add.extra"});
  }
  Json pipeline = {{"ops", std::move(ops)}, {"wires", std::move(wires)}, {"outputs", {{{"id", "y"}, {"from", last}}}}};
  return hasPositions ? textOf(std::move(pipeline), positions) : textOf(std::move(pipeline));
}

/// Branches of a norm and an activation that all read the input.
std::string fanOf(int numOps) {
  Json ops = Json::array();
  Json wires = Json::array();
  Json outputs = Json::array();
  for (int branch = 0; branch < numOps / 2; ++branch) {
    const std::string norm = fmt::format("b{}_norm", branch);
    const std::string act = fmt::format("b{}_act", branch);
    ops.push_back({{"id", norm}, {"op", "RMSNorm"}, {"attributes", {{"normalized_shape", {64}}}}});
    ops.push_back({{"id", act}, {"op", "GELU"}});
    wires.push_back({"x", norm + ".x"});
    wires.push_back({norm + ".y", act + ".x"});
    outputs.push_back({{"id", fmt::format("y{}", branch)}, {"from", act + ".y"}});
  }
  return textOf({{"ops", std::move(ops)}, {"wires", std::move(wires)}, {"outputs", std::move(outputs)}});
}

/// Time on the processor, of all threads of the program.
class CpuClock {
 public:
  void restart() { m_begin = now(); }
  double elapsedMs() const { return now() - m_begin; }

 private:
  static double now() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
  }
  double m_begin = now();
};

class WallClock {
 public:
  double elapsedMs() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - m_begin).count();
  }

 private:
  std::chrono::steady_clock::time_point m_begin = std::chrono::steady_clock::now();
};

double medianOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Until the plan is there and the canvas has shown it. Sleeps meanwhile: with a limit of time, Qt would ask over and
/// over.
void waitUntilShown(ui::Session& session, ui::MainWindow& window) {
  while (session.plan().isAnalysing()) QApplication::processEvents(QEventLoop::WaitForMoreEvents);
  window.canvas().viewport()->repaint();
}

/// Median time of a frame while the view moves at this zoom.
double frameMs(ui::GraphView& canvas, double zoom) {
  canvas.zoomTo(zoom);
  CpuClock clock;
  std::vector<double> framesMs;
  for (int frame = 0; frame < kFrames; ++frame) {
    clock.restart();
    canvas.camera().panBy({frame % 2 == 0 ? -37 : 12, frame % 3 == 0 ? -9 : 4});
    canvas.viewport()->repaint();
    QApplication::processEvents();
    framesMs.push_back(clock.elapsedMs());
  }
  return medianOf(std::move(framesMs));
}

/// Removes ops by key, and notes when what follows has been painted.
class Removals {
 public:
  Removals(ui::Session& session, ui::MainWindow& window) : m_session(session), m_window(window) {
    QObject::connect(&ui::PlanSteps::of(session.plan()), &ui::PlanSteps::neighborhoodPlanned, &m_context,
                     [this] { m_isNearPlanned = true; });
  }

  /// Until the op is gone from the canvas, until the fusions around it are shown, and until everything is; without a
  /// neighborhood, the second is the third.
  void removeAlone(const std::string& op) {
    press(op);
    m_gonesMs.push_back(m_clock.elapsedMs());
    showNear();
    m_nearsMs.push_back(m_clock.elapsedMs());
    waitUntilShown(m_session, m_window);
    m_wholesMs.push_back(m_clock.elapsedMs());
  }

  /// The second one while the plan without the first one is made.
  void removeTogether(const std::string& one, const std::string& other) {
    press(one);
    showNear();
    press(other);
    showNear();
    m_secondsMs.push_back(m_clock.elapsedMs());
    waitUntilShown(m_session, m_window);
  }

  std::string text() const {
    return fmt::format(
        "selected op {:5.0f} ms, removed op: gone {:5.0f} ms, fusions around it {:5.0f} ms, whole plan {:5.0f} ms; "
        "another one before that: "
        "fusions around it {:5.0f} ms",
        medianOf(m_selectsMs), medianOf(m_gonesMs), medianOf(m_nearsMs), medianOf(m_wholesMs), medianOf(m_secondsMs));
  }

 private:
  void press(const std::string& op) {
    m_clock = WallClock();
    m_session.selection().select({QString::fromStdString(op)});
    QApplication::sendPostedEvents();
    m_window.canvas().viewport()->repaint();
    m_selectsMs.push_back(m_clock.elapsedMs());
    m_isNearPlanned = false;
    m_clock = WallClock();
    QTest::keyClick(&m_window.canvas(), Qt::Key_Delete, Qt::ControlModifier);
    m_window.canvas().viewport()->repaint();
    if (m_session.pipeline().document().findOp(op)) fmt::print(stderr, "The key did not remove {}.\n", op);
  }

  void showNear() {
    while (m_session.plan().isAnalysing() && !m_isNearPlanned)
      QApplication::processEvents(QEventLoop::WaitForMoreEvents);
    m_window.canvas().viewport()->repaint();
  }

  ui::Session& m_session;
  ui::MainWindow& m_window;
  WallClock m_clock;
  bool m_isNearPlanned = false;
  std::vector<double> m_selectsMs, m_gonesMs, m_nearsMs, m_wholesMs, m_secondsMs;
  const QObject m_context;
};

void measure(std::string_view title, const std::string& text, int numRemovals) {
  ui::Theme theme;
  theme.apply(ui::ThemeChoice::Light);
  ui::Session session({.workerCommand = {}});
  ui::MainWindow window(session, theme, ui::Persistence::None);
  window.resize(1600, 1000);
  window.show();
  window.activateWindow();
  CpuClock clock;
  session.openText(text, QStringLiteral("bench"));
  waitUntilShown(session, window);
  const double openMs = clock.elapsedMs();
  const double nearMs = frameMs(window.canvas(), 0.75);
  const double farMs = frameMs(window.canvas(), 0.2);
  const auto shownMs = [&](auto change) {
    clock.restart();
    change();
    waitUntilShown(session, window);
    return clock.elapsedMs();
  };
  std::vector<double> editsMs;
  std::vector<double> undosMs;
  for (int edit = 0; edit < kEdits; ++edit) {
    const SetAttribute eps{.id = "b0_norm", .name = "eps", .value = 1e-5 * (edit + 2)};
    editsMs.push_back(shownMs([&] { session.pipeline().apply(eps); }));
    undosMs.push_back(shownMs([&] { session.pipeline().undo(); }));
  }
  Removals removals(session, window);
  window.canvas().setFocus();
  for (int edit = 0; edit < numRemovals; ++edit) removals.removeAlone(fmt::format("b{}_act", edit));
  for (int edit = numRemovals; edit < 3 * numRemovals; edit += 2)
    removals.removeTogether(fmt::format("b{}_act", edit), fmt::format("b{}_act", edit + 1));
  fmt::print(
      "{:<20} open {:6.0f} ms   frame at 75 % {:5.1f} ms, at 20 % {:5.1f} ms   attribute {:5.0f} ms, undo {:5.0f} ms, "
      "{}\n",
      title, openMs, nearMs, farMs, medianOf(editsMs), medianOf(undosMs), removals.text());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const QApplication app(argc, argv);
  const int numOps = argc > 1 ? std::atoi(argv[1]) : kDefaultOps;
  if (numOps < kBlockOps) {
    fmt::print(stderr, "bench_window {}: expected a number of ops, at least {}.\n", argv[1], kBlockOps);
    return EXIT_FAILURE;
  }
  fmt::print("{} ops, window of 1600 x 1000, time on the processor, medians\n", numOps / kBlockOps * kBlockOps);
  const std::string_view only = argc > 2 ? argv[2] : "";
  const auto measureIfAsked = [&](std::string_view title, const auto& textOfTitle) {
    if (title.starts_with(only)) measure(title, textOfTitle(), std::clamp(numOps / kBlockOps / 3, 1, kMostRemovals));
  };
  measureIfAsked("without positions", [&] { return pipelineOf(numOps, false); });
  measureIfAsked("with positions", [&] { return pipelineOf(numOps, true); });
  measureIfAsked("parallel branches", [&] { return fanOf(numOps); });
  return EXIT_SUCCESS;
}
