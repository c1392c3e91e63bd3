#!/usr/bin/env python3
"""Each rule of check_style.py finds what was planted for it, and nothing in a clean tree."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from check_style import RULES  # noqa: E402
from style.tree import Tree  # noqa: E402

LAYERS = """\
0 | base      | no  |
1 | spec      | no  | base
3 | mesh      | yes | base spec
4 | parallel  | yes | base spec mesh
7 | apps/cli  | no  | base spec
7 | apps/rank | yes | base spec mesh parallel
"""

CLEAN_HEADER = """\
// The seam for tests.
#pragma once

#include <map>

#include "convoy/base/error.h"

namespace convoy::spec {

class Forward;

/// A number.
using Number = int;

/// The largest one.
inline constexpr Number kLargest = 7;

/// Colours.
enum class Colour : unsigned char { kRed = 0, kBlue = 1 };

/// A range [begin, end).
struct Range {
  int begin = 0;
  int end{0};
  /// The name.
  std::map<std::string, std::vector<int>> name = {{"a", {1, 2}}};
  int alone = 1;  ///< A trailing docstring.
  friend bool operator==(const Range&, const Range&) = default;
};

/// A shape.
/// Threads:    any
class CONVOY_CAPABILITY("shape") Shape : public Base<int>, private Other {
 public:
  Shape();
  Shape(const Shape&) = delete;
  Shape(Shape&& other) noexcept;
  Shape& operator=(Shape&&) noexcept;
  ~Shape() override;
  using Base<int>::Base;
  /// Makes one of corners.
  explicit Shape(std::vector<int> corners) : corners_{std::move(corners)}, count_(corners_.size()) {}
  int area() const override { return 1; }
  /// Returns the corners.
  [[nodiscard]] const std::vector<int>& corners() const CONVOY_REQUIRES(mutex_) { return corners_; }
  /// Adds bytes.
  void add(const void* data, int bytes);
  void add(std::string_view text) { add(text.data(), text.size()); }
  /// Returns the bytes used now and the peak.
  int used() const;
  int peak() const;
  template <typename T>
  friend class Maker;

 private:
  struct Hidden {
    int field;
    void method();
  };
  int undocumented() const;
  std::vector<int> corners_ CONVOY_GUARDED_BY(mutex_);
  int count_ = 0;
};

/// Returns the greater.
template <typename T>
  requires Ordered<T> && (sizeof(T) > 1)
T greater(T a, T b) {
  return a < b ? b : a;
}

template <>
inline int greater<int>(int a, int b) {
  return a < b ? b : a;
}

inline int Shape::undocumented() const { return R"(})".size() + '}'; }

/// Does it later.
template <typename T>
void later(T a);

template <typename T>
void later(T a) {
  a();
}

namespace detail {
int helper();
}

}  // namespace convoy::spec
"""


class StyleTest(unittest.TestCase):
    """A small source tree in a temporary folder; each test plants one thing in it."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.write("cmake/layers.txt", LAYERS)
        self.write("convoy/base/error.h", "// Errors.\n#pragma once\n#include <string>\n")
        self.write("convoy/base/error.cpp", '#include "convoy/base/error.h"\n')
        self.write("convoy/spec/seam.h", CLEAN_HEADER)
        self.write("convoy/parallel/data/wrap.h", '// A.\n#include <torch/torch.h>\n#include "convoy/parallel/hook.h"\n')
        self.write("convoy/parallel/hook.h", '// B.\n#include "convoy/mesh/mesh.h"\n')
        self.write("convoy/mesh/mesh.h", "// C.\n#include <ATen/ATen.h>\n")
        self.write("apps/cli/main.cpp", '#include "apps/cli/options.h"\n#include "convoy/spec/seam.h"\n')
        self.write("apps/cli/options.h", "// Options.\n")
        self.write("tests/unit/base/error_test.cpp", '#include "convoy/base/error.h"\n')
        self.write("docs/page.md", "Paths such as runs/work/1 or https://example.org/work/ and ../tmp/x are fine.\n")
        self.built = ["convoy/base/error.cpp", "apps/cli/main.cpp", "tests/unit/base/error_test.cpp"]

    def tearDown(self):
        self.folder.cleanup()

    def write(self, file, text):
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run_rule(self, rule, **cache):
        build = self.root / "build"
        build.mkdir(exist_ok=True)
        (build / "CMakeCache.txt").write_text("".join(f"{key}:BOOL={value}\n" for key, value in cache.items()))
        commands = [{"file": str(self.root / file)} for file in self.built]
        (build / "compile_commands.json").write_text(json.dumps(commands))
        return [str(finding) for finding in RULES[rule](Tree(self.root, build))]

    def assert_finds(self, rule, *expected, **cache):
        """Each expected text is the start of one finding, and there are no others."""
        findings = self.run_rule(rule, **cache)
        self.assertEqual(len(findings), len(expected), findings)
        for text in expected:
            self.assertTrue(any(finding.startswith(text) for finding in findings), (text, findings))

    def test_a_clean_tree_has_no_findings(self):
        for rule in RULES:
            with self.subTest(rule):
                self.assert_finds(rule)

    # include

    def test_a_forbidden_module(self):
        self.write("convoy/base/up.h", '// Up.\n#pragma once\n#include "convoy/spec/seam.h"\n')
        self.assert_finds("include", "convoy/base/up.h:3: include: 'base' may not include 'spec'")

    def test_a_forbidden_module_by_angle_brackets_or_spaces(self):
        self.write("convoy/base/up.cpp", "#include <convoy/spec/seam.h>\n  #  include \"convoy/mesh/mesh.h\"\n")
        self.assert_finds("include", "convoy/base/up.cpp:1: include:", "convoy/base/up.cpp:2: include:")

    def test_an_include_in_a_comment_is_none(self):
        self.write("convoy/base/up.cpp", '// #include "convoy/spec/seam.h"\n/*\n#include "convoy/spec/seam.h"\n*/\n')
        self.assert_finds("include")

    def test_libtorch_where_it_is_not_allowed(self):
        self.write("convoy/spec/a.cpp", "#include <torch/torch.h>\n")
        self.write("apps/cli/b.cpp", "#include <c10/core/Allocator.h>\n#include <ATen/ATen.h>\n")
        self.assert_finds("include", "convoy/spec/a.cpp:1: include: 'spec' may not use libtorch",
                          "apps/cli/b.cpp:1: include:", "apps/cli/b.cpp:2: include:")

    def test_a_program_is_bound_by_its_line_too(self):
        self.write("apps/cli/b.cpp", '#include "convoy/parallel/hook.h"\n')
        self.assert_finds("include", "apps/cli/b.cpp:1: include: 'apps/cli' may not include 'parallel'")

    def test_strategies_do_not_include_each_other(self):
        self.write("convoy/parallel/sharded/a.cpp", '#include "convoy/parallel/data/wrap.h"\n')
        self.assert_finds("include", "convoy/parallel/sharded/a.cpp:1: include: strategy 'sharded' may not")

    def test_an_include_beside_the_path_from_the_root(self):
        self.write("convoy/base/a.cpp", '#include "error.h"\n#include "../spec/seam.h"\n')
        self.assert_finds("include", "convoy/base/a.cpp:1: include: include by the path from the root: "
                          "convoy/base/error.h", "convoy/base/a.cpp:2: include:")

    def test_the_library_includes_no_program_and_no_test(self):
        self.write("convoy/base/a.cpp", '#include "apps/cli/options.h"\n#include "tests/unit/x.h"\n')
        self.assert_finds("include", "convoy/base/a.cpp:1: include:", "convoy/base/a.cpp:2: include:")

    def test_a_module_without_a_line(self):
        self.write("convoy/extra/a.cpp", "")
        self.assert_finds("include", "convoy/extra/a.cpp:1: include: 'extra' has no line")

    # include_cycle

    def test_folders_that_include_each_other(self):
        self.write("convoy/parallel/hook.h", '// B.\n#include "convoy/parallel/data/wrap.h"\n')
        self.assert_finds("include_cycle", "convoy/parallel", "convoy/parallel")

    def test_a_cycle_over_three_folders(self):
        self.write("convoy/spec/x/a.h", '// A.\n#include "convoy/spec/y/a.h"\n')
        self.write("convoy/spec/y/a.h", '// A.\n#include "convoy/spec/z/b.h"\n')
        self.write("convoy/spec/z/a.h", '// A.\n#include "convoy/spec/x/a.h"\n')
        self.write("convoy/spec/z/b.h", "// B.\n")
        self.assert_finds("include_cycle", "convoy/spec/x/a.h:2: include_cycle: folders include each other: "
                          "convoy/spec/x -> convoy/spec/y -> convoy/spec/z -> convoy/spec/x")

    def test_headers_of_one_folder_that_include_each_other(self):
        self.write("convoy/base/a.h", '// A.\n#include "convoy/base/b.h"\n')
        self.write("convoy/base/b.h", '// B.\n#include "convoy/base/a.h"\n')
        self.assert_finds("include_cycle", "convoy/base/a.h:2: include_cycle: files include each other")

    # built

    def test_a_test_that_no_target_builds(self):
        self.write("tests/unit/lost_test.cpp", "")
        self.write("examples/lost.cpp", "")
        self.assert_finds("built", "tests/unit/lost_test.cpp:1: built:", "examples/lost.cpp:1: built:")

    def test_what_is_switched_off_is_not_lost(self):
        for file in ("tests/fuzz/a.cpp", "bench/a.cpp", "tests/unit/mesh/a.cpp", "examples/a.cpp"):
            self.write(file, "")
        self.assert_finds("built", CONVOY_TORCH="OFF")
        self.assert_finds("built", "tests/fuzz/a.cpp", "bench/a.cpp", "tests/unit/mesh/a.cpp", "examples/a.cpp",
                          CONVOY_TORCH="ON", CONVOY_FUZZ="ON", CONVOY_BENCH="ON")

    def test_a_missing_build_folder_is_a_finding(self):
        self.assertEqual(len(list(RULES["built"](Tree(self.root)))), 1)

    # size

    def test_files_that_are_too_long(self):
        self.write("convoy/base/long.h", "//\n" * 251)
        self.write("convoy/base/long.cpp", "//\n" * 501)
        self.write("docs/long.md", "x\n" * 801)
        self.assert_finds("size", "convoy/base/long.h:251: size: 251 lines", "convoy/base/long.cpp:501: size:",
                          "docs/long.md:801: size:")

    def test_files_that_just_fit(self):
        self.write("convoy/base/long.h", "//\n" * 250)
        self.write("convoy/base/long.cpp", "//\n" * 500)
        self.write("docs/table.csv", "x\n" * 5000)
        self.assert_finds("size")

    def test_a_folder_with_too_many_files(self):
        for i in range(19):
            self.write(f"convoy/spec/{i}.cpp", "")
        self.assert_finds("size")
        self.write("convoy/spec/19.cpp", "")
        self.write("convoy/spec/deeper/20.cpp", "")
        self.assert_finds("size", "convoy/spec/0.cpp:1: size: 21 files directly in convoy/spec")

    # words

    def test_notes_to_oneself(self):
        self.write("convoy/base/a.cpp", "int a;\n// TO" "DO: later\n")
        self.write("tests/unit/b.cpp", "// FIX" "ME\n")
        self.write("docs/c.md", "XX" "X\n")
        self.assert_finds("words", "convoy/base/a.cpp:2: words:", "tests/unit/b.cpp:1: words:", "docs/c.md:1: words:")

    def test_paths_of_one_machine(self):
        self.write("convoy/base/a.cpp", 'open("/wo' 'rk/main/a");\n')
        self.write("README.md", "cd /fa" "rm/x\nls /tm" "p/x\n")
        self.write("tests/unit/b.cpp", 'folder("/tm' 'p/convoy-XXXXXX");\n')
        self.assert_finds("words", "convoy/base/a.cpp:1: words:", "README.md:1: words:", "README.md:2: words:")

    # docstring

    def assert_undocumented(self, declaration, *names):
        """The declaration, in a header of its own, has a finding for each name."""
        self.write("convoy/base/a.h", f"// A.\n#pragma once\nnamespace convoy {{\n\n{declaration}\n\n}}\n")
        findings = self.run_rule("docstring")
        self.assertEqual(len(findings), len(names), findings)
        for name in names:
            self.assertTrue(any(f"'{name}'" in finding for finding in findings), (name, findings))

    def test_undocumented_names_at_namespace_scope(self):
        self.assert_undocumented("class Thing {};", "Thing")
        self.assert_undocumented("struct Thing : Base { };", "Thing")
        self.assert_undocumented("enum class Kind { kOne, kTwo };", "Kind")
        self.assert_undocumented("using Name = std::map<int, int>;", "Name")
        self.assert_undocumented("inline constexpr int kLimit = f(3);", "kLimit")
        self.assert_undocumented("std::map<int, std::vector<int>> f(int a = g(1), int b = {});", "f")
        self.assert_undocumented("[[nodiscard]] inline int f() { return 1; }", "f")
        self.assert_undocumented("template <typename T>\nvoid f(T&& value) noexcept(true) {}", "f")
        self.assert_undocumented("template <typename T>\nconcept Ordered = true;", "Ordered")
        self.assert_undocumented("auto f() -> int;", "f")

    def test_undocumented_members(self):
        def member(text):
            return f"/// A thing.\nclass Thing {{\n public:\n  {text}\n}};"

        self.assert_undocumented(member("int method() const;"), "method")
        self.assert_undocumented(member("virtual int method() = 0;"), "method")
        self.assert_undocumented(member("explicit Thing(int size) : size_{size} {}"), "Thing")
        self.assert_undocumented(member("static constexpr int kSize = 3;"), "kSize")
        self.assert_undocumented(member("std::function<void(int)> call;"), "call")
        self.assert_undocumented(member("void (*call)(int) = nullptr;"), "call")
        self.assert_undocumented(member("std::atomic<int> count{0};"), "count")
        self.assert_undocumented(member("int values[3];"), "values")
        self.assert_undocumented(member("struct Inner { int x; };"), "Inner", "x")
        self.assert_undocumented(member("/// Inside.\n  struct Inner {\n    int x;\n  };"), "x")
        self.assert_undocumented(member("int a() const override { return 1; }\n\n  int b() { return 2; }"), "b")

    def test_what_follows_a_documented_name_is_documented_itself(self):
        self.assert_undocumented("/// One.\nint one();\nint two();", "two")
        self.assert_undocumented("/// One.\nint one();\n\nint one(int x);", "one")
        self.assert_undocumented("/// One and two.\nint one();\nint two();")

    def test_a_docstring_behind_a_blank_line_belongs_to_nothing(self):
        self.assert_undocumented("/// One.\n\nint one();", "one")

    def test_an_ordinary_comment_is_no_docstring(self):
        self.assert_undocumented("// One.\nint one();", "one")

    def test_a_header_without_an_opening_sentence(self):
        self.write("apps/cli/a.h", "#pragma once\n")
        self.assert_finds("docstring", "apps/cli/a.h:1: docstring:")

    # the command

    def command(self, *arguments):
        script = pathlib.Path(__file__).resolve().parent / "check_style.py"
        return subprocess.run([sys.executable, script, "--root", self.root, *arguments], capture_output=True, text=True,
                              timeout=60, check=False)

    def test_the_exit_status_tells(self):
        self.assertEqual(self.command("include", "size").returncode, 0)
        self.write("convoy/spec/a.cpp", "#include <torch/torch.h>\n")
        failed = self.command("include", "size")
        self.assertEqual(failed.returncode, 1)
        self.assertEqual(failed.stdout, "convoy/spec/a.cpp:1: include: 'spec' may not use libtorch (torch/torch.h)\n")
        self.assertEqual(self.command("no_such_rule").returncode, 2)


if __name__ == "__main__":
    unittest.main()
