// docs/collectives.md names every algorithm, and its pictures are those that the code draws.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "convoy/spec/collectives/registry.h"
#include "convoy/spec/schedule/describe.h"

namespace convoy::spec {
namespace {

std::string page() {
  std::ifstream file(CONVOY_SOURCE_DIR "/docs/collectives.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Each line of a text moved to the right, as a code block of the page has it.
std::string indented(const std::string& text) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) result += "    " + line + "\n";
  return result;
}

TEST(CollectivesPage, ShowsThePicturesThatTheCodeDraws) {
  const std::string text = page();
  const std::string mark = "<!-- picture ";
  int pictures = 0;
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    std::istringstream words(text.substr(at + mark.size(), text.find(" -->", at) - at - mark.size()));
    std::string collective;
    std::string algorithm;
    CollectiveShape shape;
    int hosts = 1;
    words >> collective >> algorithm >> shape.ranks >> shape.elements >> shape.options.chunk_elements >> hosts;
    for (int rank = 0; rank < shape.ranks; ++rank) shape.hosts.push_back(rank * std::max(1, hosts) / shape.ranks);
    const std::string picture = indented(describe_picture(build(collective, algorithm, shape)));
    const std::size_t begin = text.find("    ", at);
    EXPECT_EQ(text.substr(begin, picture.size()), picture);
    ++pictures;
  }
  EXPECT_GE(pictures, 20);
}

TEST(CollectivesPage, NamesEveryAlgorithm) {
  const std::string text = page();
  for (const Algorithm& algorithm : algorithms()) {
    const std::string name = algorithm.name.substr(0, algorithm.name.find(':'));  // hierarchical:... has one line
    EXPECT_THAT(text, testing::HasSubstr("| `" + name)) << algorithm.collective;
  }
}

}  // namespace
}  // namespace convoy::spec
