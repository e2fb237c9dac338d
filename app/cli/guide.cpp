// fuseline guide: the pages of the guide, and what the code of a problem means.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/guide.h"
#include "app/cli/table.h"
#include "app/cli/terminal.h"
#include "app/cli/verbs.h"
#include "core/support/output_schema.h"
#include "core/support/text.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {
namespace guide_parts {

struct GuideOptions {
  std::string topic;
  bool asJson = false;
};

/// A page, or the section of a code.
struct Topic {
  std::string name;
  std::string title;
  std::string text;  // Markdown
};

Json toJson(const Topic& topic) { return {{"name", topic.name}, {"title", topic.title}, {"text", topic.text}}; }

std::vector<Topic> allPages() {
  std::vector<Topic> pages;
  for (const GuidePage& page : guidePages())
    pages.push_back({std::string(page.name), std::string(page.title), std::string(page.text)});
  return pages;
}

Error unknownTopic(const std::string& name) {
  std::vector<std::string> names = problemCodes();
  for (const GuidePage& page : guidePages()) names.emplace_back(page.name);
  return {fmt::format("guide {0}: there is no page and no problem code {0}{1}", name, didYouMean(nearest(name, names))),
          ErrorKind::Usage};
}

Result<Topic> topicNamed(const std::string& name) {
  for (Topic& page : allPages())
    if (page.name == name) return page;
  if (const auto text = problemGuide(name)) return Topic{name, name, std::string(*text)};
  return unknownTopic(name);
}

void printList(Context& context) {
  Table table({{"page", Align::Left}, {"", Align::Left}});
  for (const GuidePage& page : guidePages()) table.addRow({std::string(page.name), std::string(page.title)});
  context.out << table.toString(context.hasColour)
              << "\n`fuseline guide PAGE` shows a page, `fuseline guide CODE` explains the code of a problem.\n";
}

/// A terminal shows no pictures.
std::string withoutPictures(const std::string& page) {
  std::istringstream lines(page);
  std::string text;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("![")) text += line + '\n';
  return text;
}

Result<int> showGuide(const GuideOptions& options, Context& context) {
  std::vector<Topic> topics = allPages();
  if (!options.topic.empty()) {
    Result<Topic> topic = topicNamed(options.topic);
    if (!topic) return topic.error();
    topics = {std::move(*topic)};
  }
  if (options.asJson) {
    Json list = Json::array();
    for (const Topic& topic : topics) list.push_back(toJson(topic));
    printJson(context, {{"topics", std::move(list)}});
  } else if (options.topic.empty()) {
    printList(context);
  } else {
    context.out << withoutPictures(topics.front().text);
  }
  return 0;
}

Json guideSchema() {
  return schema::object(
      {{"topics", schema::list(schema::object({{"name", schema::text("Page, or code of a problem.")},
                                               {"title", schema::text("Title of the page.")},
                                               {"text", schema::text("Text of the page, in Markdown.")}}))}});
}

}  // namespace guide_parts
}  // namespace

void addGuideVerb(CLI::App& app, Context& context) {
  using namespace guide_parts;
  const auto options = std::make_shared<GuideOptions>();
  CLI::App* verb =
      addVerb(app, context, "guide",
              "Show the guide: first steps, tasks, how times are measured, and the meaning of each problem code.",
              options, showGuide, guideSchema);
  verb->add_option("TOPIC", options->topic, "Page, or code of a problem such as shape-mismatch");
  verb->add_flag("--json", options->asJson, "Machine-readable output");
}

}  // namespace fuseline::cli
