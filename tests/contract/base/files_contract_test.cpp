// What every file system behind the Files seam keeps: one suite over the real one and the one in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <memory>

#include "convoy/base/error.h"
#include "convoy/base/files.h"

namespace convoy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A file system and a folder in it that is there and empty.
struct Place {
  virtual ~Place() = default;
  virtual Files& files() = 0;
  std::string root;
};

struct MemoryPlace final : Place {
  MemoryPlace() {
    root = "work";
    memory.make_directories(root);
  }
  Files& files() override { return memory; }
  MemoryFiles memory;
};

struct LocalPlace final : Place {
  LocalPlace() {
    root = std::filesystem::temp_directory_path() / "convoy-files-XXXXXX";
    if (mkdtemp(root.data()) == nullptr) throw Error(ErrorCode::kIo, "no folder for the test");
  }
  ~LocalPlace() override { std::filesystem::remove_all(root); }
  Files& files() override { return local_files(); }
};

struct Kind {
  const char* name;
  std::function<std::unique_ptr<Place>()> make;
  friend void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }
};

class FilesContract : public testing::TestWithParam<Kind> {
 protected:
  std::string at(const std::string& name) const { return place_->root + "/" + name; }
  void put(const std::string& name, std::string_view data) { files_.write(at(name), std::span(&data, 1)); }
  std::string get(const std::string& name) { return files_.read(at(name)); }

  // Expects an Error of this code whose text names the path.
  void expect_error(ErrorCode code, const std::string& name, const std::function<void()>& call) {
    try {
      call();
      ADD_FAILURE() << "no error for " << name;
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
      EXPECT_THAT(error.what(), testing::HasSubstr(at(name)));
    }
  }

  std::unique_ptr<Place> place_ = GetParam().make();
  Files& files_ = place_->files();
};

TEST_P(FilesContract, WritesPiecesOneAfterTheOther) {
  const std::string_view pieces[] = {"one", "", std::string_view("\0two", 4)};
  files_.write(at("a"), pieces);
  EXPECT_EQ(get("a"), std::string("one\0two", 7));
  EXPECT_EQ(files_.size(at("a")), 7u);
}

TEST_P(FilesContract, WritesAnEmptyFile) {
  files_.write(at("a"), {});
  EXPECT_TRUE(files_.exists(at("a")));
  EXPECT_EQ(get("a"), "");
  EXPECT_EQ(files_.size(at("a")), 0u);
}

TEST_P(FilesContract, ReplacesALongerFileWhole) {
  put("a", "a long content");
  put("a", "short");
  EXPECT_EQ(get("a"), "short");
}

TEST_P(FilesContract, AppendsToAFileAndCreatesIt) {
  files_.append(at("a"), "one");
  files_.append(at("a"), "");
  files_.append(at("a"), "two");
  files_.sync(at("a"));
  EXPECT_EQ(get("a"), "onetwo");
}

TEST_P(FilesContract, KeepsMoreThanABufferful) {
  std::string data;
  for (int i = 0; data.size() < 300000; ++i) data += std::to_string(i) + "\n";
  put("a", data);
  EXPECT_EQ(get("a"), data);
  EXPECT_EQ(files_.read_range(at("a"), 131071, 70001), data.substr(131071, 70001));
}

TEST_P(FilesContract, ReadsRangesUpToTheLastByteAndNoFurther) {
  put("a", "0123456789");
  EXPECT_EQ(files_.read_range(at("a"), 3, 4), "3456");
  EXPECT_EQ(files_.read_range(at("a"), 9, 1), "9");
  EXPECT_EQ(files_.read_range(at("a"), 10, 0), "");
  expect_error(ErrorCode::kCorrupt, "a", [&] { files_.read_range(at("a"), 9, 2); });
  expect_error(ErrorCode::kCorrupt, "a", [&] { files_.read_range(at("a"), 11, 0); });
  expect_error(ErrorCode::kCorrupt, "a", [&] { files_.read_range(at("a"), 2, ~0ull); });
  expect_error(ErrorCode::kCorrupt, "a", [&] { files_.read_range(at("a"), ~0ull, 2); });
}

TEST_P(FilesContract, NamesAMissingFile) {
  expect_error(ErrorCode::kIo, "none", [&] { get("none"); });
  expect_error(ErrorCode::kIo, "none", [&] { files_.size(at("none")); });
  expect_error(ErrorCode::kIo, "none", [&] { files_.read_range(at("none"), 0, 0); });
  expect_error(ErrorCode::kIo, "none", [&] { files_.sync(at("none")); });
  expect_error(ErrorCode::kIo, "none", [&] { files_.rename(at("none"), at("b")); });
  EXPECT_FALSE(files_.exists(at("none")));
}

TEST_P(FilesContract, CreatesNothingInAMissingFolder) {
  put("a", "one");
  expect_error(ErrorCode::kIo, "none/a", [&] { put("none/a", "x"); });
  expect_error(ErrorCode::kIo, "none/a", [&] { files_.append(at("none/a"), "x"); });
  expect_error(ErrorCode::kIo, "none/a", [&] { files_.rename(at("a"), at("none/a")); });
  EXPECT_FALSE(files_.exists(at("none")));
  EXPECT_EQ(get("a"), "one");
}

TEST_P(FilesContract, TakesNoFolderForAFile) {
  files_.make_directories(at("folder"));
  expect_error(ErrorCode::kIo, "folder", [&] { put("folder", "x"); });
  expect_error(ErrorCode::kIo, "folder", [&] { files_.append(at("folder"), "x"); });
  expect_error(ErrorCode::kIo, "folder", [&] { get("folder"); });
}

TEST_P(FilesContract, MakesFoldersAndThoseAboveThem) {
  files_.make_directories(at("x/y/z"));
  files_.make_directories(at("x/y"));
  EXPECT_TRUE(files_.exists(at("x")));
  EXPECT_TRUE(files_.exists(at("x/y/z")));
  put("x/y/z/a", "one");
  EXPECT_EQ(get("x/y/z/a"), "one");
}

TEST_P(FilesContract, RenamesAFileOverAnother) {
  put("a", "one");
  put("b", "two");
  files_.rename(at("a"), at("b"));
  EXPECT_FALSE(files_.exists(at("a")));
  EXPECT_EQ(get("b"), "one");
}

TEST_P(FilesContract, RenamesAFolderWithAllThatIsInIt) {
  files_.make_directories(at("step-1.part/deep"));
  put("step-1.part/deep/a", "one");
  put("step-1.parts", "a name that only begins alike");
  files_.rename(at("step-1.part"), at("step-1"));
  EXPECT_FALSE(files_.exists(at("step-1.part")));
  EXPECT_EQ(get("step-1/deep/a"), "one");
  EXPECT_TRUE(files_.exists(at("step-1.parts")));
}

TEST_P(FilesContract, RemovesFilesAndWholeFolders) {
  files_.make_directories(at("x/y"));
  put("x/y/a", "one");
  put("x.b", "a name that only begins alike");
  files_.remove(at("x"));
  EXPECT_FALSE(files_.exists(at("x")));
  EXPECT_FALSE(files_.exists(at("x/y/a")));
  EXPECT_TRUE(files_.exists(at("x.b")));
  files_.remove(at("x.b"));
  EXPECT_FALSE(files_.exists(at("x.b")));
  EXPECT_NO_THROW(files_.remove(at("x")));
}

TEST_P(FilesContract, ListsNamesInOrderWithoutWhatLiesDeeper) {
  files_.make_directories(at("x/sub"));
  for (const char* name : {"x/b", "x/a", "x/sub/c", "x/10", "x/9"}) put(name, "1");
  put("xy", "1");
  EXPECT_THAT(files_.list(at("x")), ElementsAre("10", "9", "a", "b", "sub"));
  EXPECT_THAT(files_.list(at("x/sub")), ElementsAre("c"));
  EXPECT_THAT(files_.list(at("none")), IsEmpty());
}

TEST_P(FilesContract, ReplacesAtomicallyThroughOneRename) {
  put("a", "old");
  FailingFiles failing(files_, 2);
  EXPECT_THROW(write_atomic(failing, at("a"), "new"), Error);
  EXPECT_EQ(get("a"), "old");
  write_atomic(files_, at("a"), "new");
  EXPECT_EQ(get("a"), "new");
  EXPECT_THAT(files_.list(place_->root), ElementsAre("a"));
}

INSTANTIATE_TEST_SUITE_P(All, FilesContract,
                         testing::Values(Kind{"Memory", [] { return std::make_unique<MemoryPlace>(); }},
                                         Kind{"Local", [] { return std::make_unique<LocalPlace>(); }}),
                         [](const testing::TestParamInfo<Kind>& info) { return info.param.name; });

}  // namespace
}  // namespace convoy
